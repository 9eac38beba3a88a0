"""Buffers that models of Hugging Face compute from their ``config.json`` and store in no checkpoint, computed again.

A module that was imported from a program on the ``meta`` device lacks their values, which others bring along. By name these are
known: ``rotary_emb.inv_freq`` (of ``default``, ``linear``, ``dynamic`` and ``llama3``), ``position_ids``, ``token_type_ids``.
The formulas are those of ``transformers.modeling_rope_utils``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from .arrays import Array, ArraySpec

__all__ = ["computed_buffer"]

_Config = Mapping[str, Any]


def computed_buffer(name: str, spec: ArraySpec, config: _Config) -> Array | None:
    """The value of a buffer; None where it is none of these, or the configuration does not say enough.

    Args:
        name: the qualified name.
        spec: what the model wants; a value of another shape is none.
        config: the model's configuration, empty for no model of Hugging Face.
    """
    if not config:
        return None
    last = name.rpartition(".")[2]
    found: Array | None = None
    if last in ("inv_freq", "original_inv_freq") and "rotary_emb" in name:
        found = _frequencies(_language_part(config))
    elif last == "position_ids" and len(spec.shape) == 2 and spec.shape[0] == 1:
        found = np.arange(spec.shape[1], dtype=np.int64)[None]
    elif last == "token_type_ids" and len(spec.shape) == 2 and spec.shape[0] == 1:
        found = np.zeros(spec.shape, np.int64)
    return None if found is None or ArraySpec.of(found) != spec else found


def _language_part(config: _Config) -> _Config:
    """Of a model of several kinds of inputs the part about text."""
    inner = config.get("text_config")
    return cast("_Config", inner) if isinstance(inner, Mapping) else config


def _frequencies(config: _Config) -> Array | None:
    """``1 / theta ** (2 i / dim)``, in single precision as torch computes it, but for a last bit of the power."""
    given = config.get("rope_parameters") or config.get("rope_scaling") or {}
    rope = cast("_Config", given) if isinstance(given, Mapping) else {}
    theta = _number(rope, "rope_theta") or _number(config, "rope_theta") or _number(config, "rotary_emb_base") or 10000.0
    heads, hidden = _number(config, "num_attention_heads"), _number(config, "hidden_size")
    size = _number(config, "head_dim") or (hidden // heads if heads and hidden else None)
    if size is None:
        return None
    share = next((s for s in (_number(c, k) for c, k in _shares(rope, config)) if s is not None), 1.0)
    dim = int(size * share)
    exponents = np.arange(0, dim, 2).astype(np.float32) / np.float32(dim)
    powers = np.float64(np.float32(theta)) ** exponents.astype(np.float64)
    return _scaled(np.float32(1) / powers.astype(np.float32), rope)


def _shares(rope: _Config, config: _Config) -> list[tuple[_Config, str]]:
    return [(rope, "partial_rotary_factor"), (config, "partial_rotary_factor"), (config, "rotary_pct")]


def _scaled(frequencies: Array, rope: _Config) -> Array | None:
    kind = rope.get("rope_type", rope.get("type", "default"))
    factor = _number(rope, "factor")
    if kind in ("default", "dynamic"):
        return frequencies
    if kind == "linear" and factor is not None:
        return frequencies / np.float32(factor)
    return _stretched(frequencies, rope, factor) if kind == "llama3" and factor is not None else None


def _stretched(frequencies: Array, rope: _Config, factor: float) -> Array | None:
    """Of Llama 3.1: long waves ``factor`` times as long, short ones as they are, those between in proportion."""
    names = ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    low, high, context = (_number(rope, n) for n in names)
    if low is None or high is None or context is None or high == low:
        return None
    waves = np.float32(2 * math.pi) / frequencies
    long = np.where(waves > np.float32(context / low), frequencies / np.float32(factor), frequencies)
    part = (np.float32(context) / waves - np.float32(low)) / np.float32(high - low)
    between = (1 - part) * long / np.float32(factor) + part * long
    is_between = ~(waves < np.float32(context / high)) & ~(waves > np.float32(context / low))
    return np.where(is_between, between, long).astype(np.float32)


def _number(config: _Config, key: str) -> float | None:
    value = config.get(key)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else None
