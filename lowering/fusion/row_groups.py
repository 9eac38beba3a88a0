"""Finds the linalg ops that work on the same rows, and makes one kernel of them: a row stays in the cache from first to last.

Before::

    %m = linalg.generic (i, j) -> (i, j), (i) {parallel, reduction}                  // the largest of each row
    %p = linalg.generic (i, j) -> (i, j), (i), (i, j) { exp(x - m) }
    %s = linalg.generic (i, j) -> (i, j), (i) {parallel, reduction}                  // the sum of each row
    %y = linalg.generic (i, j) -> (i, j), (i), (i, j) { p / s }

after::

    %y = call @kernel_0(%x, %out)
    func.func private @kernel_0(...) attributes {relax.kernel, relax.rows = 1} { ... }   // the four ops

:mod:`..cpu.kernels.nest.row_kernels` runs all of them on one row after another. What is between them is of one row's size
there: a number, a buffer on the stack, or the row of the result; what is cheap is computed again where it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ...dialect.bindings import func, ir
from ...dialect.traversal import clone_with
from ..marks import ROWS
from .linalg_queries import (
    captured,
    captures_tensors,
    destinations,
    index_maps,
    is_empty,
    is_fill,
    is_parallel,
    is_scalar_constant,
    owner_name,
)  # fmt: skip

__all__ = ["RowGroup", "find_row_groups"]


# Rows between operations are on the stack: at most as much as the level 2 cache of any processor holds beside the operands.
_SCRATCH_BYTES = 1 << 16
# Operations that cost less than a store and a load, and how many of them are computed again rather than kept; a row that can
# not be kept is computed again up to the larger number.
_LIGHT = ("arith.addf", "arith.mulf", "arith.subf", "arith.extf", "arith.truncf", "arith.sitofp", "arith.constant")
_CHEAP, _MOST = 6, 24
# Shorter rows stay apart: kernels of one op may have rows in the lanes, which takes half the time at 3 elements (Zen 3).
_SHORTEST = 8


@dataclass(frozen=True)
class RowGroup:
    """Operations of one kernel.

    Attributes:
        ops: in program order; only the last one's result is read by others.
        rows: how many of the first loops they share.
        repeated: results of those that each reader computes for itself.
    """

    ops: tuple[ir.Operation, ...]
    rows: int
    repeated: frozenset[ir.Value]

    @property
    def last(self) -> ir.Operation:
        return self.ops[-1]

    def operands(self) -> list[ir.Value]:
        """What the kernel takes: values from outside, each once, and the destination of the last op's result."""
        made = {op.results[0] for op in self.ops}
        read = [v for op in self.ops for v in [*list(op.operands)[:-1], *captured(op)]]
        inputs = [v for v in dict.fromkeys(read) if v not in made and not is_scalar_constant(v)]
        return [*inputs, _unfilled(destinations(self.last)[0])]

    def build(self, module: ir.Operation) -> func.FuncOp:
        """The function at the end of the module, not yet named."""
        operands, result = self.operands(), self.last.results[0]
        types = [v.type for v in operands]
        with ir.InsertionPoint(module.regions[0].blocks[0]), self.last.location:
            function = func.FuncOp("kernel", (types, [result.type]), visibility="private")
            function.attributes[ROWS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self.rows)
        block = function.add_entry_block(arg_locs=[ir.Location.unknown()] * len(types))
        *inputs, out = block.arguments
        with ir.InsertionPoint(block):
            values: dict[ir.Value, ir.Value] = dict(zip(operands, inputs, strict=False))
            for op in self.ops:
                if op.results[0] not in self.repeated:
                    with op.location:
                        made = self._clone(op, values, out if op == self.last else None)
                    values[op.results[0]] = made
            func.ReturnOp([values[result]])
        return function

    def _clone(self, op: ir.Operation, values: Mapping[ir.Value, ir.Value], out: ir.Value | None) -> ir.Value:
        """An op in the kernel, with those that are repeated for it in front; fusion takes these into it."""
        inner = dict(values)
        for value in dict.fromkeys(op.operands):
            if value in self.repeated:
                inner[value] = self._clone(value.owner.operation, values, None)
        destination = destinations(op)[0]
        fill = destination.owner.operation if is_fill(destination) else None
        for value in [*op.operands, *captured(op), *([fill.operands[0]] if fill is not None else [])]:
            if value not in inner and is_scalar_constant(value):
                inner[value] = value.owner.clone().results[0]
        memory = self._empty(op, values) if out is None else out
        if fill is not None:
            fill = clone_with(fill, {fill.operands[0]: inner[fill.operands[0]], fill.operands[1]: memory}, _here())
            memory = fill.results[0]
        inner[destination] = memory
        return clone_with(op, inner, _here()).results[0]

    def _empty(self, op: ir.Operation, values: Mapping[ir.Value, ir.Value]) -> ir.Value:
        type_, index = ir.RankedTensorType(op.results[0].type), ir.IndexType.get()
        sizes: list[ir.Value] = []
        for axis in range(type_.rank):
            if type_.is_dynamic_dim(axis):
                value, place = _size_source(op.results[0], axis, {o.results[0] for o in self.ops}) or (None, 0)
                assert value is not None
                number = ir.Operation.create("arith.constant", [index], attributes={"value": ir.IntegerAttr.get(index, place)})
                sizes.append(ir.Operation.create("tensor.dim", [index], [values[value], number.result]).result)
        return ir.Operation.create("tensor.empty", [type_], sizes).result


def find_row_groups(ops: Iterable[ir.Operation], stays: Callable[[ir.Operation], bool]) -> list[RowGroup]:
    """The groups of a function's linalg ops, none in two of them.

    A group is an op and, over and over, what only ops of the group read, as long as

    - their first loops are the same parallel ones, the rows: results that are read inside of the group are indexed by these
      first, where they are made and where they are read;
    - an op is elementwise, or a reduction of all its other loops (over windows: of the last ones), into memory that nobody has
      written to but a fill;
    - what is between two of them fits on the stack for one row, can be kept in the row of the group's result, or can be
      computed again by each reader (:func:`_repeated`);
    - one of them is a reduction;
    - rows are not known to be very short.

    Args:
        ops: in program order.
        stays: whether an op belongs to another kernel.
    """
    taken: set[ir.Value] = set()
    found: list[RowGroup] = []
    for op in reversed(list(ops)):
        if len(op.results) != 1 or op.results[0] in taken:
            continue
        groups = [g for rows in _row_counts(op) if (g := _group(op, rows, taken, stays)) is not None]
        if groups:
            group = max(groups, key=lambda g: (len(g.ops), _keeps_lines(g)))
            taken.update(o.results[0] for o in group.ops)
            found.append(group)
    return found


def _row_counts(op: ir.Operation) -> list[int]:
    """How many first loops may be rows, most first: as many as some operand that an op makes is read by."""
    if not _may_be_step(op):
        return []
    most = max((_prefix(m) for v, m in _reads(op) if owner_name(v) == "linalg.generic"), default=0)
    return list(range(most, 0, -1))


def _group(
    last: ir.Operation, rows: int, taken: set[ir.Value], stays: Callable[[ir.Operation], bool]
) -> RowGroup | None:  # fmt: skip
    if not _has_rows(last, rows) or stays(last):
        return None
    members: dict[ir.Value, ir.Operation] = {last.results[0]: last}
    waiting = [v for v, _ in _reads(last)]
    while waiting:
        value = waiting.pop()
        if value in members or value in taken or owner_name(value) != "linalg.generic":
            continue
        op = value.owner.operation
        if op.block == last.block and _has_rows(op, rows) and _only_rows_read(value, rows, members) and not stays(op):
            members[value] = op
            waiting += [v for v, _ in _reads(op)]
    ops = _in_order(members)
    if len(ops) < 2 or all(is_parallel(op) for op in ops) or _are_short(ops, rows):
        return None
    repeated = _repeated(ops, rows)
    return None if repeated is None else RowGroup(tuple(ops), rows, repeated)


def _repeated(ops: Sequence[ir.Operation], rows: int) -> frozenset[ir.Value] | None:
    """Which results each reader computes for itself; None when one can neither be kept nor be computed again.

    Kept are numbers (one per row); rows that cost more to compute than to store, on the stack or in the row of the result.
    """
    last, members = ops[-1], {op.results[0] for op in ops}
    repeated: set[ir.Value] = set()
    weights: dict[ir.Value, int] = {}
    room, in_result = _SCRATCH_BYTES, False
    for op in ops[:-1]:
        value = op.results[0]
        own = _weight(op) + sum(weights[v] for v, _ in _reads(op) if v in repeated)
        size = _row_bytes(value, rows)
        again = _can_repeat(op, members)
        if again and own <= _CHEAP and size != _element_bytes(value):
            repeated.add(value)
            weights[value] = own
        elif not in_result and _fits_result(value, last):
            in_result = True
        elif size is not None and size <= room:
            room -= size
        elif again and own <= _MOST:
            repeated.add(value)
            weights[value] = own
        else:
            return None
        if any(value.type.is_dynamic_dim(i) and _size_source(value, i, members) is None for i in range(value.type.rank)):
            return None
    return frozenset(repeated)


def _weight(op: ir.Operation) -> int:
    """Operations of a body; a heavy one counts as more than what is cheap."""
    names = [o.operation.name for o in op.regions[0].blocks[0].operations][:-1]
    return sum(1 if n in _LIGHT else _CHEAP + 1 for n in names)


def _can_repeat(op: ir.Operation, members: set[ir.Value]) -> bool:
    """Whether fusion takes an elementwise op into each of its readers: they read it as it is, and inputs give all its sizes."""
    if not is_parallel(op):
        return False
    loops = index_maps(op)[-1].n_dims
    named = {e.position for _, m in _reads(op) for e in _dims(m)}
    identity = ir.AffineMap.get_identity(loops)
    readers = [use.owner.operation for use in op.results[0].uses]
    return named == set(range(loops)) and all(m == identity for r in readers for v, m in _reads(r) if v == op.results[0])


def _fits_result(value: ir.Value, last: ir.Operation) -> bool:
    """Whether a value can be where the result of the group will be: the last op reads each element just before it writes it."""
    maps = [m for v, m in _reads(last) if v == value]
    return value.type == last.results[0].type and is_parallel(last) and all(m == index_maps(last)[-1] for m in maps)


def _keeps_lines(group: RowGroup) -> bool:
    """Whether reductions over windows have two parallel loops in a row: neighbours of a line then share the taps they read."""
    windows = [op for op in group.ops if not is_parallel(op) and _has_windows(op)]
    return any(str(op.attributes["iterator_types"]).count("<parallel>") == group.rows + 2 for op in windows)


# -- questions about one op --------------------------------------------------------------------------------------------


def _may_be_step(op: ir.Operation) -> bool:
    """Whether an op is elementwise or a plain reduction, of new memory, as long as its body reads no tensors."""
    if op.name != "linalg.generic" or len(op.results) != 1:
        return False
    destination = destinations(op)[0]
    return is_empty(_unfilled(destination)) and (is_parallel(op) or is_fill(destination))


def _has_rows(op: ir.Operation, rows: int) -> bool:
    """Whether the first loops of an op can be rows: it writes by them first, and reduces all others or none."""
    return _may_be_step(op) and _loops_over_rows(op, rows) and not captures_tensors(op)


def _loops_over_rows(op: ir.Operation, rows: int) -> bool:
    out = index_maps(op)[-1]
    if is_parallel(op):
        return out == ir.AffineMap.get_identity(out.n_dims) and out.n_dims >= rows
    kinds = ["reduction" in str(k) for k in ir.ArrayAttr(op.attributes["iterator_types"])]
    first = kinds.index(True)
    if first < rows or not all(kinds[first:]) or not _within_row(out, rows):
        return False
    return first > rows if _has_windows(op) else first == rows


def _has_windows(op: ir.Operation) -> bool:
    """Whether a reduction is over windows: there, neighbours are those of a parallel loop, which then is part of a row."""
    return any(not isinstance(e, (ir.AffineDimExpr, ir.AffineConstantExpr)) for _, m in _reads(op) for e in m.results)


def _only_rows_read(value: ir.Value, rows: int, members: Mapping[ir.Value, ir.Operation]) -> bool:
    """Whether only members read a value, as an input, each row of it for the same row."""
    for use in value.uses:
        reader = use.owner.operation
        if len(reader.results) != 1 or reader.results[0] not in members or use.operand_number == len(reader.operands) - 1:
            return False
        if not _within_row(index_maps(reader)[use.operand_number], rows):
            return False
    return True


def _within_row(map_: ir.AffineMap, rows: int) -> bool:
    """Whether the rows are the first indices, and no others."""
    constant, dim = ir.AffineExpr.get_constant, ir.AffineExpr.get_dim
    first = ir.AffineMap.get(map_.n_dims, 0, [constant(0) if d < rows else dim(d) for d in range(map_.n_dims)])
    return _prefix(map_) >= rows and all(e.compose(first) == e for e in list(map_.results)[rows:])


def _prefix(map_: ir.AffineMap) -> int:
    """How many of the first indices are the first loops."""
    for i, expr in enumerate(map_.results):
        if not isinstance(expr, ir.AffineDimExpr) or expr.position != i:
            return i
    return len(map_.results)


def _dims(map_: ir.AffineMap) -> list[ir.AffineDimExpr]:
    return [e for e in map_.results if isinstance(e, ir.AffineDimExpr)]


def _reads(op: ir.Operation) -> list[tuple[ir.Value, ir.AffineMap]]:
    return list(zip(list(op.operands)[:-1], index_maps(op)[:-1], strict=True))


def _are_short(ops: Sequence[ir.Operation], rows: int) -> bool:
    """Whether the rows that are reduced are all known to be short."""
    dynamic = ir.ShapedType.get_dynamic_size()
    reductions = [op for op in ops if not is_parallel(op)]
    shapes = [list(v.type.shape)[rows:] for op in reductions for v, m in _reads(op) if len(m.results) == m.n_dims]
    return bool(shapes) and all(dynamic not in shape and prod(shape) < _SHORTEST for shape in shapes)


def _row_bytes(value: ir.Value, rows: int) -> int | None:
    """The size of one row of a value, None when it is not known."""
    shape = list(value.type.shape)[rows:]
    dynamic = ir.ShapedType.get_dynamic_size()
    return None if dynamic in shape else prod(shape) * _element_bytes(value)


def _element_bytes(value: ir.Value) -> int:
    return -(-value.type.element_type.width // 8)


def _size_source(value: ir.Value, axis: int, members: set[ir.Value]) -> tuple[ir.Value, int] | None:
    """A value from outside of the group and its dimension that has the size of a member's result's."""
    if value not in members:
        return value, axis
    op = value.owner.operation
    loop = index_maps(op)[-1].results[axis]
    for source, map_ in _reads(op):
        for place, expr in enumerate(map_.results):
            if expr == loop and (found := _size_source(source, place, members)) is not None:
                return found
    return None


def _in_order(members: Mapping[ir.Value, ir.Operation]) -> list[ir.Operation]:
    """Producers first: depth first from the last op, linear in the number of operands."""
    done: dict[ir.Value, ir.Operation] = {}
    stack = [(next(iter(members)), False)]
    while stack:
        value, visited = stack.pop()
        if visited:
            done[value] = members[value]
        elif value not in done:
            stack.append((value, True))
            stack += [(v, False) for v, _ in _reads(members[value]) if v in members and v not in done]
    return list(done.values())


def _unfilled(destination: ir.Value) -> ir.Value:
    return destination.owner.operands[1] if is_fill(destination) else destination


def _here() -> ir.InsertionPoint:
    return ir.InsertionPoint.current
