"""What a linalg operation that somebody wrote asks of its operands' sizes: checks for each call.

    linalg.generic {(i) -> (i), (i) -> (i)} ins(%x : tensor<?xf32>) outs(%y : tensor<4xf32>) { ... }

reads as many elements of ``%x`` as ``%y`` has. That sizes agree MLIR verifies where all are static, and nobody elsewhere. Of
other maps, such as ``(i mod 3)``, it looks at the ends of the loops alone: where intervals do not prove that every turn is
inside, a call goes through all turns of them first.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from ..dialect.bindings import dialect_module, ir
from ..dialect.errors import RelaxError
from .index_intervals import Interval, expr_interval
from .linalg.scalar import Scalar, constant, emit

__all__ = ["Loops", "divisors", "fits", "known_size", "loops_of", "size_checks", "tensor_size", "without_turns"]

#: By loop, an operand and one of its dimensions, whose size is how long the loop is.
Loops = dict[int, tuple[ir.Value, int]]

_DYNAMIC = ir.ShapedType.get_dynamic_size()

_DISAGREE = "expected sizes that agree"


def divisors(expr: ir.AffineExpr) -> Iterator[ir.AffineExpr]:
    """What an expression divides by, anywhere inside of it."""
    if isinstance(expr, ir.AffineModExpr | ir.AffineFloorDivExpr | ir.AffineCeilDivExpr):
        yield expr.rhs
    if isinstance(expr, ir.AffineBinaryExpr):
        yield from divisors(expr.lhs)
        yield from divisors(expr.rhs)


def size_checks(op: ir.Operation) -> Iterator[tuple[ir.Value, str]]:
    """Conditions under which every turn of the loops is inside of all operands, and what to say else.

    Raises:
        RelaxError: it has no index maps, or one that divides by what is not positive.
    """
    walked, loops = _walked(op), loops_of(op)
    has_turns = all(known_size(*loop) != 0 for loop in loops.values())
    lengths = [_turns(loops[d]) for d in range(len(loops))]
    for value, map_ in walked:
        for axis, expr in enumerate(map_.results):
            if not isinstance(expr, ir.AffineDimExpr):
                if not has_turns or fits(expr_interval(expr, lengths), known_size(value, axis)):
                    continue
                sizes = [known_size(*place) for place in (*loops.values(), (value, axis))]
                last = _last(expr, loops) if _DYNAMIC in sizes else None
                if last is None:
                    _refuse_divisors(op, expr)
                    yield _every_turn(expr, [loops[d] for d in range(len(loops))], tensor_size(value, axis)).value, _DISAGREE
                    continue
                inside = last.compare("lt", tensor_size(value, axis))
                yield functools.reduce(Scalar.__or__, without_turns(loops), inside).value, _DISAGREE
            elif not _is_same(loops[expr.position], (value, axis)):
                pair = sorted([(value, axis), loops[expr.position]], key=lambda place: known_size(*place) != _DYNAMIC)
                left, right = (tensor_size(*place) for place in pair)  # as MLIR writes it: a number comes second
                yield left.compare("eq", right).value, _DISAGREE


def _walked(op: ir.Operation) -> list[tuple[ir.Value, ir.AffineMap]]:
    """The tensors that the loops go through, and where.

    Raises:
        RelaxError: it has no index maps.
    """
    found = dialect_module("linalg").get_indexing_maps(op)
    if found is None:
        raise RelaxError(f"'{op.name}' op expected an operation with index maps, got none", op.location)
    maps = [ir.AffineMapAttr(m).value for m in found]
    return [(v, m) for v, m in zip(op.operands, maps, strict=True) if isinstance(v.type, ir.RankedTensorType)]


def loops_of(op: ir.Operation) -> Loops:
    """Of each loop of an operation with index maps a dimension along which it goes: MLIR's verifier wants one."""
    loops: Loops = {}
    for value, map_ in _walked(op):
        for axis, expr in enumerate(map_.results):
            if isinstance(expr, ir.AffineDimExpr):
                loops.setdefault(expr.position, (value, axis))
    return loops


def without_turns(loops: Loops) -> Iterator[Scalar]:
    """For each loop whose length is not known, that it has no turn: then nothing is read."""
    yield from (tensor_size(*loop).compare("eq", 0) for loop in loops.values() if known_size(*loop) == _DYNAMIC)


def _is_same(a: tuple[ir.Value, int], b: tuple[ir.Value, int]) -> bool:
    """Whether two sizes are one, or known to be equal."""
    x, y = known_size(*a), known_size(*b)
    return a == b or x == y != _DYNAMIC


def known_size(value: ir.Value, axis: int) -> int:
    """A size, or what stands for one that is not known."""
    return ir.RankedTensorType(value.type).shape[axis]


def _turns(loop: tuple[ir.Value, int]) -> Interval | None:
    """What a loop's index is, where it is known how long the loop is."""
    size = known_size(*loop)
    return None if size == _DYNAMIC else (0, size - 1)


def tensor_size(value: ir.Value, axis: int) -> Scalar:
    """A size, computed at the insertion point where it is not known."""
    index = ir.IndexType.get()
    size = known_size(value, axis)
    if size != _DYNAMIC:
        return constant(index, size)
    return Scalar(emit("tensor.dim", index, value, constant(index, axis).value))


def _last(expr: ir.AffineExpr, loops: Loops) -> Scalar | None:
    """The largest index that a sum of multiples of loops takes; None for another expression, or one that may be negative."""
    if isinstance(expr, ir.AffineConstantExpr):
        return constant(ir.IndexType.get(), expr.value) if expr.value >= 0 else None
    if isinstance(expr, ir.AffineDimExpr):
        return tensor_size(*loops[expr.position]) - 1
    if not isinstance(expr, ir.AffineAddExpr | ir.AffineMulExpr):
        return None
    left, right = _last(expr.lhs, loops), _last(expr.rhs, loops)
    if left is None or right is None:
        return None
    return left + right if isinstance(expr, ir.AffineAddExpr) else left * right


def _refuse_divisors(op: ir.Operation, expr: ir.AffineExpr) -> None:
    for divisor in divisors(expr):
        known = expr_interval(divisor, [])
        if known is None or known[0] < 1:
            raise RelaxError(f"'{op.name}' op expected index maps that divide by positive constants, got {expr}", op.location)


def _every_turn(expr: ir.AffineExpr, loops: Sequence[tuple[ir.Value, int]], size: Scalar) -> Scalar:
    """Whether an index is below a size in every turn of loops of these lengths, found by going through them all."""
    index, truth, here = ir.IndexType.get(), ir.IntegerType.get_signless(1), ir.Location.current
    map_ = ir.AffineMapAttr.get(ir.AffineMap.get(len(loops), 0, [expr]))
    zero, one = constant(index, 0).value, constant(index, 1).value
    lengths = [tensor_size(*loop).value for loop in loops]

    def nest(turns: list[ir.Value], inside: Scalar) -> Scalar:
        if len(turns) == len(lengths):
            place = Scalar(emit("affine.apply", index, *turns, map=map_), unsigned=True)
            return inside & place.compare("lt", Scalar(size.value, unsigned=True))
        for_ = ir.Operation.create("scf.for", [truth], [zero, lengths[len(turns)], one, inside.value], regions=1)
        block = for_.regions[0].blocks.append(index, truth, arg_locs=[here, here])
        with ir.InsertionPoint(block):
            found = nest([*turns, block.arguments[0]], Scalar(block.arguments[1], unsigned=True))
            ir.Operation.create("scf.yield", [], [found.value])
        return Scalar(for_.result, unsigned=True)

    return nest([], constant(truth, 1, unsigned=True))


def fits(interval: Interval | None, size: int) -> bool:
    """Whether all of an interval are indices of a dimension of a size that is known."""
    return interval is not None and size != _DYNAMIC and 0 <= interval[0] <= interval[1] < size
