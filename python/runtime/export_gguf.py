"""Weights for llama.cpp: a GGUF file with blocks of Q8_0 and Q4_0 where the executable has integers like theirs.

It has the model's architecture, from ``config.json``, and its vocabulary, from ``tokenizer.json``, where these are there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ..weights.arrays import Array, ArraySpec
from ..weights.formats.gguf_file import BLOCKS
from ..weights.formats.gguf_layout import GgufTensor, GgufValue, bytes_spec, plan_gguf
from ..weights.formats.gguf_metadata import architecture_values, rope_factors
from ..weights.formats.gguf_names import expert_names, file_name, has_norms_of_one_more, is_permuted, is_row, is_wide
from ..weights.formats.gguf_vocabulary import Vocabulary, read_vocabulary
from ..weights.quantizing import q4_0, q8_0, quantized
from .export_weights import Exported, ExportFile, ExportWeight
from .raw_weights import RawWeights

__all__ = ["gguf_file"]

#: By what the frequencies of rotary embeddings are divided.
_FACTORS = "rope_freqs.weight"

_BLOCKS = {8: ("Q8_0", q8_0), 4: ("Q4_0", q4_0)}
#: ``general.file_type``: what most of a file is.
_FILE_TYPES = {"Q4_0": 2, "Q8_0": 7, "bfloat16": 32, "float16": 1, "float32": 0}


def gguf_file(weights: list[ExportWeight], source: RawWeights, path: str) -> ExportFile:
    """The file of these weights, under the format's names where the model's ``config.json`` is there.

    Raises:
        RelaxError: the configuration is of no architecture that can be written.
    """
    config = source.config
    path_of_source = source.description.strip("'")
    values: dict[str, GgufValue] = {**architecture_values(config, path_of_source)}
    architecture = str(values["general.architecture"])
    tensors, exported, problems = dict[str, GgufTensor](), list[Exported](), list[str]()
    for weight in weights:
        names = _names(architecture, weight) if config else (weight.tensor,)
        tensor = _tensor(weight, names)
        problem = _problem(weight, names, tensor)
        if problem is not None:
            problems.append(f"weight '{weight.name}': {problem}")
            continue
        is_turned = is_permuted(architecture, names[0])
        heads = cast("int", values[_heads_key(architecture, names[0])]) if is_turned else 0
        tensors |= dict.fromkeys(names, tensor)
        exported.append(_exported(weight, names, tensor, heads, has_norms_of_one_more(architecture, names[0])))
    if problems:
        return ExportFile((), problems)
    kinds = [t.kind for t in tensors.values() if len(t.shape) > 1]
    most = next((number for kind, number in _FILE_TYPES.items() if kind in kinds), 0)
    values |= {"general.file_type": most} | ({"general.quantization_version": 2} if BLOCKS.keys() & set(kinds) else {})
    if not config:
        note = "tensors keep their names: the source has no config.json that tells the architecture"
        return ExportFile(tuple(exported), [], layout=plan_gguf(tensors, values, path), notes=(note,))
    factors = rope_factors(config, path_of_source)
    if factors is not None:
        exported[0] = _with_constant(exported[0], _FACTORS, factors)
        tensors[_FACTORS] = GgufTensor("float32", factors.shape)
    vocabulary = _vocabulary(source, config)
    notes = () if vocabulary.problem is None else (f"without a vocabulary: {vocabulary.problem}",)
    return ExportFile(tuple(exported), [], layout=plan_gguf(tensors, {**values, **vocabulary.values}, path), notes=notes)


def _vocabulary(source: RawWeights, config: Mapping[str, Any]) -> Vocabulary:
    if not source.files:
        return Vocabulary({}, "the source is no folder of this machine")
    return read_vocabulary(os.path.dirname(source.files[0]) or ".", config)


def _with_constant(exported: Exported, name: str, array: Array) -> Exported:
    """What is written with a weight, whatever its elements are."""
    specs = {**exported.specs, name: ArraySpec.of(array)}
    return replace(exported, specs=specs, constants={**exported.constants, name: array})


def _heads_key(architecture: str, name: str) -> str:
    return f"{architecture}.attention.head_count{'' if '.attn_q.' in name else '_kv'}"


def _names(architecture: str, weight: ExportWeight) -> tuple[str, ...]:
    """What a weight is called in the file: two names for gates and what they gate, none where the architecture has none."""
    name = file_name(architecture, weight.tensor)
    return expert_names(architecture, weight.tensor) if name is None else (name,)


def _tensor(weight: ExportWeight, names: Sequence[str]) -> GgufTensor:
    """Narrow ones in blocks; vectors of floats in f32, as all that reads the format expects. Several have the same."""
    shape = weight.shape
    if len(names) > 1 and len(shape) == 3:
        shape = (shape[0], shape[1] // len(names), shape[2])
    if weight.narrow is not None and weight.narrow.bits in _BLOCKS:
        return GgufTensor(_BLOCKS[weight.narrow.bits][0], shape)
    if names and is_row(names[0]) and len(shape) == 2 and shape[0] == 1:
        shape = shape[1:]
    name = weight.spec.dtype.name
    is_f32 = name in ("bfloat16", "float16") and (len(shape) == 1 or any(map(is_wide, names)))
    return GgufTensor("float32" if is_f32 else name, shape)


def _problem(weight: ExportWeight, names: Sequence[str], tensor: GgufTensor) -> str | None:
    """Why a weight cannot be in the file, with what would help."""
    if not names:
        return f"expected a name that the architecture has in GGUF, got '{weight.tensor}'"
    if len(names) > 1 and (len(weight.shape) != 3 or weight.shape[1] % len(names)):
        return f"expected experts with as many rows of each of {', '.join(names)}, got {list(weight.shape)}"
    narrow = weight.narrow
    if narrow is None:
        return tensor.problem(names[0])
    if narrow.axis != len(weight.shape) - 1:
        return weight.axis_problem
    if narrow.group != 32 or narrow.scale != "f16":
        kind = tensor.kind
        got = f"one in {narrow.scale or 'f32'} per {narrow.group}"
        return f"expected a scale in f16 per 32 inputs for {kind}, got {got}: compile with weights='{kind.lower()}'"
    return tensor.problem(names[0])


def _exported(weight: ExportWeight, names: Sequence[str], tensor: GgufTensor, heads: int, is_more: bool) -> Exported:
    unit = weight.shape[0] // heads if heads else 1
    spec = bytes_spec(tensor)

    def made(rows: Array) -> Mapping[str, Array]:
        ordered = _permuted(rows, unit) if heads else rows
        parts = np.split(ordered, len(names), 1) if len(names) > 1 else [ordered]
        return dict(zip(names, map(one, parts), strict=True))

    def one(rows: Array) -> Array:
        if weight.narrow is not None:
            bits = weight.narrow.bits
            flat = rows.reshape(-1, rows.shape[-1])
            return _BLOCKS[bits][1](quantized(flat, bits, weight.narrow.group, "f16"))
        wide = weight.wide(rows).astype(spec.dtype, copy=False)
        return wide + np.float32(1) if is_more else wide

    return Exported(weight, dict.fromkeys(names, spec), made, unit)


def _permuted(rows: Array, head: int) -> Array:
    """As the converter of llama.cpp does: rotary embeddings are of neighbours there, of halves here."""
    split = rows.reshape(-1, 2, head // 2, *rows.shape[1:])
    return split.swapaxes(1, 2).reshape(rows.shape)
