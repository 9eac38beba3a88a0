"""What a Hugging Face folder has beside tensors: ``config.json`` and the index of its shards, read and checked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

from ..dialect.errors import RelaxError
from .files import KIND_BYTES, inside, other_kind, read_bytes
from .json_text import parse_json

__all__ = [
    "CONFIG", "INDEX", "MAX_CONFIG_BYTES", "MAX_INDEX_BYTES", "SINGLE", "check_index", "parse_config", "parse_index",
    "quantization_of", "read_config", "read_index",
]  # fmt: skip

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
CONFIG = "config.json"

# Where AutoGPTQ and AutoAWQ described their files before 2024, and what these are called now.
_OLD_CONFIGS = {"quantize_config.json": "gptq", "quant_config.json": "awq"}

# Where NVIDIA's modelopt describes its files, as ``{"quantization": {"quant_algo": "FP8", ...}}``.
_MODELOPT_CONFIG = "hf_quant_config.json"

# An index of 100,000 tensors has 10 MB; reading a larger file as JSON is refused before it takes memory.
MAX_INDEX_BYTES = 100_000_000
MAX_CONFIG_BYTES = 10_000_000


def read_config(folder: str) -> dict[str, Any]:
    """The ``config.json`` of a folder, with what other files beside it say of quantization.

    Raises RelaxError when one cannot be read, or is no JSON object.
    """
    found = _config(os.path.join(folder, CONFIG))
    for name, method in _OLD_CONFIGS.items():
        path = os.path.join(folder, name)
        if os.path.lexists(path) and quantization_of(found, folder) is None:
            found["quantization_config"] = {"quant_method": method} | _config(path)
    path = os.path.join(folder, _MODELOPT_CONFIG)
    if os.path.lexists(path) and quantization_of(found, folder) is None:
        table: object = _config(path).get("quantization")
        if not isinstance(table, dict):
            raise RelaxError(f"'{path}': expected a JSON object under 'quantization', got {type(table).__name__}")
        found["quantization_config"] = {"quant_method": "modelopt", **cast("dict[str, Any]", table)}
    return found


def quantization_of(config: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    """What a configuration says of quantization, under any of the names that this has had; None where it says nothing.

    Raises:
        RelaxError: it is no JSON object.
    """
    text: object = config.get("text_config")  # of a model of texts and images
    inner = cast("Mapping[str, Any]", text) if isinstance(text, Mapping) else {}
    old = [t.get("compression_config") for t in (config, inner)]
    tables = [t.get("quantization_config") for t in (config, inner)]
    found: object = next((t for t in (*tables, *old) if t is not None), None)
    if found is None:
        return None
    if not isinstance(found, Mapping):
        raise RelaxError(f"'{path}': quantization_config: expected a JSON object, got {type(found).__name__}")
    table = cast("Mapping[str, Any]", found)
    return {"quant_method": "compressed-tensors"} | dict(table) if found in old else table


def _config(path: str) -> dict[str, Any]:
    return parse_config(_read(path, MAX_CONFIG_BYTES, "a configuration"), path)


def parse_config(text: bytes, path: str) -> dict[str, Any]:
    """The content of ``config.json``. Raises RelaxError when it is no JSON object."""
    found = _parsed(text, path, "a configuration")
    if not isinstance(found, dict):
        raise RelaxError(f"'{path}': expected a configuration as a JSON object, got {type(found).__name__}")
    return cast("dict[str, Any]", found)


def read_index(path: str) -> dict[str, str]:
    """The ``weight_map`` of an index: tensor name to shard name. Raises RelaxError when it cannot be read, or is none."""
    return parse_index(_read(path, MAX_INDEX_BYTES, "an index"), path)


def parse_index(text: bytes, path: str) -> dict[str, str]:
    """The ``weight_map`` in an index. Raises RelaxError when there is none."""
    table = _parsed(text, path, "an index")
    found = cast("dict[str, Any]", table).get("weight_map") if isinstance(table, dict) else None
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in cast("dict[str, object]", found).values()):
        raise RelaxError(f"'{path}': expected a weight_map from tensor names to file names, got none")
    return cast("dict[str, str]", found)


def check_index(path: str, weight_map: Mapping[str, str], tensors: Mapping[str, Mapping[str, object]]) -> None:
    """Raises RelaxError when a shard, by whose name its tensors are given, lacks one that the index says it has."""
    for tensor, shard in weight_map.items():
        if tensor not in tensors[shard]:
            raise RelaxError(f"'{path}': tensor {tensor!r}: expected it in '{shard}', got a file without it")


def _read(path: str, limit: int, what: str) -> bytes:
    """The text of a file that does not lie outside of its folder."""
    return read_bytes(inside(os.path.dirname(path) or ".", os.path.basename(path), f"'{path}'"), limit, what)


def _parsed(text: bytes, path: str, what: str) -> object:
    try:
        return parse_json(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        got = other_kind(text[:KIND_BYTES]) or f"{type(error).__name__}: {error}"
        raise RelaxError(f"'{path}': expected {what} in JSON, got {got}") from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found
