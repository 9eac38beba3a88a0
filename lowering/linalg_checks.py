"""What a linalg operation that somebody wrote asks of its operands' sizes: checks for each call; its body is proven or refused.

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
from ..dialect.traversal import nested_operations
from .index_intervals import Interval, expr_interval, index_interval
from .linalg.scalar import Scalar, constant, emit

__all__ = ["check_body", "check_divisors", "size_checks"]

_DYNAMIC = ir.ShapedType.get_dynamic_size()

_DISAGREE = "expected sizes that agree"

#: Divides by what may be zero, which ends the process.
_DIVISIONS = frozenset(
    f"arith.{n}" for n in ("ceildivsi", "ceildivui", "divsi", "divui", "floordivsi", "remsi", "remui")
) | frozenset(f"index.{n}" for n in ("divs", "divu", "floordivs", "ceildivs", "ceildivu", "rems", "remu"))  # fmt: skip
#: Reads or writes memory at places that are computed.
_PARTS = frozenset(f"tensor.{n}" for n in ("insert", "extract_slice", "insert_slice", "generate"))


def check_body(op: ir.Operation) -> None:
    """Raises RelaxError for what an operation's body may do that nothing checks: nobody looks at each element."""
    for inner in nested_operations(op):
        if inner.name == "tensor.extract" and not _is_inside(inner, op):
            text = f"expected a place that is inside of its tensor in every turn of {op.name}, got one that is not known to be"
            raise RelaxError(f"'tensor.extract' op {text}", inner.location)
        check_divisors(inner, op)
        if inner.name in _DIVISIONS and not _is_positive(inner.operands[1]):
            raise RelaxError(f"'{inner.name}' op expected a positive constant to divide by in {op.name}", inner.location)
        if inner.name in _PARTS or inner.name.startswith("scf."):
            raise RelaxError(f"'{inner.name}' op expected outside of {op.name}", inner.location)


def check_divisors(op: ir.Operation, loop: ir.Operation | None = None) -> None:
    """Raises RelaxError for an ``affine`` operation that divides by what may not be positive.

    Args:
        op: any operation.
        loop: the linalg operation in whose body it is.
    """
    if not op.name.startswith("affine."):
        return
    map_ = ir.AffineMapAttr(op.attributes["map"]).value
    operands = [index_interval(v, loop) for v in op.operands]
    dims, symbols = operands[: map_.n_dims], operands[map_.n_dims :]
    for divisor in (d for expr in map_.results for d in _divisors(expr)):
        known = expr_interval(divisor, dims, symbols)
        if known is None or known[0] < 1:
            raise RelaxError(f"'{op.name}' op expected to divide by what is known to be positive, got {divisor}", op.location)


def _divisors(expr: ir.AffineExpr) -> Iterator[ir.AffineExpr]:
    if isinstance(expr, ir.AffineModExpr | ir.AffineFloorDivExpr | ir.AffineCeilDivExpr):
        yield expr.rhs
    if isinstance(expr, ir.AffineBinaryExpr):
        yield from _divisors(expr.lhs)
        yield from _divisors(expr.rhs)


def size_checks(op: ir.Operation) -> Iterator[tuple[ir.Value, str]]:
    """Conditions under which every turn of the loops is inside of all operands, and what to say else.

    Raises:
        RelaxError: it has no index maps, or one that divides by what is not positive.
    """
    get_indexing_maps = dialect_module("linalg").get_indexing_maps
    found = get_indexing_maps(op)
    if found is None:
        raise RelaxError(f"'{op.name}' op expected an operation with index maps, got none", op.location)
    maps = [ir.AffineMapAttr(m).value for m in found]
    walked = [(v, m) for v, m in zip(op.operands, maps, strict=True) if isinstance(v.type, ir.RankedTensorType)]
    loops: dict[int, tuple[ir.Value, int]] = {}  # whose size is how long a loop is
    for value, map_ in walked:
        for axis, expr in enumerate(map_.results):
            if isinstance(expr, ir.AffineDimExpr):
                loops.setdefault(expr.position, (value, axis))
    has_turns = all(_known(*loop) != 0 for loop in loops.values())
    lengths = [_turns(loops[d]) if d in loops else None for d in range(maps[0].n_dims)]
    for value, map_ in walked:
        for axis, expr in enumerate(map_.results):
            if not isinstance(expr, ir.AffineDimExpr):
                if not has_turns or _fits(expr_interval(expr, lengths), _known(value, axis)):
                    continue
                sizes = [_known(*place) for place in (*loops.values(), (value, axis))]
                last = _last(expr, loops) if _DYNAMIC in sizes else None
                if last is None:
                    _refuse_divisors(op, expr)
                    yield _every_turn(expr, [loops[d] for d in range(maps[0].n_dims)], _size(value, axis)).value, _DISAGREE
                    continue
                inside = last.compare("lt", _size(value, axis))
                yield functools.reduce(Scalar.__or__, _without_turns(loops), inside).value, _DISAGREE
            elif not _is_same(loops[expr.position], (value, axis)):
                yield _size(value, axis).compare("eq", _size(*loops[expr.position])).value, _DISAGREE


def _without_turns(loops: dict[int, tuple[ir.Value, int]]) -> Iterator[Scalar]:
    """For each loop whose length is not known, that it has no turn: then nothing is read."""
    yield from (_size(*loop).compare("eq", 0) for loop in loops.values() if _known(*loop) == _DYNAMIC)


def _is_same(a: tuple[ir.Value, int], b: tuple[ir.Value, int]) -> bool:
    """Whether two sizes are one, or known to be equal."""
    x, y = _known(*a), _known(*b)
    return a == b or x == y != _DYNAMIC


def _known(value: ir.Value, axis: int) -> int:
    """A size, or what stands for one that is not known."""
    return ir.RankedTensorType(value.type).shape[axis]


def _turns(loop: tuple[ir.Value, int]) -> Interval | None:
    """What a loop's index is, where it is known how long the loop is."""
    size = _known(*loop)
    return None if size == _DYNAMIC else (0, size - 1)


def _size(value: ir.Value, axis: int) -> Scalar:
    index = ir.IndexType.get()
    size = _known(value, axis)
    if size != _DYNAMIC:
        return constant(index, size)
    return Scalar(emit("tensor.dim", index, value, constant(index, axis).value))


def _last(expr: ir.AffineExpr, loops: dict[int, tuple[ir.Value, int]]) -> Scalar | None:
    """The largest index that a sum of multiples of loops takes; None for another expression, or one that may be negative."""
    if isinstance(expr, ir.AffineConstantExpr):
        return constant(ir.IndexType.get(), expr.value) if expr.value >= 0 else None
    if isinstance(expr, ir.AffineDimExpr):
        return _size(*loops[expr.position]) - 1 if expr.position in loops else None
    if not isinstance(expr, ir.AffineAddExpr | ir.AffineMulExpr):
        return None
    left, right = _last(expr.lhs, loops), _last(expr.rhs, loops)
    if left is None or right is None:
        return None
    return left + right if isinstance(expr, ir.AffineAddExpr) else left * right


def _refuse_divisors(op: ir.Operation, expr: ir.AffineExpr) -> None:
    for divisor in _divisors(expr):
        known = expr_interval(divisor, [])
        if known is None or known[0] < 1:
            raise RelaxError(f"'{op.name}' op expected index maps that divide by positive constants, got {expr}", op.location)


def _every_turn(expr: ir.AffineExpr, loops: Sequence[tuple[ir.Value, int]], size: Scalar) -> Scalar:
    """Whether an index is below a size in every turn of loops of these lengths, found by going through them all."""
    index, truth, here = ir.IndexType.get(), ir.IntegerType.get_signless(1), ir.Location.current
    map_ = ir.AffineMapAttr.get(ir.AffineMap.get(len(loops), 0, [expr]))
    zero, one = constant(index, 0).value, constant(index, 1).value
    lengths = [_size(*loop).value for loop in loops]

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


def _is_inside(op: ir.Operation, loop: ir.Operation) -> bool:
    tensor, *indices = op.operands
    shape = ir.RankedTensorType(tensor.type).shape
    return all(_fits(index_interval(i, loop), size) for size, i in zip(shape, indices, strict=True))


def _fits(interval: Sequence[int] | None, size: int) -> bool:
    return interval is not None and size != _DYNAMIC and 0 <= interval[0] <= interval[1] < size


def _is_positive(value: ir.Value) -> bool:
    owner = None if isinstance(value, ir.BlockArgument) else value.owner
    return owner is not None and owner.name == "arith.constant" and ir.IntegerAttr(owner.attributes["value"]).value > 0
