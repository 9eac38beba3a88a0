"""Steps whose results are made from one weight here and from another there: a step in, a function for each such segment out.

Before, of weights that a rewrite put side by side::

    func.func @main_transform_params.step0(%q: tensor<4096x4096xf32>, %k: tensor<1024x4096xf32>) -> (tensor<160x4096x32xf32>)
      %0 = "relax.concat"(%q, %k) {axis = 0 : i64}

after, beside it::

    func.func @main_transform_params.step0.segment0(%q: tensor<4096x4096xf32>) -> (tensor<128x4096x32xf32>)
    func.func @main_transform_params.step0.segment1(%k: tensor<1024x4096xf32>) -> (tensor<32x4096x32xf32>)

A segment is a range of the first dimension of one result. From there, what is read follows backwards through the ops: parts
where dimensions are tied (:mod:`..dialect.dim_ties`), one operand of several that were joined, the place that was sliced;
whole tensors else. Where a border between weights falls into a panel, that panel is a segment, and joins the parts in it.
Segments run in pieces as steps do, those of one index of the first dimension along the next one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..dialect.bindings import func, ir
from ..dialect.dim_ties import TiedDim
from ..dialect.functions import (
    body_of,
    full_argument_names,
    name_of,
    result_names,
    returned_values,
    set_names,
    set_num_input,
    update_type,
)
from ..dialect.inference import normalize_axis
from ..dialect.op import attrs_of
from ..dialect.ops import Concat, Split, StridedSlice
from ..dialect.struct_info import TensorInfo
from ..dialect.traversal import Nested, clone_with, free_values, run_nested
from . import split_steps
from .c_names import symbol_name
from .manifest_steps import PartsSpec, TensorPart
from .split_steps import (
    LEAST_OF_PRODUCT,
    bytes_of_step,
    first_axis,
    is_in_product,
    nbytes_of,
    shape_of,
    split_step,
    tie_of,
)

__all__ = ["Segment", "narrowed", "segments_of"]

#: Segments of a result: of as many experts as models have. Each is a line of the manifest; equal ones are compiled once.
_MOST = 4096


@dataclass(frozen=True)
class Span:
    """Indices of a value along an axis, from ``begin`` to before ``end``."""

    axis: int
    begin: int
    end: int


@dataclass(frozen=True)
class Segment:
    """A function that makes a part of a result, from parts of what the step takes."""

    function: func.FuncOp
    gets: tuple[TensorPart, ...]
    made: TensorPart

    def split(self) -> tuple[PartsSpec, list[func.FuncOp]]:
        """How it runs, and the functions for that: pieces, or itself."""
        found = split_step(self.function)
        if found is not None:
            return found
        (result,) = returned_values(self.function)
        axis, shape = first_axis(result), shape_of(result)
        whole = (axis, shape[axis]) if shape else None
        nothing = (None,) * len(self.gets)
        return PartsSpec(1, symbol_name(self.function), None, 0, nothing, (whole,)), [self.function]


def segments_of(step: func.FuncOp, each: int | None) -> list[Segment]:
    """The segments of a step, as functions behind it; none where there is only one, or an op needs a whole tensor.

    Args:
        step: a function of weights alone.
        each: bytes of the pieces that the step is split in; None where it is not.
    """
    made: list[Segment] = []
    least = 2 * split_steps.PIECE_BYTES
    block = body_of(step)
    assert block is not None
    if (each or least) < least or not _has_known_sizes(block) or bytes_of_step(step) < least:
        return []
    for position, result in enumerate(returned_values(step)):
        for begin, end in _ranges(result):
            cut = Span(first_axis(result), begin, end)
            segment = _Builder(step, f"{name_of(step)}.segment{len(made)}").build(position, result, cut)
            if segment is None:
                for other in made:
                    other.function.operation.erase()
                return []
            made.append(segment)
    if len(made) == 1:
        made.pop().function.operation.erase()
    return made


def narrowed(step: func.FuncOp) -> tuple[func.FuncOp, tuple[TensorPart, ...]]:
    """A step that takes no more of its weights than it reads, and what that is; the step itself where it reads all of them.

    Steps that take one expert each out of a tensor of many so read it once all together, and are one computation.
    """
    whole = tuple(TensorPart(i) for i in range(len(step.arguments)))
    block = body_of(step)
    assert block is not None
    if not any(isinstance(op, Split | StridedSlice) for op in block.operations) or not _has_known_sizes(block):
        return step, whole
    found = _Builder(step, name_of(step)).build_all()
    if found is None:
        return step, whole
    step.operation.erase()
    return found


def _has_known_sizes(block: ir.Block) -> bool:
    """Whether all that is computed has sizes that types say: data decides some."""
    types = [result.type for op in block.operations for result in op.results]
    return all(t.has_static_shape for t in types if isinstance(t, ir.RankedTensorType))


def _ranges(result: ir.Value) -> Iterator[tuple[int, int]]:
    """The segments of a result along its first dimension."""
    size = shape_of(result)[first_axis(result)] if shape_of(result) else 1
    found = _borders(result)
    places = {0, size}
    if found is not None and size:
        unit, borders = found
        for border in borders:
            around = (border // unit * unit, -(-border // unit) * unit)
            places |= {int(place) for place in around if 0 < place < size}
        if nbytes_of(result) * unit // size > split_steps.PIECE_BYTES:
            places |= set(range(0, size, unit)[: _MOST + 1])  # more are none
    ends = sorted(places)
    yield from itertools.pairwise(ends) if len(ends) <= _MOST else [(0, size)]


def _borders(result: ir.Value) -> tuple[int, set[Fraction]] | None:
    """How many indices of a result's first dimension are made together, and where in it what it is made from changes."""
    if not shape_of(result):
        return None
    unit, borders = 1, set[Fraction]()
    pending = [(TiedDim(result, first_axis(result)), Fraction(0))]
    seen = set[tuple[ir.Value, int, Fraction]]()
    while pending:
        dim, offset = pending.pop()
        unit = math.lcm(unit, dim.ratio.denominator)
        is_end = isinstance(dim.value.owner, ir.Block) or shape_of(dim.value)[dim.axis] == 1
        if is_end or (dim.value, dim.axis, offset) in seen:
            continue
        seen.add((dim.value, dim.axis, offset))
        moved = _moved(dim.value, dim.axis)
        if moved is not None:
            pending += [(TiedDim(v, dim.axis, dim.ratio), offset - begin) for v, begin in moved]
            borders |= {(begin - offset) / dim.ratio for _, begin in moved if begin > 0}
            continue
        tie = tie_of(_owner(dim.value), dim)
        if tie is None:
            return None
        operands = list(_owner(dim.value).operands)
        pending += [(d, offset * d.ratio / dim.ratio) for d in tie if d.value in operands]
    return unit, borders


def _owner(value: ir.Value) -> ir.Operation:
    return value.owner.operation if isinstance(value.owner, ir.OpView) else value.owner


def _moved(value: ir.Value, axis: int) -> list[tuple[ir.Value, int]] | None:
    """The operands that lie in a value along an axis, and where each begins there; None of an op that does not move any so.

    What was sliced begins before the value.
    """
    op = value.owner.opview if isinstance(value.owner, ir.Operation) else value.owner
    rank = len(shape_of(value))
    if isinstance(op, Concat) and normalize_axis(op.axis, rank) == axis:
        return [(op.lhs, 0), (op.rhs, shape_of(op.lhs)[axis])]
    if isinstance(op, Split) and normalize_axis(op.axis, rank) == axis:
        place = next(i for i, part in enumerate(op.results) if part == value)
        return [(op.x, -place * shape_of(value)[axis])]
    if isinstance(op, StridedSlice):
        return _sliced(op, axis)
    return None


def _sliced(op: StridedSlice, axis: int) -> list[tuple[ir.Value, int]] | None:
    """Of a slice along this axis alone, without gaps."""
    attrs = attrs_of(op)
    axes = [normalize_axis(a, len(shape_of(op.x))) for a in attrs["axes"]]
    if axes != [axis] or attrs["strides"] not in (None, [1]) or not isinstance(attrs["begin"][0], int):
        return None
    begin, _, _ = slice(attrs["begin"][0], None).indices(shape_of(op.x)[axis])
    return [(op.x, -begin)]


def _sliced_whole(value: ir.Value) -> Span | None:
    """All of a value that is a slice of another one, or one of its parts, along the axis of that."""
    op = value.owner.opview if isinstance(value.owner, ir.Operation) else value.owner
    if not isinstance(op, Split | StridedSlice):
        return None
    axes = [op.axis] if isinstance(op, Split) else list(op.axes)
    if len(axes) != 1:
        return None
    axis = normalize_axis(axes[0], len(shape_of(value)))
    size = shape_of(value)[axis]
    return Span(axis, 0, size) if size else None


class _CannotCutError(Exception):
    """An op needs a whole tensor where a part of its result is wanted, or a weight is read in two ways."""


class _Builder:
    """The function of a segment in the making: values of the step, whole or cut, once each."""

    def __init__(self, step: func.FuncOp, name: str):
        self._step = step
        with ir.InsertionPoint.after(step.operation), step.location:
            self._function = func.FuncOp(name, ([], []))
        self._entry = self._function.add_entry_block()
        self._made: dict[tuple[ir.Value, Span | None], ir.Value] = {}
        self._read: dict[ir.Value, Span | None] = {}

    def build(self, position: int, result: ir.Value, cut: Span) -> Segment | None:
        """The segment; None where its ops do not work on parts."""
        part = _whole_as_none(result, cut)
        if not self._make_all([(result, part)]):
            return None
        gets = self._finished([(result, part)], [result_names(self._step)[position]])
        return Segment(self._function, gets, TensorPart(position, _as_ranges(part)))

    def build_all(self) -> tuple[func.FuncOp, tuple[TensorPart, ...]] | None:
        """All results, and what they are made from; None where that is all that the step takes."""
        wanted = [(result, None) for result in returned_values(self._step)]
        if not self._make_all(wanted):
            return None
        if not any(self._read.values()):
            self._function.operation.erase()
            return None
        return self._function, self._finished(wanted, result_names(self._step))

    def _make_all(self, wanted: Sequence[tuple[ir.Value, Span | None]]) -> bool:
        """Makes these; False, and no function is left, where an op does not work on parts."""
        try:
            for value, part in wanted:
                run_nested(self._make(value, part))
        except _CannotCutError:
            self._function.operation.erase()
            return False
        return True

    def _finished(
        self, wanted: Sequence[tuple[ir.Value, Span | None]], names: Sequence[str | None]
    ) -> tuple[TensorPart, ...]:  # fmt: skip
        """Returns what was made, under these names. Gives what the function takes."""
        with ir.InsertionPoint(self._entry), self._step.location:
            func.ReturnOp([self._made[key] for key in wanted])
        update_type(self._function)
        set_num_input(self._function, 0)
        arguments, all_names = list(self._step.arguments), full_argument_names(self._step)
        positions = [arguments.index(v) for v in self._read]
        set_names(self._function, [all_names[i] for i in positions], names)
        return tuple(TensorPart(i, _as_ranges(c)) for i, c in zip(positions, self._read.values(), strict=True))

    def _make(self, value: ir.Value, cut: Span | None) -> Nested:
        """Makes a value, or the part of it."""
        if (value, cut) in self._made:
            return
        if isinstance(value.owner, ir.Block):
            self._made[value, cut] = self._argument(value, cut)
            return
        along = cut or _sliced_whole(value)
        moved = None if along is None else _moved(value, along.axis)
        if moved is not None:
            assert along is not None
            yield self._make_moved(value, moved, along)
            self._made[value, cut] = self._made[value, along]
            return
        op = _owner(value)
        parts = dict[ir.Value, Span | None]() if cut is None else _tied_spans(op, value, cut)
        read = list(dict.fromkeys(free_values(op)))
        for operand in read:
            yield self._make(operand, parts.get(operand))
        clone = clone_with(op, {v: self._made[v, parts.get(v)] for v in read}, ir.InsertionPoint(self._entry))
        for before, after in zip(op.results, clone.results, strict=True):
            with op.location:
                after.set_type(_type(before, parts.get(before)))
            self._made[before, parts.get(before)] = after

    def _make_moved(self, value: ir.Value, moved: Sequence[tuple[ir.Value, int]], cut: Span) -> Nested:
        """The part of what operands lie in, from those that are in the part: of a chain of joined ones without the chain."""
        found: list[ir.Value] = []
        pending = [(v, begin) for v, begin in reversed(moved)]
        while pending:
            inner, begin = pending.pop()
            size = shape_of(inner)[cut.axis]
            low, high = max(cut.begin - begin, 0), min(cut.end - begin, size)
            if low >= high:
                continue
            further = None if isinstance(inner.owner, ir.Block) else _moved(inner, cut.axis)
            if further is not None:
                pending += [(v, begin + b) for v, b in reversed(further)]
                continue
            part = _whole_as_none(inner, Span(cut.axis, low, high))
            yield self._make(inner, part)
            found.append(self._made[inner, part])
        made = found[0]
        with ir.InsertionPoint(self._entry), _owner(value).location:
            for other in found[1:]:
                made = Concat.create(made, other, axis=cut.axis).result
        self._made[value, cut] = made

    def _argument(self, value: ir.Value, cut: Span | None) -> ir.Value:
        if value in self._read:
            raise _CannotCutError
        self._read[value] = cut
        return self._entry.add_argument(_type(value, cut), value.location)


def _tied_spans(op: ir.Operation, value: ir.Value, cut: Span) -> dict[ir.Value, Span | None]:
    """Which parts of operands and results an op has where one result is cut; others are whole."""
    tie = tie_of(op, TiedDim(value, cut.axis))
    if tie is None or not {d.value for d in tie}.issuperset(op.results):
        raise _CannotCutError
    if is_in_product(value, cut.axis) and cut.end - cut.begin < LEAST_OF_PRODUCT:
        raise _CannotCutError
    whole = shape_of(value)[cut.axis]
    return {d.value: _whole_as_none(d.value, _scaled(cut, whole, d)) for d in tie}


def _scaled(cut: Span, whole: int, dim: TiedDim) -> Span:
    """What is of another dimension, which has so many indices for each; where one ends, the other one does."""
    begin, end = cut.begin * dim.ratio, cut.end * dim.ratio
    if cut.end == whole:
        end = Fraction(shape_of(dim.value)[dim.axis])
    if begin.denominator != 1 or end.denominator != 1:
        raise _CannotCutError
    return Span(dim.axis, int(begin), int(end))


def _whole_as_none(value: ir.Value, cut: Span) -> Span | None:
    shape = shape_of(value)
    return None if not shape or (cut.begin, cut.end) == (0, shape[cut.axis]) else cut


def _as_ranges(cut: Span | None) -> tuple[tuple[int, int, int], ...]:
    return () if cut is None else ((cut.axis, cut.begin, cut.end),)


def _type(value: ir.Value, cut: Span | None) -> ir.Type:
    if cut is None:
        return value.type
    info = TensorInfo.of(value)
    return info.with_(shape=[cut.end - cut.begin if i == cut.axis else d for i, d in enumerate(info.shape)]).type
