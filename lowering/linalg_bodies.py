"""What the body of a linalg operation reads and divides by: proven, or looked at in every turn before, and limited in the body.

Before::

    %0 = linalg.generic {(i) -> (i), (i) -> (i)} ins(%k : tensor<3xindex>) outs(%e : tensor<3xf32>) {
    ^bb0(%place: index, %o: f32):
      %v = tensor.extract %x[%place] : tensor<4xf32>

after::

    %fine = linalg.generic {(i) -> (i), (i) -> (i), (i) -> ()} ins(%k, %e) outs(%one : tensor<i8>) {
    ^bb0(%place: index, %o: f32, %so_far: i8):
      %inside = arith.cmpi ult, %place, %c4 : index
      ...
      linalg.yield %so_far & %inside
    %ok = ...%fine is not 0
    cf.assert %ok, "'tensor.extract' op expected a place that is inside of its tensor in every turn of linalg.generic"
    %0 = linalg.generic {(i) -> (i), (i) -> (i)} ins(%k : tensor<3xindex>) outs(%e : tensor<3xf32>) {
    ^bb0(%place: index, %o: f32):
      %limited = ...%place, at most 3 and at least 0
      %v = tensor.extract %x[%limited] : tensor<4xf32>

Inside of a body nothing can stop. It is limited all the same: later passes may move it before the check.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..dialect.bindings import dialect_module, ir
from ..dialect.errors import RelaxError
from ..dialect.traversal import clone_with, nested_operations, operations
from .affine_divisors import EXPECTED, affine_map, are_positive, limit_divisors, unproven_divisors
from .asserted import Asserted, computed_alike, erase_computation
from .index_intervals import index_interval
from .linalg.scalar import Scalar, constant, emit, maximum, minimum, select
from .linalg_checks import fits, known_size, loops_of, tensor_size, without_turns

__all__ = ["check_body"]

_DYNAMIC = ir.ShapedType.get_dynamic_size()

_SIGNED = frozenset(f"arith.{n}" for n in ("ceildivsi", "divsi", "floordivsi", "remsi")) | frozenset(
    f"index.{n}" for n in ("divs", "floordivs", "ceildivs", "rems")
)
#: Divides by what may be zero, which ends the process.
_DIVISIONS = _SIGNED | frozenset(
    ("arith.ceildivui", "arith.divui", "arith.remui", "index.divu", "index.ceildivu", "index.remu")
)  # fmt: skip
#: Reads or writes memory at places that are computed.
_PARTS = frozenset(f"tensor.{n}" for n in ("insert", "extract_slice", "insert_slice", "generate"))

#: What stands in a copy of a body for its values.
_Copies = dict[ir.Value, ir.Value]


@dataclass(frozen=True)
class _Doubt:
    """What has to hold in every turn.

    Attributes:
        text: what to say where it does not.
        location: of the operation that asks for it.
        values: what it is computed from, of the body.
        holds: computes it at the insertion point.
    """

    text: str
    location: ir.Location
    values: Sequence[ir.Value]
    holds: Callable[[_Copies], Scalar]


def check_body(op: ir.Operation, asserted: Asserted) -> None:
    """Puts checks of what a body reads and divides by in front of its operation, and limits it in the body.

    Args:
        op: a linalg operation, whose sizes are checked.
        asserted: the checks in front of it.

    Raises:
        RelaxError: for what a body may not do.
    """
    body = list(nested_operations(op))
    for inner in body:
        if inner.name in _PARTS or inner.name.startswith("scf."):
            raise RelaxError(f"'{inner.name}' op expected outside of {op.name}", inner.location)
    if any(known_size(*loop) == 0 for loop in loops_of(op).values()):
        return
    doubts = list[_Doubt]()
    for inner in body:
        if inner.name == "tensor.extract":
            doubts += _limit_place(inner, op, asserted)
        elif inner.name.startswith("affine."):
            doubts += _limit_affine(inner, op)
        elif inner.name in _DIVISIONS and not _divides_safely(inner, op):
            doubts.append(_limit_divisor(inner, op))
    for doubt in doubts:  # copies of the body are limited, too
        with doubt.location, ir.InsertionPoint(op):
            asserted.require(_every_turn(op, doubt).value, doubt.text)


# -- places ----------------------------------------------------------------------------------------------------------


def _limit_place(inner: ir.Operation, op: ir.Operation, asserted: Asserted) -> Iterator[_Doubt]:
    """Limits the indices that nothing proves to be inside."""
    tensor, *indices = inner.operands
    text = f"'tensor.extract' op expected a place that is inside of its tensor in every turn of {op.name}"
    unproven = [axis for axis, i in enumerate(indices) if not fits(index_interval(i, op), known_size(tensor, axis))]
    with inner.location, ir.InsertionPoint(op):
        for axis in (a for a in unproven if known_size(tensor, a) == _DYNAMIC):
            some = tensor_size(tensor, axis).compare("gt", 0)
            asserted.require(functools.reduce(Scalar.__or__, without_turns(loops_of(op)), some).value, text)
        open_ = [axis for axis in unproven if not _is_limited(inner, axis)]
        sizes = {axis: tensor_size(tensor, axis) for axis in open_}
        lasts = {axis: _last(tensor, axis) for axis in open_}
    if not open_:
        return

    def holds(copies: _Copies) -> Scalar:
        found = (_is_below(_copy(copies, indices[axis]), sizes[axis]) for axis in open_)
        return functools.reduce(Scalar.__and__, found)

    yield _Doubt(text, inner.location, [indices[axis] for axis in open_], holds)
    with inner.location, ir.InsertionPoint(inner):
        if all(known_size(tensor, axis) for axis in open_):
            for axis in open_:
                inner.operands[1 + axis] = _limited(indices[axis], lasts[axis]).value
            return
        inner.result.replace_all_uses_with(constant(inner.result.type, 0).value)  # there is no place to limit an index to
    inner.erase()


def _last(tensor: ir.Value, axis: int) -> Scalar:
    """The last index of a dimension."""
    size = known_size(tensor, axis)
    return tensor_size(tensor, axis) - 1 if size == _DYNAMIC else constant(ir.IndexType.get(), size - 1)


def _is_below(index: ir.Value, size: Scalar) -> Scalar:
    return Scalar(index, unsigned=True).compare("lt", Scalar(size.value, unsigned=True))


def _limited(index: ir.Value, last: Scalar) -> Scalar:
    return maximum(minimum(Scalar(index), last), 0)


def _is_limited(inner: ir.Operation, axis: int) -> bool:
    """Whether a place is limited to a size that only calls tell, as by :func:`_limited`; that it is not 0 is checked."""
    tensor, index = inner.operands[0], inner.operands[1 + axis]
    lower = _operation(index, "arith.maxsi")
    upper = _operation(lower.operands[0], "arith.minsi") if lower is not None else None
    if upper is None:
        return False
    last = _last(tensor, axis)
    with ir.InsertionPoint(inner):
        return _found(index, _limited(upper.operands[0], last).value)


def _operation(value: ir.Value, name: str) -> ir.Operation | None:
    """The operation of that name that makes a value, if one does."""
    owner = value.owner
    return owner.operation if not isinstance(owner, ir.Block) and owner.name == name else None


def _found(value: ir.Value, wanted: ir.Value) -> bool:
    """Whether a value is what was just computed; erases that."""
    alike = computed_alike(value, wanted)
    erase_computation(wanted)
    return alike


# -- divisions -------------------------------------------------------------------------------------------------------


def _divides_safely(inner: ir.Operation, op: ir.Operation) -> bool:
    """Whether intervals prove a divisor to be fine, or it is chosen only where it is, as by :func:`_check_division`."""
    dividend, divisor = inner.operands
    known = index_interval(divisor, op)
    if known is not None and (known[0] > 0 or known[1] < (-1 if inner.name in _SIGNED else 0)):
        return True
    choice = _operation(divisor, "arith.select")
    if choice is None:
        return False
    with ir.InsertionPoint(inner), inner.location:
        wanted = _divisor(inner, dividend, choice.operands[1])
    return _found(divisor, wanted.value)


def _limit_divisor(inner: ir.Operation, op: ir.Operation) -> _Doubt:
    """Divides by 1 in the turns in which the division is undefined."""
    dividend, divisor = inner.operands
    quotient = f" and a quotient within {inner.result.type}" if inner.name in _SIGNED else ""
    text = f"'{inner.name}' op expected a divisor other than 0{quotient} in every turn of {op.name}"

    def holds(copies: _Copies) -> Scalar:
        return _divides(inner, _copy(copies, dividend), _copy(copies, divisor))

    with inner.location, ir.InsertionPoint(inner):
        inner.operands[1] = _divisor(inner, dividend, divisor).value
    return _Doubt(text, inner.location, (dividend, divisor), holds)


def _divisor(inner: ir.Operation, dividend: ir.Value, divisor: ir.Value) -> Scalar:
    """The divisor where it is fine, else 1."""
    return select(_divides(inner, dividend, divisor), Scalar(divisor), 1)


def _divides(inner: ir.Operation, dividend: ir.Value, divisor: ir.Value) -> Scalar:
    if inner.name not in _SIGNED:
        return Scalar(divisor).compare("ne", 0)
    type_ = inner.result.type
    least = -(1 << (63 if isinstance(type_, ir.IndexType) else ir.IntegerType(type_).width - 1))
    in_range = Scalar(dividend).compare("ne", least)
    if index_interval(divisor, None) == (-1, -1):
        return in_range
    return Scalar(divisor).compare("ne", 0) & (in_range | Scalar(divisor).compare("ne", -1))


def _limit_affine(inner: ir.Operation, op: ir.Operation) -> Iterator[_Doubt]:
    """Divides by 1 in the turns in which what an ``affine`` operation divides by is not positive."""
    found = unproven_divisors(inner, op)
    if not found:
        return
    map_, operands = affine_map(inner), list(inner.operands)

    def holds(copies: _Copies) -> Scalar:
        return are_positive(map_, found, [_copy(copies, v) for v in operands])

    yield _Doubt(f"'{inner.name}' op {EXPECTED} in every turn of {op.name}", inner.location, operands, holds)
    limit_divisors(inner, found)


# -- going through all turns -----------------------------------------------------------------------------------------


def _every_turn(op: ir.Operation, doubt: _Doubt) -> Scalar:
    """Whether it holds in every turn: a reduction, whose body has the part of that of ``op`` that computes what it asks for."""
    body, maps = op.regions[0].blocks[0], list(dialect_module("linalg").get_indexing_maps(op))
    needed, carries = _part(body, doubt.values, _accumulated(op, maps))
    outs = len(op.results) if carries else 0
    i8, loops = ir.IntegerType.get_signless(8), ir.AffineMapAttr(maps[0]).value.n_dims
    type_ = ir.RankedTensorType.get([], i8)
    one = emit("arith.constant", type_, value=ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(i8, 1)))
    values = [*op.operands, one]
    attributes = {
        "indexing_maps": ir.ArrayAttr.get([*maps, ir.AffineMapAttr.get(ir.AffineMap.get(loops, 0, []))]),
        "iterator_types": ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<reduction>")] * loops),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(op.operands) - outs, outs + 1]),
    }
    types = [v.type for v in values[len(op.operands) - outs :]]
    walk = ir.Operation.create("linalg.generic", types, values, attributes, regions=1)
    elements = [*(a.type for a in body.arguments), i8]
    block = ir.Block.create_at_start(walk.regions[0], elements, [doubt.location] * len(elements))
    copies: _Copies = dict(zip(body.arguments, list(block.arguments)[:-1], strict=True))
    with ir.InsertionPoint(block) as end:
        for inner in operations(body)[:-1]:
            if any(r in needed for r in inner.results):
                clone_with(inner, copies, end)
        fine = emit("arith.extui", i8, doubt.holds(copies).value)
        so_far = Scalar(block.arguments[-1]) & Scalar(fine)
        yielded = operations(body)[-1].operands if carries else ()
        ir.Operation.create("linalg.yield", [], [*(_copy(copies, v) for v in yielded), so_far.value])
    return Scalar(emit("tensor.extract", i8, walk.results[-1])).compare("ne", 0)


def _copy(copies: _Copies, value: ir.Value) -> ir.Value:
    """What stands for a value; itself, if it is from outside of the body."""
    found = copies.get(value)
    return value if found is None else found


def _accumulated(op: ir.Operation, maps: Sequence[ir.Attribute]) -> list[ir.Value]:
    """What a body gets of the results that several turns write: it is what the turn before wrote."""
    arguments, results = list(op.regions[0].blocks[0].arguments), len(op.results)
    walked = [ir.AffineMapAttr(m).value for m in maps][len(arguments) - results :]
    return [a for a, m in zip(arguments[len(arguments) - results :], walked, strict=True) if not m.is_permutation]


def _part(body: ir.Block, values: Sequence[ir.Value], accumulated: Sequence[ir.Value]) -> tuple[set[ir.Value], bool]:
    """The values of a body that these are computed from, and whether results are, from which the next turn computes them."""
    *ops, end = operations(body)
    needed = _computed_from(set(values), ops)
    if needed.isdisjoint(accumulated):
        return needed, False
    return _computed_from(needed | set(end.operands), ops), True


def _computed_from(values: set[ir.Value], ops: Sequence[ir.Operation]) -> set[ir.Value]:
    for op in reversed(ops):
        if not values.isdisjoint(op.results):
            values |= set(op.operands)
    return values
