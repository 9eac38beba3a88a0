"""Random modules of every shape, called with arrays against guard pages in two rounds of sizes, against the reference."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import relaxir as rx
from fuzzing.targets import compiled
from relaxir.debugging.meaning import entry_functions
from relaxir.dialect.bindings import func
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.functions import argument_names, body_of, name_of, num_input
from relaxir.dialect.struct_info import TensorInfo
from support.guard_pages import guarded, guarded_copy
from support.shape_flow import COUNTS
from support.shape_generator import random_shapes
from support.shape_values import ROUNDS, SYMBOLS, UNKNOWN, size_of

__all__ = ["check", "check_text", "text"]

Array = np.ndarray[Any, Any]

#: How far results may be off whose names do not say it, as those of reduced modules: sums differ in the last bits.
_TOLERANCE = 1e-4


def text(seed: int) -> str:
    """The module of a seed."""
    return random_shapes(seed)


def check(seed: int) -> None:
    """Compiles the module of a seed and compares every result of every entry in every round; no module is refused."""
    check_text(text(seed))


def check_text(text: str, made: Callable[[rx.Module], Any] = compiled) -> None:
    """The same of a module, by the executable that ``made`` makes of it."""
    module = rx.Module.parse(text)
    entries = {name_of(f): f for f in entry_functions(module.ir.operation)}
    rng = np.random.default_rng(0)
    raw = {n: _values(n, t, 0, rng) for f in entries.values() for n, t in _weights(f).items()}
    executable = made(module)
    executable.bind(executable.prepare(raw))
    for round_ in range(ROUNDS):
        for name, function in entries.items():
            inputs = [_values(n, t, round_, rng) for n, t in _inputs(function).items()]
            weights = {n: raw[n] for n in _weights(function)}
            _compare(module, executable, name, inputs, weights, round_)


def _compare(
    module: rx.Module, executable: Any, name: str, inputs: list[Array], weights: dict[str, Array], round_: int
) -> None:  # fmt: skip
    edge = "end" if round_ % 2 == 0 else "start"
    want = rx.evaluate(module, name, *inputs, weights=weights)
    into = [guarded(w.shape, w.dtype, edge, fill=255) for w in want]
    executable(*(guarded_copy(np.asarray(x), edge) for x in inputs), entry=name, out=tuple(into) if len(into) != 1 else into[0])
    names = [o.name for o in executable.manifest.entries[name].outputs]
    for what, expected, found in zip(names, want, into, strict=True):
        _close(f"@{name}, round {round_}, '{what}'", expected, found)


def _close(what: str, expected: Array, found: Array) -> None:
    said = re.search(r" within (\S+)", what)
    within = float(said[1].rstrip("'")) if said else None
    left, right = (a.astype("f8") for a in (expected, found))
    if within is None:
        fine = np.allclose(right, left, _TOLERANCE, _TOLERANCE, equal_nan=True)
    else:
        fine = bool(np.all((np.abs(left - right) <= within) | (left == right) | (np.isnan(left) & np.isnan(right))))
    assert fine, f"{what}: expected {expected}, got {found}"


def _arguments(function: func.FuncOp) -> dict[str, TensorInfo]:
    block = body_of(function)
    assert block is not None
    names = argument_names(function)
    return {n or f"argument{i}": TensorInfo.of(a) for i, (n, a) in enumerate(zip(names, block.arguments, strict=True))}


def _inputs(function: func.FuncOp) -> dict[str, TensorInfo]:
    return dict(list(_arguments(function).items())[: num_input(function)])


def _weights(function: func.FuncOp) -> dict[str, TensorInfo]:
    count = num_input(function)
    return {} if count is None else dict(list(_arguments(function).items())[count:])


def _values(name: str, info: TensorInfo, round_: int, rng: np.random.Generator) -> Array:
    """What an argument is in a round: small integers; flags and counts as their names say."""
    if name.startswith("flag"):
        return np.array(bool(int(name[4:]) >> round_ & 1))
    if name == "count":
        return np.array(COUNTS[round_])
    sizes = [size_of(d, round_, SYMBOLS) for d in info.shape]
    shape = [UNKNOWN[i][round_] if s is None else s for i, s in enumerate(sizes)]
    kind = str(info.dtype)
    values = rng.integers(0 if kind.startswith(("ui", "i1")) and kind != "i16" else -3, 4, math.prod(shape)).reshape(shape)
    return (values > 1 if kind == "i1" else values).astype(numpy_dtype(info.dtype))
