"""Sizes of arrays against what an op needs of them: the relations that compiled code checks, on numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import RelaxError
from ..op_sizes import OpSizes
from ..size_relations import holds
from ..symbolic import Expr, evaluate, is_open, open_dim, symbol
from .scope import Scope

__all__ = ["check_sizes"]


def check_sizes(sizes: OpSizes, operands: Sequence[Any], scope: Scope) -> None:
    """Raises RelaxError where the operands' sizes do not fit each other, or the symbols of the result's type.

    Args:
        sizes: what the op needs.
        operands: arrays, and what is none.
        scope: the symbols' values.
    """
    if not sizes.relations:
        return
    opened: dict[str, int] = {
        open_dim(i, axis).text: size for i, x in enumerate(operands) for axis, size in enumerate(getattr(x, "shape", ()))
    }  # fmt: skip

    def number(dim: int | Expr) -> int:
        if isinstance(dim, int):
            return dim
        known = scope.try_resolve(dim)
        return known if known is not None else evaluate(dim, {n: _value(n, opened, scope) for n in dim.names})

    for relation in sizes.relations:
        if relation.kind == "equal" and not (is_open(relation.right) or scope.knows(relation.right)):
            continue  # a symbol that the result's type is the first to name
        if not holds(relation.kind, number(relation.left), number(relation.right)):
            raise RelaxError(relation.failure(sizes.operands, lambda dim: str(number(dim))))


def _value(name: str, opened: dict[str, int], scope: Scope) -> int:
    return opened[name] if name in opened else scope.resolve(symbol(name))
