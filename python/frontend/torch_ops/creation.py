"""torch ops that make tensors from no tensor, or from the shape of one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.elements import from_numpy, to_numpy
from ...dialect.errors import RelaxError
from ...dialect.inference import is_float
from ...dialect.symbolic import Dim, Expr
from ..emit import cast, concat, emit, expand, float_table, full, info_of, integer, sequence, slice_axis, table, unsqueeze
from ..torch_op import TorchOp, handles
from .manipulate import sizes

#: The longest sequence of fractions that is written into the IR; a longer one is refused.
_LONGEST_TABLE = 4096


@handles("aten.full", "aten.new_full")
def _full(op: TorchOp) -> ir.Value:
    size, value = (0, 1) if op.key == "aten.full" else (1, 2)
    return _filled(op, sizes(op, size), op.number_or_value(value))


@handles("aten.zeros", "aten.ones", "aten.empty.memory_format", "aten.empty_permuted")
def _constant(op: TorchOp) -> ir.Value:
    return _filled(op, sizes(op, 0), 1 if op.key == "aten.ones" else 0)


@handles("aten.new_zeros", "aten.new_ones", "aten.new_empty")
def _new(op: TorchOp) -> ir.Value:
    return _filled(op, sizes(op, 1), 1 if op.key == "aten.new_ones" else 0)


@handles("aten.full_like", "aten.fill.Scalar")
def _full_like(op: TorchOp) -> ir.Value:
    return _filled(op, info_of(op.tensor(0)).shape, op.number_or_value(1))


@handles("aten.zeros_like", "aten.ones_like", "aten.empty_like", "aten.zero")
def _like(op: TorchOp) -> ir.Value:
    return _filled(op, info_of(op.tensor(0)).shape, 1 if op.key == "aten.ones_like" else 0)


@handles("aten.fill.Tensor")
def _fill_tensor(op: TorchOp) -> ir.Value:
    return expand(op.value_in(1, op.dtype), info_of(op.tensor(0)).shape)


@handles("aten.scalar_tensor", "prim.NumToTensor.Scalar")
def _scalar(op: TorchOp) -> ir.Value:
    return _filled(op, (), op.number_or_value(0))


def _filled(op: TorchOp, shape: tuple[Dim, ...], value: Any) -> ir.Value:
    return expand(cast(value, op.dtype), shape) if isinstance(value, ir.Value) else full(value, op.dtype, shape)


@handles("aten.arange", "aten.arange.start", "aten.arange.start_step")
def _arange(op: TorchOp) -> ir.Value:
    start, end, step = 0, op.number(0), 1
    if op.key != "aten.arange":
        start, end = op.number(0), op.number(1)
    if op.key == "aten.arange.start_step":
        step = op.number(2, 1)
    whole = all(isinstance(v, Expr) or float(v).is_integer() for v in (start, end, step))
    if not whole:
        return _fractions(op, start, end, step)
    start, end, step = (v if isinstance(v, Expr) else int(v) for v in (start, end, step))
    dtype = integer() if is_float(op.dtype) else op.dtype
    if not isinstance(step, int):
        return cast(_by_step(op, start, end, step), op.dtype)
    return cast(sequence(start, end, step, dtype), op.dtype)


def _by_step(op: TorchOp, start: int | Expr, end: int | Expr, step: Expr) -> ir.Value:
    """A sequence whose step is a size."""
    count = op.info.shape[0]
    if count is None:
        raise RelaxError(f"expected a sequence whose length is known or symbolic, got {start}, {end}, {step}")
    return emit(ops.Add, emit(ops.Multiply, sequence(0, count), full(step, integer())), full(start, integer()))


def _fractions(op: TorchOp, start: Any, end: Any, step: Any) -> ir.Value:
    if any(isinstance(v, Expr) for v in (start, end, step)):
        raise RelaxError("expected a sequence of integers when its bounds are symbolic")
    count = math.ceil((end - start) / step)
    if count > _LONGEST_TABLE:
        raise RelaxError(f"expected a sequence of fractions of at most {_LONGEST_TABLE} elements, got {count}")
    return float_table(start + step * np.arange(count), op.dtype)


#: How many numbers windows take behind their length, by the operator's form.
_OF_WINDOWS = {"": 0, ".periodic": 1, ".periodic_alpha": 2, ".periodic_alpha_beta": 3, ".beta": 2}
_WINDOWS = [
    *(f"aten.{name}_window{form}" for name in ("bartlett", "blackman") for form in ("", ".periodic")),
    *(f"aten.hamming_window{form}" for form in ("", ".periodic", ".periodic_alpha", ".periodic_alpha_beta")),
    *(f"aten.kaiser_window{form}" for form in ("", ".periodic", ".beta")),
]


@handles(*_WINDOWS)
def _window(op: TorchOp) -> ir.Value:
    """A window of a known length, as torch computes it in f64. (Its own decompositions have that of Hann.)"""
    import torch

    name, _, form = op.key.removeprefix("aten.").partition(".")
    numbers = [op.number(1 + i) for i in range(_OF_WINDOWS[f".{form}" if form else ""])]
    made: torch.Tensor = getattr(torch, name)(op.integer(0, "length of a window"), *numbers, dtype=torch.float64)
    return float_table(made.numpy(), op.dtype)


@handles("aten.tril", "aten.triu")
def _triangle(op: TorchOp) -> ir.Value:
    op_class = ops.Tril if op.key == "aten.tril" else ops.Triu
    return emit(op_class, op.tensor(0), k=op.integer(1, "diagonal", 0))


@handles("aten.tril_indices", "aten.triu_indices")
def _places_of_triangle(op: TorchOp) -> ir.Value:
    """Rows and columns of what a triangle of known sizes keeps, row by row."""
    rows, columns, offset = (op.integer(i, what, 0) for i, what in enumerate(("size", "size", "diagonal")))
    (_, count), is_lower = op.info.shape, op.key == "aten.tril_indices"
    if not isinstance(count, int):
        raise RelaxError(f"expected places of a triangle of known sizes, got {count} of them")
    if count <= _LONGEST_TABLE:
        places = np.tril_indices(rows, offset, columns) if is_lower else np.triu_indices(rows, offset, columns)
        return table(np.stack(places), op.dtype)
    edge = np.arange(rows) + offset
    first = np.zeros_like(edge) if is_lower else np.clip(edge, 0, columns)
    ends = np.cumsum((np.clip(edge + 1, 0, columns) if is_lower else columns) - first)
    starts = np.concatenate([[0], ends[:-1]])
    marks = full(0, integer(), (count + 1,))  # a last row that keeps nothing begins behind all
    marks = emit(ops.ScatterElements, marks, table(starts, integer()), full(1, integer(), (rows,)), axis=0, reduction="add")
    row = emit(ops.Subtract, emit(ops.CumSum, slice_axis(marks, 0, 0, count), axis=0), full(1, integer()))
    column = emit(ops.Add, sequence(0, count), emit(ops.Take, table(first - starts, integer()), row, axis=0))
    return cast(concat([unsqueeze(row, 0), unsqueeze(column, 0)], 0), op.dtype)


@handles("aten.fft_fftfreq", "aten.fft_rfftfreq")
def _frequencies(op: TorchOp) -> ir.Value:
    """Of samples that are so far apart: integers, the second half of them negative but for real samples, by what all span."""
    count, apart = op.integer(0, "number of samples"), float(op.number(1, 1.0))
    (found,) = op.info.shape
    whole = sequence(0, found)
    if op.key == "aten.fft_fftfreq":
        moved = emit(ops.Subtract, whole, full(count, integer()))
        whole = emit(ops.Where, emit(ops.GreaterEqual, whole, full((count + 1) // 2, integer())), moved, whole)
    return emit(ops.Multiply, cast(whole, op.dtype), full(1 / (count * apart), op.dtype))


@handles("vtensor.literal")
def _literal(op: TorchOp) -> ir.Value:
    """A small tensor that is written into the program; signed integers are signless here."""
    array = to_numpy(op.op.attributes["value"])
    type_ = ir.RankedTensorType.get(list(array.shape), op.dtype)
    return emit(ops.Constant, value=from_numpy(array, type_))
