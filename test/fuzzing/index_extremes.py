"""Indices and bounds of slices at their extremes: compiled code gives what the reference semantics gives, or both refuse.

Ops are those of the registry with an operand called ``indices``, in the functions of the lit tests, with every dtype that
indices may have; so an op that is new is among them. Slices have constant and symbolic bounds. Arrays are against guard pages.
"""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np

import relaxir as rx
from fuzzing.targets import compiled
from relaxir.dialect.dtypes import dtype_name
from relaxir.dialect.functions import find_function
from relaxir.dialect.struct_info import TensorInfo
from support.guard_pages import guarded_copy
from support.op_samples import inputs_of, load, op_of, samples

__all__ = ["check"]

DTYPES = ("i64", "i32", "i16", "i8", "i4", "ui64", "ui32", "ui16", "ui8", "ui4")
#: Sets of indices that an executable is called with.
CALLS = 12


def check(seed: int) -> None:
    """Raises AssertionError where compiled code and reference semantics differ."""
    rng = random.Random(seed)
    if rng.random() < 0.3:
        _check_slice(rng)
        return
    family, name = rng.choice(_functions())
    _check_function(_text(family, name, rng.choice(DTYPES)), rng)


@functools.cache
def _functions() -> list[tuple[str, str]]:
    """Functions of the lit tests around an op with indices, by family and name."""
    found: list[tuple[str, str]] = []
    for sample in samples():
        op = op_of(_module(sample.family), sample.name)
        if hasattr(type(op), "indices"):
            found.append((sample.family, sample.name))
    return found


@functools.cache
def _module(family: str) -> Any:
    return load(family)


def _text(family: str, name: str, dtype: str) -> str:
    """A function with other indices."""
    module = _module(family)
    op = op_of(module, name)
    position = list(op.operands).index(op.indices)
    old = str(op.operands[position].type)
    info = TensorInfo.of(op.operands[position])
    element = str(info.dtype)
    text = find_function(module, name).operation.get_asm(use_local_scope=True)
    made = str(op.results[0].type)
    text = text.replace(") {\n", f") -> {made} {{\n", 1).replace("  return\n", f"  return %0 : {made}\n")
    return text.replace(old, old.replace(element, dtype, 1) if info.rank == 0 else old.replace(f"x{element}", f"x{dtype}", 1))


def _check_function(text: str, rng: random.Random) -> None:
    module = rx.Module.parse(text)
    (entry,) = module.functions
    function = find_function(module.ir.operation, entry)
    op = op_of(module.ir, entry)
    position = list(op.operands).index(op.indices)
    arrays = inputs_of(op)
    where = [a.arg_number for a in op.operands]
    executable = compiled(module)
    taken = [np.zeros(0)] * len(function.arguments)
    for argument, array in zip(where, arrays, strict=True):
        taken[argument] = array
    extremes = _extremes(arrays[position].dtype, max((d for a in arrays for d in a.shape), default=1))
    for call in range(CALLS):
        indices = _indices(rng, arrays[position], extremes, call)
        taken[where[position]] = indices
        compare(module, executable, entry, taken, f"{text}\nindices {indices.tolist()}")


def _extremes(dtype: np.dtype, size: int) -> list[int]:
    """Numbers around the sizes of arrays, and of the dtype."""
    name = dtype_name(dtype)
    bits, signed = int(name.lstrip("ui")), name.startswith("i")
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    around = [d for n in range(size + 1) for d in (n, -n, -n - 1, n + 1)]
    wanted = [*around, 10**9, -(10**9), 1 << 31, -(1 << 31), (1 << 32) - 1, 1 << 62, -(1 << 62), low, high, low + 1, high - 1]
    return sorted({w for w in wanted if low <= w <= high})


def _indices(rng: random.Random, like: np.ndarray, extremes: list[int], call: int) -> np.ndarray:
    """Those that the sample has, or all the same extreme one, or one of them extreme."""
    flat = [int(v) for v in like.ravel()]
    if call == 0 or not flat:
        return like
    if rng.random() < 0.5:
        flat = [rng.choice(extremes)] * len(flat)
    else:
        flat[rng.randrange(len(flat))] = rng.choice(extremes)
    return np.array(flat, object).astype(like.dtype).reshape(like.shape)


def _check_slice(rng: random.Random) -> None:
    """One slice of a dimension that is static, named or unknown."""
    n, m = rng.choice((1, 2, 5, 8)), rng.choice((1, 3, 6))
    dim = rng.choice((n, "n", None))
    numbers = [
        0,
        1,
        -1,
        n,
        -n,
        -n - 1,
        n + 1,
        n - 1,
        10**9,
        -(10**9),
        2**31 - 1,
        2**31,
        1 << 62,
        -(1 << 62),
        2**63 - 1,
        -(2**63),
    ]
    symbolic = ["m", "m - 3", "m - 1"] + (["n", "n - m", "n - 1", "n - 5", "m - n"] if dim == "n" else [])
    begin, end = ([rng.choice(numbers if rng.random() < 0.6 else symbolic)] for _ in range(2))
    strides = [rng.choice((1, 1, 2, 3, n, 2**31, 2**63 - 1))]
    what = f"x[{dim} = {n}, m = {m}], {begin}:{end}:{strides}"
    b = rx.Builder()
    try:
        with b.function("main"):
            x, _ = b.input("x", (dim, 2), "f32"), b.input("y", ("m",), "f32")
            b.output(y=b.sum(b.strided_slice(x, axes=[0], begin=begin, end=end, strides=strides), axis=[1]))
        module = b.build()
    except rx.RelaxError:  # bounds that no size fits
        return
    executable = compiled(module)  # whatever is known of sizes
    compare(module, executable, "main", [np.arange(2.0 * n, dtype=np.float32).reshape(n, 2), np.ones(m, np.float32)], what)


def compare(module: rx.Module, executable: rx.Executable, entry: str, inputs: list[Any], what: str) -> None:
    """Calls both; equal results, of shapes too, or two refusals are right."""
    try:
        expected, refusal = rx.evaluate(module, entry, *inputs), None
    except rx.RelaxError as error:
        expected, refusal = None, error
    for edge in ("end", "start"):
        try:
            got: Any = executable(*[guarded_copy(a, edge) for a in inputs], entry=entry)
        except rx.RelaxError as error:
            if refusal is None:
                raise AssertionError(f"{what}: compiled code refuses: {error}") from None
            continue
        assert expected is not None, f"{what}: evaluate refuses: {refusal}; compiled code gives {got}"
        for want, found in zip(expected, got if isinstance(got, tuple) else (got,), strict=True):
            assert want.dtype == found.dtype, f"{what}: expected {want.dtype}, got {found.dtype}"
            same = want.shape == found.shape and np.array_equal(want.astype("f8"), found.astype("f8"), equal_nan=True)
            assert same, f"{what}: expected {want}, got {found}"
