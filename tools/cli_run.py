"""``relaxir run``: inputs from files or at random, one call, outputs by name."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..dialect.errors import RelaxError
from ..dialect.symbolic import Expr, evaluate
from ..lowering.manifest_specs import EntrySpec, TensorSpec
from ..runtime.executable import Executable
from .cli_io import read_npy

__all__ = ["call_entry", "entry_named", "inputs_of"]

Array = np.ndarray[Any, Any]


def call_entry(executable: Executable, arguments: argparse.Namespace) -> dict[str, Array]:
    """Binds the weights, makes the inputs and calls the entry that the command line names; outputs by name.

    Raises:
        RelaxError: an input, size, weight or entry is missing, unknown or wrong.
    """
    entry = entry_named(executable, arguments.entry)
    inputs = inputs_of(entry, arguments)
    if arguments.weights is not None:
        executable.bind(arguments.weights)
    elif entry.weights:
        raise RelaxError(f"expected --weights: entry '{entry.name}' has {len(entry.weights)} weights")
    given, named = entry.call_of([inputs[s.name] for s in entry.inputs])
    result = executable(*given, entry=entry.name, **named)
    values = result if isinstance(result, tuple) else (result,)
    return {spec.name: value for spec, value in zip(entry.results, values, strict=True)}


def entry_named(executable: Executable, name: str | None) -> EntrySpec:
    """The only entry, or that of a name. Raises RelaxError when there is none."""
    entries = executable.entries
    if name is None and len(entries) == 1:
        return next(iter(entries.values()))
    wanted = name or "main"
    if wanted not in entries:
        raise RelaxError(f"expected --entry to name one of {', '.join(entries)}, got {name or 'none'}")
    return entries[wanted]


def inputs_of(entry: EntrySpec, arguments: argparse.Namespace) -> dict[str, Array]:
    """Inputs by name, of files and at random, as ``--input``, ``--random`` and ``--dim`` say.

    Raises:
        RelaxError: one is missing, unknown or wrong.
    """
    specs = {s.name: s for s in entry.inputs}
    files: dict[str, str] = arguments.inputs
    unknown = next((n for n in files if n not in specs), None)
    if unknown is not None:
        raise RelaxError(f"expected --input for {', '.join(specs) or 'nothing'}, got '{unknown}'")
    given = {name: read_npy(path, specs[name].dtype) for name, path in files.items()}
    missing = [s for s in entry.inputs if s.name not in given]
    if missing and arguments.random is None:
        raise RelaxError(f"expected --input {missing[0].name}=FILE.npy ({missing[0]}), or --random")
    sizes = _sizes(entry, arguments.dims) | _sizes_of(given, specs)
    random = np.random.default_rng(arguments.random or 0)
    return given | {spec.name: _random(spec, sizes, random) for spec in missing}


def _sizes(entry: EntrySpec, given: Mapping[str, int]) -> dict[str, int]:
    """The sizes that --dim gives to symbols of the entry."""
    names = [s.name for s in entry.symbols]
    for name in given:
        if name not in names:
            raise RelaxError(f"expected --dim for {', '.join(names) or 'nothing'}, got '{name}'")
    return dict(given)


def _sizes_of(given: Mapping[str, Array], specs: Mapping[str, TensorSpec]) -> dict[str, int]:
    """The sizes that inputs from files give to plain symbols; whether they agree is checked by the call."""
    found: dict[str, int] = {}
    for name, array in given.items():
        if array.ndim == len(specs[name].shape):
            dims = zip(specs[name].shape, array.shape, strict=True)
            found |= {d.text: size for d, size in dims if isinstance(d, Expr) and d.text.isidentifier()}
    return found


def _random(spec: TensorSpec, sizes: Mapping[str, int], random: np.random.Generator) -> Array:
    """Floats of the normal distribution; integers of 0 and 1, which are valid as indices, ids and masks alike."""
    shape = [_size(spec, d, sizes) for d in spec.shape]
    kind = np.dtype(spec.dtype)
    try:
        if kind.kind in "bui" or "int" in kind.name:
            return random.integers(0, 2, shape).astype(kind)
        return random.standard_normal(shape, np.float32).astype(kind)
    except (MemoryError, ValueError):
        raise RelaxError(f"expected memory for input '{spec.name}' of shape {shape}, got none") from None


def _size(spec: TensorSpec, dim: int | Expr, sizes: Mapping[str, int]) -> int:
    missing = sorted(dim.names - set(sizes)) if isinstance(dim, Expr) else []
    if missing:
        raise RelaxError(f"expected --dim {missing[0]}=SIZE for input '{spec.name}' ({spec})")
    size = evaluate(dim, sizes)
    if size < 0:
        raise RelaxError(f"expected sizes that give input '{spec.name}' ({spec}) no negative dimension, got {size}")
    return size
