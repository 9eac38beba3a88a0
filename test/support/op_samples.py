"""The one-op functions of ``test/dialect/<family>.mlir`` as samples: every op with types and attributes that verify."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relaxir.dialect import context, symbolic
from relaxir.dialect.bindings import ir
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.functions import body_of, find_function
from relaxir.dialect.op import EffectOp
from relaxir.dialect.reference.registry import FAMILIES
from relaxir.dialect.struct_info import TensorInfo, is_tensor
from support.float_checks import floats

DIALECT_TESTS = Path(__file__).resolve().parent.parent / "dialect"
SIZES = {"n": 3, "m": 2, "b": 2, "s": 3, "t": 4, "h": 7, "w": 6}


@dataclass(frozen=True)
class Sample:
    """One function with one relax op."""

    family: str
    name: str

    def __str__(self) -> str:
        return f"{self.family}.{self.name}"


def lit_file(family: str) -> Path:
    """The round-trip test of a family."""
    return DIALECT_TESTS / f"{family.replace('_', '-')}.mlir"


def load(family: str) -> ir.Module:
    """The module of a family's samples, in a context of its own."""
    return ir.Module.parse(lit_file(family).read_text(), context.new_context())


def samples() -> list[Sample]:
    """All samples, by the functions that the files define."""
    found = []
    for family in FAMILIES:
        lines = lit_file(family).read_text().splitlines()
        found += [Sample(family, s[len("func.func @") : s.index("(")]) for s in lines if s.startswith("func.func @")]
    return found


def op_of(module: ir.Module, name: str) -> EffectOp:
    """The relax op of a sample's function."""
    return next(op for op in body_of(find_function(module, name)).operations if isinstance(op, EffectOp))


def inputs_of(op: EffectOp) -> list[np.ndarray[Any, Any]]:
    """Random arrays for the tensor operands of a sample's op that it accepts: indices in range, shifts below the width."""
    rng = np.random.default_rng(zlib.crc32(str(op).encode()))
    infos = [TensorInfo.of(v) for v in op.operands if is_tensor(v)]
    results = [TensorInfo.of(v) for v in op.results]
    return [_random(rng, op, i, info, _shape(info, [*infos, *results])) for i, info in enumerate(infos)]


def random_operand(op: EffectOp, position: int) -> np.ndarray[Any, Any]:
    """One of :func:`inputs_of`."""
    return inputs_of(op)[position]


def _shape(info: TensorInfo, around: list[TensorInfo]) -> tuple[int, ...]:
    """Symbols have one size everywhere; an unknown dimension is what the other tensors have there."""
    shape = []
    for axis, dim in enumerate(info.shape):
        if dim is None:
            others = [o.shape[axis] for o in around if o.rank == info.rank]
            dim = next((d for d in others if d is not None), 4)
        shape.append(symbolic.evaluate(dim, SIZES))
    return tuple(shape)


def _random(rng: np.random.Generator, op: EffectOp, position: int, info: TensorInfo, shape: tuple[int, ...]) -> Any:
    dtype, name = numpy_dtype(info.dtype), op.operation.name.removeprefix("relax.")
    if str(info.dtype).lstrip("b").startswith("f"):
        return floats(rng, shape, str(info.dtype), specials=False)
    if dtype == np.bool_:
        return rng.random(shape) < 0.7
    if name in ("take", "packed_take", "gather_elements", "gather_nd", "index_copy", "scatter_elements"):
        return rng.integers(-4, 4, shape).astype(dtype)
    low = 0 if str(info.dtype).startswith("u") or "shift" in name else -7
    return rng.integers(low, 8, shape).astype(dtype)
