"""What a GGUF file says of a model besides its tensors: ``config.json`` in, metadata of the architecture out.

Source: ``convert_hf_to_gguf.py`` of llama.cpp; keys are those of ``gguf.constants.Keys``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ...dialect.errors import RelaxError

__all__ = ["architecture_values"]

#: Architectures of which these keys are all that llama.cpp wants, by transformers' ``model_type``.
_ARCHITECTURES = {
    "llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gemma": "gemma",
}  # fmt: skip
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
    return values | {f"{found}.rope.freq_base": _rope_base(config, path)}


def _number(config: Mapping[str, Any], name: str, path: str) -> int | float:
    value = config.get(name)
    if type(value) not in (int, float) or cast("float", value) < 0:
        raise RelaxError(f"'{path}': config.json: {name}: expected a number to write as GGUF, got {value!r}")
    return cast("int | float", value)


def _rope_base(config: Mapping[str, Any], path: str) -> float:
    """The base of rotary embeddings. Raises RelaxError where they are scaled, which the keys here do not say."""
    tables = [config.get("rope_parameters"), config.get("rope_scaling")]
    tables = [cast("Mapping[str, Any]", t) for t in tables if isinstance(t, Mapping)]
    for table in tables:
        kind = table.get("rope_type", table.get("type", "default"))
        if kind != "default":
            raise RelaxError(
                f"'{path}': config.json: expected rotary embeddings without scaling to write as GGUF, got {kind!r}"
            )
    given = [t["rope_theta"] for t in (config, *tables) if "rope_theta" in t]
    return float(_number({"rope_theta": given[0] if given else 10000.0}, "rope_theta", path))
