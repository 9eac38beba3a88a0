"""The smallest and largest value of index arithmetic in the body of a linalg op, where the loops' lengths are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dialect.bindings import ir

__all__ = ["Interval", "expr_interval", "index_interval", "least"]

Interval = tuple[int, int]

#: Beyond this a sum or product might overflow 64 bits.
_LIMIT = 2**62

_ANY = -(2**63), 2**63 - 1


def index_interval(value: ir.Value, loop: ir.Operation | None) -> Interval | None:
    """The values that an index takes; None where that is not known, as for what comes from the contents of a tensor.

    Args:
        value: an index or an integer.
        loop: the linalg op in whose body it is.
    """
    low, high = _bounds(value, loop)
    return (low, high) if -_LIMIT < low <= high < _LIMIT else None


def least(value: ir.Value, loop: ir.Operation | None) -> int:
    """The smallest value that an index or an integer may take, as far as is known."""
    return _bounds(value, loop)[0]


def _bounds(value: ir.Value, loop: ir.Operation | None) -> Interval:
    """The same, with the ends of 64 bits where nothing says more: one that is limited on one side may be on the other, too."""
    found = None if isinstance(value, ir.BlockArgument) else _of_op(value.owner.operation, loop)
    limit = 2**63 if isinstance(value.type, ir.IndexType) else 1 << (ir.IntegerType(value.type).width - 1)
    return found if found is not None and -limit <= found[0] <= found[1] < limit else _ANY  # beyond its type it wraps


def _of_op(op: ir.Operation, loop: ir.Operation | None) -> Interval | None:
    if op.name == "arith.constant":
        number = ir.IntegerAttr(op.attributes["value"]).value
        return number, number
    if op.name == "linalg.index":
        return None if loop is None else _loop_interval(loop, ir.IntegerAttr(op.attributes["dim"]).value)
    if op.name == "affine.apply":
        return _of_affine(op, loop)
    if op.name in ("arith.index_cast", "arith.extsi"):
        return index_interval(op.operands[0], loop)
    if op.name in _LIMITING:
        return _LIMITING[op.name](*(_bounds(v, loop) for v in op.operands))
    combine = _ARITHMETIC.get(op.name)
    if combine is None:
        return None
    operands = [index_interval(v, loop) for v in op.operands]
    known = [i for i in operands if i is not None]
    return combine(known[0], known[1]) if len(known) == len(operands) else None


def _add(a: Interval, b: Interval) -> Interval:
    return a[0] + b[0], a[1] + b[1]


def _subtract(a: Interval, b: Interval) -> Interval:
    return a[0] - b[1], a[1] - b[0]


def _multiply(a: Interval, b: Interval) -> Interval:
    products = [x * y for x in a for y in b]
    return min(products), max(products)


def _smaller(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), min(a[1], b[1])


def _larger(a: Interval, b: Interval) -> Interval:
    return max(a[0], b[0]), max(a[1], b[1])


def _divide(a: Interval, b: Interval) -> Interval | None:
    """By a positive constant; of what is not negative, as rounding to zero and down differ below."""
    return (a[0] // b[0], a[1] // b[0]) if b[0] == b[1] and b[0] > 0 and a[0] >= 0 else None


def _divide_upwards(a: Interval, b: Interval) -> Interval | None:
    return (-(-a[0] // b[0]), -(-a[1] // b[0])) if b[0] == b[1] and b[0] > 0 else None


def _remainder(a: Interval, b: Interval) -> Interval | None:
    return (0, min(b[0] - 1, a[1])) if b[0] == b[1] and b[0] > 0 and a[0] >= 0 else None


_ARITHMETIC: dict[str, Callable[[Interval, Interval], Interval | None]] = {
    "arith.addi": _add, "arith.subi": _subtract, "arith.muli": _multiply,
    "arith.divsi": _divide, "arith.divui": _divide, "arith.floordivsi": _divide, "arith.remsi": _remainder,
    "arith.remui": _remainder,
}  # fmt: skip


_LIMITING: dict[str, Callable[[Interval, Interval], Interval]] = {"arith.minsi": _smaller, "arith.maxsi": _larger}


def _of_affine(op: ir.Operation, loop: ir.Operation | None) -> Interval | None:
    operands = [index_interval(v, loop) for v in op.operands]
    map_ = ir.AffineMapAttr(op.attributes["map"]).value
    return _of_expr(map_.results[0], operands[: map_.n_dims], operands[map_.n_dims :])


def expr_interval(
    expr: ir.AffineExpr, dims: Sequence[Interval | None], symbols: Sequence[Interval | None] = ()
) -> Interval | None:  # fmt: skip
    """The values that the result of a map takes whose dimensions and symbols take these; None where that is not known."""
    return _of_expr(expr, dims, symbols)


def _of_expr(expr: ir.AffineExpr, dims: Sequence[Interval | None], symbols: Sequence[Interval | None]) -> Interval | None:
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value, expr.value
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    combine = next((f for cls, f in _AFFINE if isinstance(expr, cls)), None)
    if combine is None or not isinstance(expr, ir.AffineBinaryExpr):
        return None
    left, right = _of_expr(expr.lhs, dims, symbols), _of_expr(expr.rhs, dims, symbols)
    return None if left is None or right is None else combine(left, right)


_AFFINE: tuple[tuple[type, Callable[[Interval, Interval], Interval | None]], ...] = (
    (ir.AffineAddExpr, _add),
    (ir.AffineMulExpr, _multiply),
    (ir.AffineFloorDivExpr, _divide),
    (ir.AffineCeilDivExpr, _divide_upwards),
    (ir.AffineModExpr, _remainder),
)


def _loop_interval(loop: ir.Operation, dimension: int) -> Interval | None:
    """From an operand that the loop walks along: its size is the loop's length."""
    if "indexing_maps" not in loop.attributes:
        return None
    maps = [ir.AffineMapAttr(m).value for m in ir.ArrayAttr(loop.attributes["indexing_maps"])]
    for operand, map_ in zip(loop.operands, maps, strict=True):
        for axis, expr in enumerate(map_.results):
            if isinstance(expr, ir.AffineDimExpr) and expr.position == dimension:
                size = ir.RankedTensorType(operand.type).shape[axis]
                return None if size == ir.ShapedType.get_dynamic_size() else (0, max(size - 1, 0))
    return None
