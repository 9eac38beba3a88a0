"""Tiny models of the architectures of transformers: their configurations made small, and inputs that their forward takes."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from transformers import PreTrainedConfig
from transformers.models.auto import modeling_auto as auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

__all__ = ["TooLargeError", "architectures", "classes_of", "inputs_of", "model_of"]

#: The heads that are looked for, the first one first; the model without a head is the last.
_HEADS = (
    auto.MODEL_FOR_CAUSAL_LM_MAPPING,
    auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    auto.MODEL_FOR_MASKED_LM_MAPPING,
    auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING,
    auto.MODEL_FOR_OBJECT_DETECTION_MAPPING,
    auto.MODEL_FOR_DEPTH_ESTIMATION_MAPPING,
    auto.MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING,
    auto.MODEL_FOR_CTC_MAPPING,
    auto.MODEL_MAPPING,
)

#: Sizes by the name of the attribute, the first pattern that matches.
_SIZES: tuple[tuple[str, int], ...] = (
    (r"(q_lora_rank|kv_lora_rank|.*lora_r.*)", 16),
    (r"(qk_nope_head_dim|v_head_dim|qk_rope_head_dim|head_dim|d_kv|.*_head_dim|attention_head_size)", 8),
    (r"(n_group|topk_group|n_shared_experts|moe_layer_start_index)", 1),
    (r"(num_experts_per_tok|moe_k|num_selected_experts|moe_top_k|top_k_experts)", 2),
    (r"(num_local_experts|num_experts|n_routed_experts|moe_num_experts|ffn_num_experts)", 4),
    (r"(num_key_value_heads|num_kv_heads|multi_query_group_num)", 2),
    (r"(.*attention_heads|n_heads?|num_heads|.*_num_heads|nhead|encoder_heads|decoder_heads)", 4),
    (r"(.*hidden_layers|.*_layers|n_layers?|num_layers|depth|.*_depth|num_blocks)", 2),
    (r"(intermediate_size|.*ffn_dim|d_ff|n_inner|ffn_hidden_size|.*intermediate_size|dim_feedforward|hidden_dim)", 64),
    (r"(vocab_size|.*_vocab_size)", 99),
    (r"(type_vocab_size)", 2),
    (r"(hidden_size|d_model|n_embd|.*embed_dim|.*hidden_size|emb_dim|embedding_size|projection_dim|dim|.*_embd)", 32),
    (r"(image_size|.*_image_size|img_size|input_size)", 32),
    (r"(patch_size)", 8),
    (r"(max_position_embeddings|n_positions|n_ctx|max_sequence_length|max_.*_positions)", 64),
    (r"(num_queries|num_labels)", 10),
)

#: Lists of sizes of stages: the largest element, and what each is a multiple of.
_STAGES = re.compile(r"(hidden_sizes|embed_dims?|dims?|widths?|channels|.*_channels|.*hidden_sizes|neck_hidden_sizes)")
_DEPTHS = re.compile(r"(depths?|num_blocks|layer_depths|.*depths|num_hidden_blocks|layers)")

_TOKENS = re.compile(r".*_token_id|.*_token_index|.*_ids?$")

#: Parameters of a model that is still tiny, and of one that is as it comes.
_SMALL, _LARGE = 4_000_000, 40_000_000


class TooLargeError(Exception):
    """No configuration gives a model small enough."""


def architectures() -> list[str]:
    """The names of configurations that have a model of their own."""
    return [name for name in dict.fromkeys(CONFIG_MAPPING_NAMES) if any(_classes(name))]


def classes_of(name: str) -> list[type]:
    """The classes of models of a configuration, heads first."""
    return list(dict.fromkeys(_classes(name)))


def _classes(name: str) -> Iterator[type]:
    try:
        config = CONFIG_MAPPING[name]
    except Exception:  # a package that is not installed
        return
    for mapping in _HEADS:
        try:
            found = mapping[config]
        except Exception:
            continue
        yield from found if isinstance(found, tuple) else (found,)


def model_of(name: str, cls: Any) -> torch.nn.Module:
    """A tiny model with random weights, none of them zero or one.

    Raises:
        TooLargeError: no configuration that the model takes is small.
        Exception: whatever transformers raises of the last one.
    """
    last: Exception = TooLargeError(name)
    for config in _configs(CONFIG_MAPPING[name]):
        try:
            with torch.device("meta"):
                size = sum(p.numel() for p in cls(copy.deepcopy(config)).parameters())
            if size > _LARGE:
                last = TooLargeError(f"{size} parameters")
                continue
            torch.manual_seed(0)
            model = cls(config).eval()
        except Exception as error:
            last = error
            continue
        _randomize(model)
        for each in (model.config, *(getattr(model.config, n) for n in getattr(model.config, "sub_configs", {}))):
            if hasattr(each, "use_cache"):
                each.use_cache = False
        return model
    raise last


def _randomize(model: torch.nn.Module) -> None:
    """Weights as large as their fan-in wants, norms near one, biases near zero: nothing hides."""
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.is_floating_point():
                continue
            noise = torch.randn(parameter.shape)
            if parameter.dim() > 1:
                parameter.copy_(noise / max(parameter[0].numel(), 1) ** 0.5)
            else:
                parameter.add_(0.1 * noise.to(parameter.dtype))


def _configs(cls: type[PreTrainedConfig]) -> Iterator[PreTrainedConfig]:
    """The configuration made small in all sizes, in its layers and vocabulary, and as it is."""
    base = cls().to_dict()
    for names in (_SIZES, [s for s in _SIZES if s[1] in (2, 99)], []):
        try:
            yield cls.from_dict(_shrunk(base, names))
        except Exception:
            continue


def _shrunk(values: Mapping[str, Any], sizes: Any) -> dict[str, Any]:
    result = {key: _smaller(key, value, sizes) for key, value in values.items()}
    layers = next((result[k] for k in ("num_hidden_layers", "n_layer", "num_layers") if isinstance(result.get(k), int)), 0)
    for key, value in result.items():
        if sizes and re.fullmatch(r"(layer_types|mlp_layer_types|.*layers_block_type|layers_block_type|no_rope_layers)", key):
            result[key] = _one_of_each(value, layers) if isinstance(value, list) else value
    return result


def _one_of_each(values: list[Any], count: int) -> list[Any]:
    """A list of so many elements with as many different ones as there is room for."""
    distinct = list(dict.fromkeys(values))
    return (distinct + [values[-1]] * count)[:count]


def _smaller(key: str, value: Any, sizes: Any) -> Any:
    if isinstance(value, dict):
        return _shrunk(value, sizes) if key.endswith("config") else value
    if not sizes or isinstance(value, bool):
        return value
    if isinstance(value, list | tuple) and value and all(type(v) is int for v in value):
        return _smaller_list(key, list(value))
    if type(value) is not int:
        return value
    if _TOKENS.fullmatch(key):
        return value if value < 99 else 90
    size = next((size for pattern, size in sizes if re.fullmatch(pattern, key)), value)
    return min(size, value) if value > 0 else value


def _smaller_list(key: str, values: list[int]) -> list[int]:
    if _DEPTHS.fullmatch(key):
        return [min(v, 1) for v in values]
    if _STAGES.fullmatch(key) and max(values) >= 64:
        factor = max(values) // 64
        return [max(v // factor // 8 * 8, 8) for v in values]
    return values


def inputs_of(model: Any, rows: int = 2, length: int = 12, skip: int = 0) -> dict[str, torch.Tensor]:
    """Inputs by name: tokens with a padded row, images, sound, and what the decoder begins with."""
    generator = torch.Generator().manual_seed(rows + length)
    parameters = inspect.signature(model.forward).parameters
    config = model.config
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    found: dict[str, torch.Tensor] = {}

    def tokens(count: int) -> torch.Tensor:
        vocabulary = getattr(text, "vocab_size", None) or getattr(config, "vocab_size", None) or 50
        return torch.randint(5, max(min(vocabulary, 80), 6), (rows, count), generator=generator)

    main = model.main_input_name
    if main == "pixel_values" or ("pixel_values" in parameters and "input_ids" not in parameters):
        found["pixel_values"] = _image(config, rows, generator)
    elif main in ("input_values", "input_features"):
        found[main] = _sound(main, config, rows, generator)
    elif "input_ids" in parameters:
        found["input_ids"] = tokens(length)
        if "attention_mask" in parameters:
            mask = torch.ones(rows, length, dtype=torch.int64)
            mask[-1, length - 3 :] = 0
            found["attention_mask"] = mask
        if "pixel_values" in parameters and not skip and type(model).__name__.endswith(("Model", "CLIPModel")):
            found["pixel_values"] = _image(config, rows, generator)
    else:
        raise TooLargeError(f"inputs not known: {list(parameters)[:4]}")
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in parameters:
        found["decoder_input_ids"] = tokens(length - 5)
    return found


def _image(config: Any, rows: int, generator: torch.Generator) -> torch.Tensor:
    vision = getattr(config, "vision_config", None) or config
    vision = getattr(vision, "backbone_config", None) or vision
    channels = getattr(vision, "num_channels", None) or getattr(vision, "in_channels", None) or 3
    size = getattr(vision, "image_size", None) or getattr(vision, "img_size", None) or 64
    height, width = size if isinstance(size, list | tuple) else (size, size)
    frames = getattr(vision, "num_frames", None)
    shape = (rows, frames, channels, height, width) if frames else (rows, channels, height, width)
    return torch.randn(shape, generator=generator)


def _sound(name: str, config: Any, rows: int, generator: torch.Generator) -> torch.Tensor:
    if name == "input_values":
        bins = getattr(config, "num_mel_bins", None)
        shape = (rows, getattr(config, "max_length", 64), bins) if bins else (rows, 2000)
        return torch.randn(shape, generator=generator)
    bins = getattr(config, "num_mel_bins", None) or getattr(config, "input_feat_per_channel", None) or 80
    length = 2 * (getattr(config, "max_source_positions", None) or 64)
    shape = (rows, bins, length) if hasattr(config, "max_source_positions") else (rows, length, bins)
    return torch.randn(shape, generator=generator)
