"""Tiny models of the architectures of transformers: their configurations made small, with random weights."""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from model_runs import randomize
from transformers import PreTrainedConfig
from transformers.models.auto import modeling_auto as auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES
from written_configs import written_configs

__all__ = ["TooLargeError", "architectures", "classes_of", "models_of"]

#: The heads that are looked for, the first one first; then come all others, and the model without a head.
_HEADS = (
    auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING,
    auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    auto.MODEL_FOR_CAUSAL_LM_MAPPING,
    auto.MODEL_FOR_MASKED_LM_MAPPING,
    auto.MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING,
    auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING,
    auto.MODEL_FOR_OBJECT_DETECTION_MAPPING,
    auto.MODEL_FOR_DEPTH_ESTIMATION_MAPPING,
    auto.MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING,
    auto.MODEL_FOR_CTC_MAPPING,
    auto.MODEL_MAPPING,
    *(v for k, v in sorted(vars(auto).items()) if re.fullmatch(r"MODEL_FOR_\w+_MAPPING", k)),
)

#: Classes of an architecture that are tried, and the most parameters of a model.
_CLASSES, _LARGE = 4, 40_000_000

#: Numbers that are no widths, by their names: of what there are many or few, whatever the widths.
_NO_WIDTHS = re.compile(
    r".*(vocab|token|image|img|patch|position|length|window|kernel|stride|hop|rate|index|chunk|step|theta|scale|num_|_id|seq|block|max).*"
)

#: What widths are divided by where all of them are.
_EIGHTH = 8

#: Sizes that some configurations leave to their checkpoints.
_OPEN: _Sizes = (
    (r"(vocab_size|.*_vocab_size)", 99),
    (r"(num_experts|n_routed_experts|num_local_experts)", 4),
    (r"(head_dim|.*_head_dim|prediction_length|mamba_d_ssm)", 8),
    (r"(num_experts_per_tok|top_k.*|moe_topk|num_key_value_heads)", 2),
    (r"(moe_intermediate_size|expert_intermediate_size)", 32),
)

_Sizes = tuple[tuple[str, int], ...]

_HEAD_COUNTS = r".*attention_heads|n_heads?|num_heads|.*_num_heads|nhead|encoder_heads|decoder_heads|.*_n_heads"
_KV_HEADS = r"(.*num_key_value_heads|num_kv_heads|multi_query_group_num)"
_WIDTHS = (
    r"(hidden_size|d_model|n_embd|.*embed_dim|.*hidden_size|emb_dim|embedding_size|projection_dim|dim|.*_embd"
    r"|.*intermediate_size|.*ffn_dim|d_ff|n_inner|ffn_hidden_size|dim_feedforward|hidden_dim|.*_dim|width|.*_width|d_inner|.*_rank)"
)

#: Numbers of layers, of experts, of words: they say how large a model is, and nothing of how its parts fit together.
_LAYERS: _Sizes = ((r"(.*hidden_layers|.*_layers|n_layers?|num_layers|depth|.*_depth|num_blocks)", 2),)
_COUNTS: _Sizes = (
    (r"(num_experts_per_tok(en)?|moe_k|num_selected_experts|.*top_?k|top_?k_experts|top_?k)", 2),
    (r"(num_local_experts|num_experts|n_routed_experts|moe_num_experts|ffn_num_experts)", 4),
    (r"(n_group|topk_group|n_shared_experts|moe_layer_start_index|.*n_groups|num_groups?)", 1),
    (r"(vocab_size|.*_vocab_size)", 99),
)

#: Sizes by the name of the attribute, the first pattern that matches.
_SIZES: _Sizes = (
    (r"(q_lora_rank|kv_lora_rank|.*lora_r.*)", 16),
    (r"(qk_nope_head_dim|v_head_dim|qk_rope_head_dim|head_dim|d_kv|.*_head_dim|attention_head_size)", 8),
    *_COUNTS,
    (_KV_HEADS, 2),
    (f"({_HEAD_COUNTS})", 4),
    (r"(intermediate_size|.*ffn_dim|d_ff|n_inner|ffn_hidden_size|.*intermediate_size|dim_feedforward|hidden_dim|mlp_dim)", 64),
    (r"(type_vocab_size)", 2),
    (r"(hidden_size|d_model|n_embd|.*embed_dim|.*hidden_size|emb_dim|embedding_size|projection_dim|dim|.*_embd)", 32),
    (r"(image_size|.*_image_size|img_size|input_size)", 32),
    (r"(patch_size)", 8),
    (r"(num_filters)", 4),
    (r"(max_position_embeddings|n_positions|n_ctx|max_sequence_length|max_.*_positions)", 64),
    (r"(num_queries|num_labels)", 10),
)

#: Lists of sizes of stages: the largest element, and what each is a multiple of.
_STAGES = re.compile(r"(hidden_sizes|embed_dims?|dims?|widths?|channels|.*_channels|.*hidden_sizes|neck_hidden_sizes)")
_DEPTHS = re.compile(r"(depths?|num_blocks|layer_depths|.*depths|num_hidden_blocks|layers)")

_TOKENS = re.compile(r".*_token_id|.*_token_index|.*_ids?$")

#: What follows from the number of layers, and is computed again where it is not given.
_DERIVED = re.compile(r"(out_features|out_indices|stage_names)")


#: Configurations of a model of two, by the names they have in it.
_HALVES = ("encoder", "decoder")


class TooLargeError(Exception):
    """No configuration gives a model small enough."""


def architectures() -> list[str]:
    """The names of configurations that have a model of their own."""
    return [name for name in dict.fromkeys(CONFIG_MAPPING_NAMES) if any(_classes(name))]


def classes_of(name: str) -> list[type]:
    """The first classes of models of a configuration, heads first."""
    return list(dict.fromkeys(_classes(name)))[:_CLASSES]


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


def models_of(name: str, cls: Any, is_decoder: bool = False) -> Iterator[torch.nn.Module | Exception]:
    """Models with random weights, none of them zero or one, the smallest first; or why one cannot be built.

    Args:
        name: of the architecture.
        cls: of the model.
        is_decoder: what configurations say that ask for it.
    """
    for config in (*written_configs(name), *_configs(CONFIG_MAPPING[name])):
        if hasattr(config, "is_decoder"):
            config.is_decoder = is_decoder or config.is_decoder
        try:
            with torch.device("meta"), _at_most(_LARGE):
                cls(copy.deepcopy(config))
            torch.manual_seed(0)
            model = cls(config).eval()
        except Exception as error:
            yield error
            continue
        randomize(model)
        for each in (model.config, *(getattr(model.config, n, None) for n in getattr(model.config, "sub_configs", {}))):
            if hasattr(each, "use_cache"):
                each.use_cache = False
        yield model


@contextlib.contextmanager
def _at_most(limit: int) -> Iterator[None]:
    """Ends the making of a module with more parameters than that, when there are so many."""
    register, count = torch.nn.Module.register_parameter, 0

    def counted(self: torch.nn.Module, name: str, parameter: torch.nn.Parameter | None) -> None:
        nonlocal count
        count += 0 if parameter is None else parameter.numel()
        if count > limit:
            raise TooLargeError(f"more than {limit} parameters")
        register(self, name, parameter)

    torch.nn.Module.register_parameter = counted
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register


def _configs(cls: type[PreTrainedConfig]) -> Iterator[PreTrainedConfig]:
    """Configurations that may be small enough and whose sizes may fit together, the likeliest first.

    Small sizes; all widths and heads divided; small widths and all layers; as it is; then those with the sizes that it
    leaves open; then an eighth of all that may be a width.
    """
    base = cls().to_dict()
    divided, filled, eighth = _divided(base, _factor(base)), _filled(base), _eighth(base)
    few, small = (*_LAYERS, *_COUNTS), (*_LAYERS, *_SIZES)
    ways = ((base, small), (divided, few), (base, _SIZES), (base, ()), (filled, small), (eighth, few), (_filled(eighth), few))
    for values, sizes in ways:
        try:
            yield cls.from_dict(_shrunk(values, sizes))
        except Exception:
            continue


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """With a size for each that is left open."""
    result = dict(values)
    for key, value in values.items():
        if isinstance(value, dict) and key.endswith("config"):
            result[key] = _filled(value)
        elif value is None:
            result[key] = next((size for pattern, size in _OPEN if re.fullmatch(pattern, key)), None)
    return result


def _eighth(values: Mapping[str, Any]) -> dict[str, Any]:
    """An eighth of whatever may be a width by its size: sums and quotients of widths stay what they are."""
    result = dict(values)
    for key, value in values.items():
        if isinstance(value, dict) and (str(key).endswith("config") or str(key).startswith(("rope_", "encoder", "decoder"))):
            result[key] = _eighth(value)
        elif key == "mrope_section":
            parts = [v // _EIGHTH for v in value]
            result[key] = [parts[0] + sum(value) // _EIGHTH - sum(parts), *parts[1:]]
        elif not _NO_WIDTHS.fullmatch(str(key)) and _is_wide(value):
            result[key] = [v // _EIGHTH for v in value] if isinstance(value, list | tuple) else value // _EIGHTH
    return result


def _is_wide(value: Any) -> bool:
    numbers = value if isinstance(value, list | tuple) else [value]
    return bool(numbers) and all(type(v) is int and v >= 64 and v % _EIGHTH == 0 for v in numbers)


def _factor(values: Mapping[str, Any]) -> int:
    """The largest power of two that divides all numbers of heads and leaves widths of 32 and more."""
    heads = [v for k, v in _leaves(values) if re.fullmatch(_HEAD_COUNTS, k)]
    widths = [v for k, v in _leaves(values) if re.fullmatch(r"(hidden_size|d_model|n_embd|embed_dim|dim)", k)]
    factor = 1
    while all(h % (2 * factor) == 0 for h in heads) and min(widths, default=0) >= 64 * factor:
        factor *= 2
    return factor


def _leaves(values: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Numbers of a configuration and of those inside of it."""
    for key, value in values.items():
        if isinstance(value, dict) and key.endswith("config"):
            yield from _leaves(value)
        elif type(value) is int and value > 0:
            yield key, value


def _divided(values: Mapping[str, Any], factor: int) -> dict[str, Any]:
    """All widths, and numbers of heads, divided: a head stays as wide as it is, and what was equal stays so."""
    result = dict(values)
    for key, value in values.items():
        if isinstance(value, dict) and (key.endswith("config") or key in _HALVES):
            result[key] = _divided(value, factor)
        elif type(value) is int and value > 0 and re.fullmatch(f"{_HEAD_COUNTS}|{_KV_HEADS}", key):
            result[key] = max(value // factor, 1)
        elif type(value) is int and value % factor == 0 and "head" not in key and re.fullmatch(_WIDTHS, key):
            result[key] = value // factor
        elif isinstance(value, list) and _STAGES.fullmatch(key) and all(type(v) is int for v in value):
            result[key] = [max(v // factor, 1) for v in value]
    return result


def _shrunk(values: Mapping[str, Any], sizes: _Sizes) -> dict[str, Any]:
    if not sizes:
        return dict(values)
    result = {key: _smaller(key, value, sizes) for key, value in values.items()}
    if values.get("num_key_value_heads") == values.get("num_attention_heads") is not None:
        result["num_key_value_heads"] = result["num_attention_heads"]
    names = [k for k in ("num_hidden_layers", "n_layer", "num_layers", "n_layers") if isinstance(result.get(k), int)]
    if not names or result[names[0]] >= values[names[0]]:
        return result
    for key, value in list(result.items()):
        if isinstance(value, list) and len(value) == values[names[0]]:
            result[key] = _one_of_each(value, result[names[0]])
        elif _DERIVED.fullmatch(key):
            del result[key]
    return result


def _one_of_each(values: list[Any], count: int) -> list[Any]:
    """A list of so many elements with as many different ones as there is room for."""
    distinct = [v for i, v in enumerate(values) if v not in values[:i]]
    return (distinct + [values[-1]] * count)[:count]


def _smaller(key: str, value: Any, sizes: _Sizes) -> Any:
    if isinstance(value, dict):
        return _shrunk(value, sizes) if key.endswith("config") or key.startswith("rope_") or key in _HALVES else value
    if isinstance(value, bool):
        return value
    if isinstance(value, list | tuple) and value and all(type(v) is int for v in value):
        return _smaller_list(key, list(value), sizes)
    if type(value) is not int:
        return value
    if _TOKENS.fullmatch(key):
        return value if value < 99 else 82 + sum(map(ord, key)) % 17
    size = next((size for pattern, size in sizes if re.fullmatch(pattern, key)), value)
    return min(size, value) if value > 0 else value


def _smaller_list(key: str, values: list[int], sizes: _Sizes) -> list[int]:
    if _DEPTHS.fullmatch(key):
        return [min(v, 1) for v in values]
    if len(sizes) <= len(_LAYERS + _COUNTS):
        return values
    if key == "mrope_section":
        return [2, 1, 1]
    if _STAGES.fullmatch(key) and max(values) >= 64:
        factor = max(values) // 64
        return [max(v // factor // 8 * 8, 8) for v in values]
    return values
