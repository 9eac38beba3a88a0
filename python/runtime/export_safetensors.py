"""Weights for vLLM and transformers: a safetensors file, with quantized layers as compressed-tensors packs them.

``config.json`` beside it says how they are packed; it is the source's, but for that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from ..dialect.errors import RelaxError
from ..dialect.passes.pipeline_text import list_text
from ..weights.arrays import Array, ArraySpec
from ..weights.files import os_errors, read_bytes, replacing, written_path
from ..weights.model_folder import CONFIG, MAX_CONFIG_BYTES, SINGLE
from ..weights.quantizing import quantized, words
from .export_weights import Exported, ExportFile, ExportWeight
from .raw_weights import RawWeights

__all__ = ["safetensors_file"]

_END = ".weight"


def safetensors_file(weights: list[ExportWeight], source: RawWeights, path: str) -> ExportFile:
    """The file of these weights under the checkpoint's names.

    Raises:
        RelaxError: another ``config.json`` is where this one's goes.
    """
    problems = [f"weight '{w.name}': {problem}" for w in weights if (problem := _problem(w))]
    narrow = [w for w in weights if w.narrow is not None]
    if narrow and os.path.basename(path) != SINGLE:
        problems.append(f"expected the name {SINGLE}, beside which {CONFIG} says how weights are packed")
    if problems:
        return ExportFile((), problems)
    exported = tuple(e for w in weights for e in _exported(w))
    if not narrow:
        return ExportFile(exported, [], {"format": "pt"})
    place = os.path.join(os.path.dirname(written_path(path)), CONFIG)
    text = json.dumps(_config(source.config, weights), indent=2, sort_keys=True).encode() + b"\n"
    _check_free(place, text)
    return ExportFile(exported, [], {"format": "pt"}, finish=partial(_write, place, text))


def _problem(weight: ExportWeight) -> str | None:
    narrow = weight.narrow
    if narrow is None:
        return None
    if len(weight.shape) > 2 and not weight.parts:
        keep = f"relax-quantize-weights{{keep={list_text([weight.name])}}} leaves it wide"
        got = f"those of {weight.shape[0]} in one tensor, for which compressed-tensors has no layout"
        return f"expected integers of a matrix, got {got}: {keep}, format='gguf' has experts"
    if narrow.axis != len(weight.shape) - 1:
        return weight.axis_problem
    if not weight.parts and not weight.tensor.endswith(_END):
        return f"expected a name that ends with '{_END}' to be packed, got '{weight.tensor}'"
    return None


def _exported(weight: ExportWeight) -> Iterator[Exported]:
    """A tensor, or those of each expert as the checkpoint has them: programs know these names, whatever they join later."""
    if not weight.parts:
        yield _matrix(weight, weight.tensor, weight.spec)
    for e, names in enumerate(weight.parts):
        rows = weight.shape[1] // len(names)
        spec = ArraySpec(weight.spec.dtype, (rows, weight.shape[2]))
        parts = [_matrix(weight, name, spec) for name in names]
        specs = {name: s for part in parts for name, s in part.specs.items()}
        constants = {name: array for part in parts for name, array in part.constants.items()}
        yield Exported(weight, specs, partial(_made, parts, rows), 1, constants, (e, e + 1))


def _made(parts: list[Exported], rows: int, expert: Array) -> Mapping[str, Array]:
    """The tensors of one expert, ``[1, rows of all of its matrices, inputs]``."""
    return {name: a for i, part in enumerate(parts) for name, a in part.made(expert[0, i * rows : (i + 1) * rows]).items()}


def _matrix(weight: ExportWeight, tensor: str, spec: ArraySpec) -> Exported:
    """One tensor of the checkpoint, packed where the weight is narrow."""
    narrow, layer = weight.narrow, tensor.removesuffix(_END)
    if narrow is None:
        return Exported(weight, {tensor: spec}, lambda rows: {tensor: weight.wide(rows)})
    n, k = spec.shape
    packed, scale, shape = (f"{layer}.weight_{end}" for end in ("packed", "scale", "shape"))
    specs = {
        packed: ArraySpec(np.dtype(np.int32), (n, -(-k * narrow.bits // 32))),
        scale: ArraySpec(np.dtype(np.float32), (n, k // narrow.group)),
        shape: ArraySpec(np.dtype(np.int64), (2,)),
    }

    def made(rows: Array) -> Mapping[str, Array]:
        found = quantized(rows, narrow.bits, narrow.group, narrow.scale or "f32")
        return {packed: words(found.integers, narrow.bits), scale: found.scales}

    return Exported(weight, specs, made, constants={shape: np.array([n, k], np.int64)})


def _config(config: Mapping[str, Any], weights: list[ExportWeight]) -> dict[str, Any]:
    """The configuration with how layers are packed, those alike in one group."""
    kinds = dict[tuple[int, int | None], list[str]]()
    for weight in weights:
        if weight.narrow is not None:
            group = None if weight.narrow.group == weight.shape[-1] else weight.narrow.group
            names = [n for expert in weight.parts for n in expert] or [weight.tensor]
            kinds.setdefault((weight.narrow.bits, group), []).extend(name.removesuffix(_END) for name in names)
    groups = {
        f"group_{i}": _group(*kind, layers if len(kinds) > 1 else ["Linear"]) for i, (kind, layers) in enumerate(kinds.items())
    }
    wide = [w.tensor.removesuffix(_END) for w in weights if w.narrow is None and len(w.shape) > 1 and w.tensor.endswith(_END)]
    table = {
        "quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
        "config_groups": groups, "ignore": wide,
    }  # fmt: skip
    return {**config, "quantization_config": table}


def _group(bits: int, group: int | None, targets: list[str]) -> dict[str, Any]:
    strategy = {"strategy": "channel"} if group is None else {"strategy": "group", "group_size": group}
    how = {"num_bits": bits, "type": "int", "symmetric": True, "dynamic": False, **strategy}
    return {"targets": targets, "weights": how, "input_activations": None, "output_activations": None}


def _check_free(path: str, text: bytes) -> None:
    if os.path.lexists(path) and read_bytes(path, MAX_CONFIG_BYTES, "a configuration") != text:
        raise RelaxError(f"cannot write '{path}': expected none, or the one that this model gets, got another")


def _write(path: str, text: bytes) -> None:
    with os_errors("write", path), replacing(path) as file:
        file.write(text)
