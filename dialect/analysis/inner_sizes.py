"""Sizes inside of a function that its symbols may make impossible: negative, divided by 0, or too large for 64 bits.

A type can say ``n - 5`` or ``n * n * n`` of a value that no caller sees. Whoever runs the function asks here once for what to
check when the symbols have values, before anything is computed: :class:`relaxir.dialect.reference.interpreter` and, by way of
the manifest, compiled code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..bindings import func, ir
from ..errors import RelaxError, location_text
from ..functions import body_of
from ..struct_info import TensorInfo, element_bytes
from ..symbolic import Dim, Expr, InnerSize, divided, magnitude, substitute, symbol
from ..traversal import blocks_of, nested_operations
from ..tuples import leaf_types
from .size_bounds import symbol_ranges
from .symbol_uses import bound_symbols

__all__ = ["doubtful_sizes", "entry_symbols", "greatest_safe", "is_size", "tensor_bytes"]


def entry_symbols(function: func.FuncOp) -> set[str]:
    """The symbols that the shapes of a function's arguments determine."""
    block = body_of(function)
    return set() if block is None else bound_symbols(a.type for a in block.arguments)


def doubtful_sizes(function: func.FuncOp, symbols: set[str], least: int = 0) -> list[InnerSize]:
    """Dimensions inside of a function that are not proven to be 0 or more, nor free of divisions by 0, one of equal ones each.

    Args:
        function: with a body.
        symbols: those that have values when it is called; dimensions of others are left out.
        least: what a symbol is at least that ``relax.symbol_ranges`` does not name.
    """
    ranges = symbol_ranges(function)
    least_of = {name: ranges[name][0] if name in ranges else least for name in symbols}
    found: dict[Expr, InnerSize] = {}
    for info, op in _tensors(function):
        for dim in info.shape:
            if isinstance(dim, Expr) and dim not in found and dim.names <= symbols and not _is_size(dim, least_of):
                found[dim] = InnerSize(dim, _place(op))
    return list(found.values())


def tensor_bytes(function: func.FuncOp, symbols: set[str]) -> list[InnerSize]:
    """The bytes of a function's tensors of symbolic shape; of sizes that differ by a factor alone, the largest."""
    found: dict[object, InnerSize] = {}
    for info, op in _tensors(function):
        total: int | Expr = element_bytes(info.dtype)
        for dim in info.shape:
            total = total if dim is None else dim * total
        if not isinstance(total, Expr) or None in info.shape or not total.names <= symbols:
            continue
        # Of n * 64 and n * 4 the first tells all.
        key = total.terms[0][0] if len(total.terms) == 1 else total
        if key not in found or found[key].expr.terms[0][1] < total.terms[0][1]:
            found[key] = InnerSize(total, _place(op))
    return list(found.values())


def greatest_safe(sizes: list[Expr]) -> int:
    """A value such that all sizes are below 2**63 while no symbol is greater: a power of two."""
    value = 1 << 62
    while value > 1 and any(magnitude(size, dict.fromkeys(size.names, value)) >= 1 << 63 for size in sizes):
        value >>= 1
    return value


def _tensors(function: func.FuncOp) -> Iterator[tuple[TensorInfo, ir.Operation]]:
    """The distinct tensor types of values in a function, each with the first op that has it."""
    seen: set[ir.Type] = set()
    for op in (function.operation, *nested_operations(function.operation)):
        for value in (*op.results, *(a for block in blocks_of(op) for a in block.arguments)):
            for type_ in leaf_types(value.type) if value.type not in seen else ():
                if isinstance(type_, ir.RankedTensorType) and type_.encoding is not None and type_ not in seen:
                    yield TensorInfo.of(type_), op
                seen.add(type_)
            seen.add(value.type)


def _place(op: ir.Operation) -> str:
    where = location_text(op.location)
    return f"{where}: '{op.name}' op" if where else f"'{op.name}' op"


def is_size(dim: int | Expr, least: int) -> bool:
    """Whether a dimension is proven to be 0 or more, and free of divisions by 0, for all symbols from ``least`` on."""
    return dim >= 0 if isinstance(dim, int) else _is_size(dim, dict.fromkeys(dim.names, least))


def _is_size(dim: Expr, least_of: Mapping[str, int]) -> bool:
    """Whether a dimension is proven to be 0 or more for all symbols from their least values on."""
    try:
        shifted = substitute(dim, {name: symbol(name) + least_of[name] for name in dim.names})
    except RelaxError:  # divides by 0 where symbols are least
        return False
    least = _least(shifted)
    return least is not None and least >= 0


def _least(dim: Dim) -> int | None:
    """What a dimension is at least, for symbols of 0 or more; None when that is not seen, or it may divide by 0."""
    if not isinstance(dim, Expr):
        return dim
    for monomial, coefficient in dim.terms:
        if (coefficient < 0 and monomial) or not all(map(_is_natural, monomial)):
            return None
    return dict(dim.terms).get((), 0)


def _is_natural(atom: str) -> bool:
    """Whether a symbol, or a division, is 0 or more."""
    if atom.isidentifier():
        return True
    dividend, divisor, is_remainder = divided(atom)
    least, divisor_least = _least(dividend), _least(divisor)
    return divisor_least is not None and divisor_least > 0 and least is not None and (is_remainder or least >= 0)
