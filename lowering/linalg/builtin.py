"""Ops that say something about a value: keeping it and a barrier are nothing, a cast defines symbols and checks sizes."""

from __future__ import annotations

from ...dialect.bindings import ir
from ...dialect.symbolic import Dim, Expr, dim_text
from .builder import LinalgBuilder, Tensor
from .dtypes import storage_type
from .registry import Source, lowering
from .size_checks import match_size

__all__: list[str] = []


@lowering("relax.keep")
def _lower_keep(b: LinalgBuilder, source: Source) -> list[ir.Value]:
    return []  # the checks of what makes its operand are there by now


@lowering("relax.stop_lift_params")
def _lower_stop_lift_params(b: LinalgBuilder, source: Source) -> Tensor:
    return source.operands[0]


@lowering("relax.prim_value")
def _lower_prim_value(b: LinalgBuilder, source: Source) -> ir.Value:
    return b.as_index(b.evaluate(source.attrs["value"][0]))


@lowering("relax.match_cast")
def _lower_match_cast(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    # Plain names first: they solve the expressions.
    axes = sorted(range(x.rank), key=lambda axis: not _is_name(source.result.shape[axis]))
    for axis in axes:
        _match(b, x, axis, source.result.shape[axis])
    return b.cast(x.value, storage_type(source.result.type))


def _is_name(dim: Dim) -> bool:
    return isinstance(dim, Expr) and dim.text.isidentifier()


def _match(b: LinalgBuilder, x: Tensor, axis: int, dim: Dim) -> None:
    """Defines what is new in a dimension, and checks what is known."""
    if dim == x.shape[axis] and (isinstance(dim, int) or b.symbols.knows(dim)):
        return
    match_size(b, b.size(x, axis), dim, f"expected dimension {axis} to be {dim_text(dim)}")
