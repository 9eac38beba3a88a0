"""What ``affine`` operations divide by, where nothing proves it to be positive: MLIR says nothing of other divisors.

    %k = affine.apply affine_map<(d0)[s0] -> (d0 floordiv s0)>(%i)[%n]

Outside of linalg bodies :mod:`.check_scalars` asserts that ``%n`` is positive, inside :mod:`.linalg_bodies`, for every turn.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from .index_intervals import expr_interval, index_interval, least
from .linalg.scalar import Scalar, emit, maximum
from .linalg_checks import divisors

__all__ = ["EXPECTED", "affine_map", "are_positive", "limit_divisors", "unproven_divisors"]

EXPECTED = "expected to divide by what is positive"


def unproven_divisors(op: ir.Operation, loop: ir.Operation | None = None) -> list[ir.AffineExpr]:
    """The divisors of an operation that nothing proves to be positive; those that others are computed with come first.

    Args:
        op: any operation; only ``affine`` ones have divisors.
        loop: the linalg operation in whose body it is.

    Raises:
        RelaxError: a divisor is known not to be positive.
    """
    if not op.name.startswith("affine."):
        return []
    map_ = affine_map(op)
    operands = [index_interval(v, loop) for v in op.operands]
    dims, symbols = operands[: map_.n_dims], operands[map_.n_dims :]
    found = list[ir.AffineExpr]()
    for divisor in (d for expr in map_.results for d in reversed(list(divisors(expr)))):
        known = expr_interval(divisor, dims, symbols)
        if known is not None and known[1] < 1:
            raise RelaxError(f"'{op.name}' op {EXPECTED}, got {divisor}", op.location)
        is_proven = known[0] > 0 if known is not None else _is_limited(op, divisor, loop)
        if not is_proven and divisor not in found:
            found.append(divisor)
    return found


def are_positive(map_: ir.AffineMap, found: Sequence[ir.AffineExpr], operands: Sequence[ir.Value]) -> Scalar:
    """Whether these divisors of a map, as :func:`unproven_divisors` lists them, are positive; at the insertion point."""
    return functools.reduce(Scalar.__and__, (d.compare("gt", 0) for d, _, _ in _computed(map_, found, operands)))


def limit_divisors(op: ir.Operation, found: Sequence[ir.AffineExpr]) -> None:
    """Replaces an operation by one that divides by 1 where one of these divisors is not positive."""
    map_ = affine_map(op)
    with op.location, ir.InsertionPoint(op):
        computed = list(_computed(map_, found, list(op.operands)))
        symbols = {d: symbol for d, (_, _, symbol) in zip(found, computed, strict=True)}
        results = [_divided_by(expr, symbols) for expr in map_.results]
        limited = ir.AffineMap.get(map_.n_dims, map_.n_symbols + len(found), results)
        operands = [*op.operands, *(value.value for _, value, _ in computed)]
        new = ir.Operation.create(op.name, [op.result.type], operands, {"map": ir.AffineMapAttr.get(limited)})
    op.result.replace_all_uses_with(new.result)
    op.erase()


def affine_map(op: ir.Operation) -> ir.AffineMap:
    """The map of an ``affine`` operation."""
    return ir.AffineMapAttr(op.attributes["map"]).value


def _is_limited(op: ir.Operation, divisor: ir.AffineExpr, loop: ir.Operation | None) -> bool:
    """Whether a divisor is an operand that is at least 1, as :func:`limit_divisors` makes it."""
    return isinstance(divisor, ir.AffineSymbolExpr) and least(op.operands[affine_map(op).n_dims + divisor.position], loop) > 0


def _computed(
    map_: ir.AffineMap, found: Sequence[ir.AffineExpr], operands: Sequence[ir.Value]
) -> Iterator[tuple[Scalar, Scalar, ir.AffineExpr]]:
    """Each divisor's value, the same but at least 1, and the symbol that stands for that in what is computed of it."""
    values, symbols = list(operands), dict[ir.AffineExpr, ir.AffineExpr]()
    for i, divisor in enumerate(found):
        of = ir.AffineMap.get(map_.n_dims, map_.n_symbols + i, [_divided_by(divisor, symbols)])
        value = Scalar(emit("affine.apply", ir.IndexType.get(), *values, map=ir.AffineMapAttr.get(of)))
        limited, symbols[divisor] = maximum(value, 1), ir.AffineExpr.get_symbol(map_.n_symbols + i)
        values.append(limited.value)
        yield value, limited, symbols[divisor]


def _divided_by(expr: ir.AffineExpr, symbols: dict[ir.AffineExpr, ir.AffineExpr]) -> ir.AffineExpr:
    """An expression with symbols in the place of divisors."""
    if not isinstance(expr, ir.AffineBinaryExpr):
        return expr
    left = _divided_by(expr.lhs, symbols)
    get = next((get for cls, get in _DIVISIONS if isinstance(expr, cls)), None)
    if get is not None:
        return get(left, symbols.get(expr.rhs, expr.rhs))
    right = _divided_by(expr.rhs, symbols)
    return left + right if isinstance(expr, ir.AffineAddExpr) else left * right


_DIVISIONS: tuple[tuple[type, Callable[[ir.AffineExpr, ir.AffineExpr], ir.AffineExpr]], ...] = (
    (ir.AffineFloorDivExpr, ir.AffineExpr.get_floor_div),
    (ir.AffineCeilDivExpr, ir.AffineExpr.get_ceil_div),
    (ir.AffineModExpr, ir.AffineExpr.get_mod),
)
