"""Products of rows in groups, each with the matrix of its group: what a kernel computes of such a contraction, for which rows.

As linalg writes it, all groups are summed, and a row counts as zeros in others than its own (:data:`ROW_GROUPS`). Here a group
is what fixes a place in the right factor, and the left factor is the rows as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ...integer_product import IntegerProduct
from ...marks import ROW_GROUPS
from ..emit.buffers import Buffers
from ..emit.linear_index import Linear, Size
from .factor import Factor
from .match import Contraction, match_contraction
from .nest import Operand
from .roles import OF_COLUMNS, OF_ROWS, Roles

__all__ = ["FIRST_ROW", "ROWS_OF_GROUP", "GroupedContraction", "RowGroups", "match_one_group", "match_product", "match_rows"]

#: The loop dimension that stands for the first row of a group, in :func:`match_one_group`.
FIRST_ROW = -1
#: How many rows a group has there, which data says.
ROWS_OF_GROUP = (-1, 0)


@dataclass(frozen=True)
class RowGroups:
    """Groups of rows.

    Attributes:
        dim: the loop dimension of groups; None of a single one.
        ends: for each group the row behind its last one.
        count: how many groups there are.
        rows: how many rows there are, of all groups and behind them; None of a single one.
    """

    dim: int | None
    ends: Operand
    count: int
    rows: Size | None


@dataclass(frozen=True)
class GroupedContraction(Contraction):
    """``C[m, n] += left[m, outer, k] * right[group of m, outer, k, n]``; a group is in ``batch``, as the result has none."""

    groups: RowGroups


def match_product(operation: ir.Operation, memory: Buffers) -> Contraction | None:
    """A contraction as kernels of tiles compute it, None when it is no sum of products that can be tiled.

    Raises RelaxError at an operation whose marks do not fit it.
    """
    found = match_contraction(operation, memory)
    return found if found is None or ROW_GROUPS not in operation.attributes else _grouped(found)


def match_rows(operation: ir.Operation, memory: Buffers) -> Contraction | None:
    """The same as kernels of few rows do, to which rows in groups are so many products of one row."""
    found = match_product(operation, memory)
    if not isinstance(found, GroupedContraction):
        return found
    rows = tuple(d for d in found.nest.extents if d in {*found.shared, found.m})
    return _with(found, found.left.value, found.groups, m=None, shared=(), batch=rows)


def match_one_group(operation: ir.Operation, memory: Buffers) -> Contraction | None:
    """The same as kernels do that take one group after the other: each is a product of as many rows as it has.

    Row 0 is the first one of the group, :data:`FIRST_ROW`, and there are :data:`ROWS_OF_GROUP`.
    """
    found = match_product(operation, memory)
    if not isinstance(found, GroupedContraction):
        return found
    floors = [f.inner.dims() for o in found.right.operands for f in o.offset.floors()]
    if any({found.groups.dim, found.n} <= dims for dims in floors):  # a panel has columns of two groups
        return None
    return _one_group(found)


def _one_group(found: GroupedContraction) -> GroupedContraction:
    m, nest = found.m, found.nest
    rows = {} if m is None else {m: Linear.dim(m) + Linear.dim(FIRST_ROW)}

    def moved(operand: Operand) -> Operand:
        return operand.with_offset(operand.offset.substituted(lambda d: rows.get(d, Linear.dim(d))))

    inputs, outputs = (tuple(moved(o) for o in operands) for operands in (nest.inputs, nest.outputs))
    sizes = {d: Size.symbol(ROWS_OF_GROUP) if d == m else size for d, size in nest.extents.items() if d not in found.batch}
    inner = replace(nest, extents=sizes, inputs=inputs, outputs=outputs)
    return _with(replace(found, nest=inner), found.left.value, found.groups, m=m, shared=(), batch=())


def _grouped(found: Contraction) -> GroupedContraction | None:
    """None of a single column, whose rows are what it reads a part of, and of single steps of k, which are no sum.

    Raises RelaxError where rows are not masked by groups.
    """
    operation, mask = found.nest.operation, _mask_of(found.left)
    product = IntegerProduct.of(operation)
    if product is not None:  # its factors are without a mask
        left, ends = found.left.value, list(Roles(found.nest, product).operands("ends"))
    elif mask is not None:
        left, ends = mask[1], [o for o in found.left.part(mask[0]).operands if o.buffer is not None]
    elif _mask_of(found.right) is not None:
        return None
    else:
        left, ends = found.left.value, list[Operand]()
    if len(ends) != 1 or not isinstance(ends[0].argument.type, ir.IntegerType):
        raise RelaxError(f"expected a left factor that {ROW_GROUPS} masks by ends of groups", operation.location)
    count, dims = ir.MemRefType(ends[0].value.type).shape[0], ends[0].offset.dims()
    if not dims <= set(found.outer) or len(dims) > 1 or found.batch or (not dims and count != 1):
        return None
    rows = None if found.m is None else found.nest.extents[found.m]
    groups = RowGroups(next(iter(dims), None), ends[0], count, rows)
    return _with(found, left, groups, m=found.m, shared=found.shared, batch=tuple(dims))


def _mask_of(factor: Factor) -> tuple[ir.Value, ir.Value] | None:
    """The mask of a factor, and what it is where that holds; None of one without."""
    owner = factor.value.owner
    return None if isinstance(owner, ir.Block) or owner.name != "arith.select" else (owner.operands[0], owner.operands[1])


def _with(
    found: Contraction, left: ir.Value, groups: RowGroups, *, m: int | None, shared: tuple[int, ...], batch: tuple[int, ...]
) -> GroupedContraction:
    nest, product = found.nest, IntegerProduct.of(found.nest.operation)
    if product is None:
        every = Factor(left, nest.inputs, tuple(nest.body()[0]))
        factors = every.part(left), every.part(found.right.value)
    else:
        roles = Roles(nest, product)
        factors = roles.factor(*OF_ROWS), roles.factor(*OF_COLUMNS)
    outer = tuple(d for d in found.outer if d != groups.dim)
    return GroupedContraction(nest, batch, shared, m, found.n, outer, found.k, *factors, groups)
