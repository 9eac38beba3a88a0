"""What a GGUF file says of a model besides its tensors: ``config.json`` in, metadata of the architecture out.

Source: ``convert_hf_to_gguf.py`` of llama.cpp; keys are those of ``gguf.constants.Keys``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from ...dialect.errors import RelaxError
from ..arrays import Array

__all__ = ["architecture_values", "rope_factors"]

#: Architectures of which these keys are all that llama.cpp wants, by transformers' ``model_type``.
_ARCHITECTURES = {
    "llama": "llama", "mistral": "llama", "mixtral": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gemma": "gemma",
    "qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe", "olmoe": "olmoe",
}  # fmt: skip
#: Of mixtures of experts: keys, and what configurations call them. Some have experts of a size of their own.
_EXPERT_KEYS = {
    "expert_count": ("num_local_experts", "num_experts"), "expert_used_count": ("num_experts_per_tok",),
    "expert_feed_forward_length": ("moe_intermediate_size",),
    "expert_shared_feed_forward_length": ("shared_expert_intermediate_size",),
}  # fmt: skip
#: Whether llama.cpp makes the shares of the chosen experts add up to 1, which no key says.
_SHARES_ADD_UP = {"qwen2moe": False, "qwen3moe": True, "olmoe": False}
_KEYS = {
    "context_length": "max_position_embeddings", "embedding_length": "hidden_size", "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps", "vocab_size": "vocab_size",
}  # fmt: skip


def architecture_values(config: Mapping[str, Any], path: str) -> dict[str, bool | int | float | str]:
    """The metadata of a model, ``general.architecture`` first; of an empty configuration that of no architecture.

    Raises:
        RelaxError: the architecture is none of those that are known, a value is missing, or has no key in the format.
    """
    if not config:
        return {"general.architecture": "unknown"}
    kind = config.get("model_type")
    found = _ARCHITECTURES.get(str(kind))
    if found is None:
        known = ", ".join(_ARCHITECTURES)
        raise RelaxError(f"'{path}': config.json: expected a model_type of {known} to write as GGUF, got {kind!r}")
    values: dict[str, bool | int | float | str] = {"general.architecture": found}
    for key, name in _KEYS.items():
        values[f"{found}.{key}"] = _number(config, name, path)
    heads = _number(config, "num_attention_heads", path)
    values[f"{found}.attention.head_count_kv"] = _number({"num_key_value_heads": heads, **config}, "num_key_value_heads", path)
    size = config.get("head_dim") or int(_number(config, "hidden_size", path)) // max(int(heads), 1)
    for key in ("attention.key_length", "attention.value_length", "rope.dimension_count"):
        values[f"{found}.{key}"] = int(size)
    values |= _experts(found, config, path)
    return values | {f"{found}.rope.freq_base": _rope_base(config, path)} | _scaling(found, config, path)


def _experts(found: str, config: Mapping[str, Any], path: str) -> dict[str, bool | int | float | str]:
    """What a file says of experts; nothing of a model without. Raises RelaxError where llama.cpp would weigh them otherwise."""
    names = {key: next((n for n in names if config.get(n) is not None), None) for key, names in _EXPERT_KEYS.items()}
    if names["expert_count"] is None:
        return {}
    adds_up = _SHARES_ADD_UP.get(found)
    if adds_up is not None and bool(config.get("norm_topk_prob", adds_up)) is not adds_up:
        wanted = f"config.json: norm_topk_prob: expected {adds_up}, as llama.cpp has it for {found}"
        raise RelaxError(f"'{path}': {wanted}, got {config['norm_topk_prob']!r}")
    if config.get("mlp_only_layers") or config.get("decoder_sparse_step", 1) != 1:
        raise RelaxError(f"'{path}': config.json: expected experts in every layer to write as GGUF, got layers without")
    return {f"{found}.{key}": _number(config, name, path) for key, name in names.items() if name is not None}


def _number(config: Mapping[str, Any], name: str, path: str) -> int | float:
    value = config.get(name)
    if type(value) not in (int, float) or cast("float", value) < 0:
        raise RelaxError(f"'{path}': config.json: {name}: expected a number to write as GGUF, got {value!r}")
    return cast("int | float", value)


def rope_factors(config: Mapping[str, Any], path: str) -> Array | None:
    """By what each frequency of rotary embeddings is divided, f32 ``[head / 2]``, as Llama 3.1 scales them; None of others.

    Source: ``_compute_llama3_parameters`` of transformers.

    Raises:
        RelaxError: a number is missing.
    """
    table = _scaling_table(config)
    if _scaling_kind(table) != "llama3":
        return None
    heads = int(_number(config, "num_attention_heads", path))
    size = int(config.get("head_dim") or int(_number(config, "hidden_size", path)) // max(heads, 1))
    names = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    factor, low, high, length = (float(_number(table, name, path)) for name in names)
    turns = length / (2 * np.pi) / _rope_base(config, path) ** (np.arange(0, size, 2) / size)
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return (1 / ((1 - smooth) / factor + smooth)).astype(np.float32)


def _rope_tables(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tables = [config.get("rope_parameters"), config.get("rope_scaling")]
    return [cast("Mapping[str, Any]", t) for t in tables if isinstance(t, Mapping)]


def _scaling_kind(table: Mapping[str, Any]) -> object:
    return table.get("rope_type", table.get("type", "default"))


def _scaling_table(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What says how rotary embeddings are scaled; empty where they are not."""
    return next((t for t in _rope_tables(config) if _scaling_kind(t) != "default"), {})


def _scaling(found: str, config: Mapping[str, Any], path: str) -> dict[str, bool | int | float | str]:
    """How rotary embeddings are scaled; of ``llama3``, which has a tensor of its own, nothing. Raises RelaxError for others."""
    table = _scaling_table(config)
    kind = _scaling_kind(table)
    if kind in ("default", "llama3"):
        return {}
    if kind not in ("linear", "yarn"):
        wanted = "expected rotary embeddings that are not scaled, or as linear, yarn or llama3, to write as GGUF"
        raise RelaxError(f"'{path}': config.json: {wanted}, got {kind!r}")
    values: dict[str, bool | int | float | str] = {f"{found}.rope.scaling.type": str(kind)}
    values[f"{found}.rope.scaling.factor"] = float(_number(table, "factor", path))
    if kind == "yarn":
        length = _number({**config, **table}, "original_max_position_embeddings", path)
        values[f"{found}.rope.scaling.original_context_length"] = int(length)
    return values


def _rope_base(config: Mapping[str, Any], path: str) -> float:
    """The base of rotary embeddings."""
    given = [t["rope_theta"] for t in (config, *_rope_tables(config)) if "rope_theta" in t]
    return float(_number({"rope_theta": given[0] if given else 10000.0}, "rope_theta", path))
