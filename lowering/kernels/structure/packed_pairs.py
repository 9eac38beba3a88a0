"""Whether a right operand is packed in pairs of rows: by the mark that says how it is packed, held to how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.packed_layout import EXAMPLE, PackedLayout
from ...fusion.linalg_queries import index_maps
from ...marks import LAYOUT
from .match import Contraction
from .nest import Operand
from .row_groups import GroupedContraction

__all__ = ["paired_panel"]


def paired_panel(contraction: Contraction, operand: Operand) -> int:
    """Columns of a panel of pairs of rows; 0 where the operand is packed in another way, or not.

    Raises RelaxError where the operand is not read as the mark says that it is packed.
    """
    operation = contraction.nest.operation
    layout = _layout(operation)
    if layout is None or layout.rows != 2:
        return 0
    place = next(i for i, value in enumerate(contraction.nest.inputs) if value.argument == operand.argument)
    map_ = index_maps(operation)[place]
    with operation.context:
        loops = [ir.AffineExpr.get_dim(d) for d in range(map_.n_dims)]
        where = [
            ((k, n), layout.place(loops[k], first + loops[n], ir.AffineExpr.get_floor_div))
            for k, n in permutations(range(len(loops)), 2)
            for first in _first_columns(contraction, [loop for d, loop in enumerate(loops) if d not in (k, n)])
        ]
    results = list(map_.results)
    found = next((pair for pair, (panel, *inside) in where if results[-3:] == inside and panel in results[:-3]), None)
    if found is None:
        raise RelaxError(f"expected a right operand that is read as it is packed, '{layout}', got {map_}", operation.location)
    return layout.tile if found == (contraction.k, contraction.n) else 0


def _first_columns(contraction: Contraction, others: Sequence[ir.AffineExpr]) -> list[ir.AffineExpr]:
    """What the first column may be: the first of all, or, where rows are in groups, that of one, by some other loop."""
    columns = contraction.nest.extents[contraction.n].static
    if not isinstance(contraction, GroupedContraction) or columns is None:
        return [ir.AffineExpr.get_constant(0)]
    return [loop * columns for loop in others]


def _layout(operation: ir.Operation) -> PackedLayout | None:
    """How the right-hand side is packed. Raises RelaxError at an operation that is marked with anything else."""
    if LAYOUT not in operation.attributes:
        return None
    try:
        return PackedLayout.parse(ir.StringAttr(operation.attributes[LAYOUT]).value)
    except (ValueError, RelaxError):
        raise RelaxError(
            f"expected {LAYOUT} such as {EXAMPLE}, got {operation.attributes[LAYOUT]}", operation.location
        ) from None
