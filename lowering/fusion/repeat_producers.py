"""Decides what is computed where it is read: prepares the ops of a function for upstream's fusion of elementwise ops.

Upstream fuses a producer into its only reader. Two things stand in its way, and go here.

An op whose result several ops read: it is computed by each of them, where that moves fewer bytes. Before::

    %q = linalg.generic {(h, s, d) -> (s, h, d), ...} ins(%x) { yield %in }      // read by %a and %b

after: a copy of the op in front of each reader, which upstream's fusion takes into it.

A concatenation: what reads it elementwise is computed part by part. Before::

    %c = tensor.insert_slice %p into (tensor.insert_slice %q into %empty[0, 0] [8, 32]) [0, 32] [8, 32]
    %y = linalg.generic {(i, j) -> (i, j), (i, j) -> (i, j), ...} ins(%c, %x) { mulf }

after::

    %u = linalg.generic {(i, j) -> (i, j), (i, j) -> (i, j mod 64), ...} ins(%q, %x) { mulf }
    %v = linalg.generic {(i, j) -> (i, j), (i, j) -> (i, j + 32), ...} ins(%p, %x) { mulf }
    %y = tensor.insert_slice %v into (tensor.insert_slice %u into %empty[0, 0] [8, 32]) [0, 32] [8, 32]

The cost rule, in bytes that ops read and write, and in operations per element:

- an elementwise op is taken into its only reader: its result is neither written nor read (upstream's rule);
- one that several read is repeated in each when then fewer bytes are read than are now read by it, written, and read by them,
  and when it costs at most ``_CHEAP`` operations; none, when it reads a contraction's result, which it can be the epilogue of.
  More than two readers count as any number of them. All readers have to take it: as long as one needs it in memory, the
  others may read it there. Elements that are neighbours must be so where they come from;
- a concatenation goes when one elementwise op reads it that does not widen it (a contraction takes that in), and its parts are
  at least ``_LONG`` elements where they are divided along the last dimension;
- a contraction takes what widens its weight (:mod:`.weight_prologue`), and the elementwise op that is the only reader of its
  result (:mod:`.outline_kernels`); ops on the same rows are one kernel (:mod:`.row_groups`), which has a
  rule of its own for what is kept there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from ...dialect.bindings import ir
from ...dialect.functions import body_of, functions
from ...dialect.traversal import erase_unused, is_read_once
from ..lowering_pass import LoweringPass
from ..marks import KERNEL
from .linalg_queries import captures_tensors, destinations, generics_in, index_maps, is_empty, is_parallel, owner_name

__all__ = ["FEW_READERS", "RepeatProducers", "prepare_fusion"]

# Operations that cost less than a store and a load of an element, and how many of them are computed again.
_LIGHT = (
    "arith.addf",
    "arith.mulf",
    "arith.subf",
    "arith.negf",
    "arith.extf",
    "arith.truncf",
    "arith.sitofp",
    "arith.constant",
)
_CHEAP = 6
#: Of more readers than these, an op is repeated if it pays for any number of them: so what all layers read is lowered in one
#: way, however many layers there are (:mod:`..layers`).
FEW_READERS = 2
# So many elements are a vector of any processor.
_LONG = 16
_DYNAMIC = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class RepeatProducers(LoweringPass):
    """Repeats what is cheap to compute at each of its readers."""

    name: ClassVar[str] = "relax-repeat-producers"

    def run(self, op: ir.Operation) -> None:
        prepare_fusion(op)


def prepare_fusion(module: ir.Operation) -> None:
    """Rewrites in every function of the module that is not a kernel itself; in place, linear in the number of ops."""
    for function in functions(module):
        if KERNEL in function.attributes or body_of(function) is None:
            continue
        for op in generics_in(function.operation):
            parts = _divided(op)
            if parts:
                _distribute(op, parts)
        for op in reversed(generics_in(function.operation)):
            if _is_repeated(op):
                _repeat(op)


# -- one producer, several readers -------------------------------------------------------------------------------------


def _is_repeated(op: ir.Operation) -> bool:
    """Whether each reader of an op computes it for itself."""
    if not _is_elementwise(op):
        return False
    uses = list(op.results[0].uses)
    readers = {use.owner.operation for use in uses}
    if len(readers) < 2 or not all(_takes(reader, op) for reader in readers):
        return False
    inputs = [v for v in list(op.operands)[:-1] if isinstance(v.type, ir.RankedTensorType)]
    weight, once = _weight(op), all(_reads_once(reader, op) for reader in readers)
    if weight and (weight > _CHEAP or any(map(_contracted, inputs)) or not once):
        return False
    read, written = sum(map(_bytes, dict.fromkeys(inputs))), _bytes(op.results[0])
    if len(readers) > FEW_READERS:
        return read <= written and _keeps_neighbours(op)
    shares = sum(_share(reader, op) for reader in readers)
    return read * shares < read + written + written * shares and _keeps_neighbours(op)


def _share(reader: ir.Operation, op: ir.Operation) -> float:
    """How much of an op's result a reader reads, at most."""
    return min(1.0, _elements(reader.results[0]) / max(1, _elements(op.results[0]))) if is_parallel(reader) else 1.0


def _takes(reader: ir.Operation, op: ir.Operation) -> bool:
    """Whether upstream's fusion takes the op into a reader."""
    result = op.results[0]
    return reader.name == "linalg.generic" and reader.block == op.block and result not in destinations(reader)


def _reads_once(reader: ir.Operation, op: ir.Operation) -> bool:
    """Whether a reader has no loops over the same elements, which it would compute more than once."""
    maps = [m for v, m in zip(reader.operands, index_maps(reader), strict=True) if v == op.results[0]]
    return all(len(m.results) == m.n_dims for m in maps)


def _weight(op: ir.Operation) -> int:
    names = [o.operation.name for o in op.regions[0].blocks[0].operations][:-1]
    return sum(1 if n in _LIGHT else _CHEAP + 1 for n in names)


def _keeps_neighbours(op: ir.Operation) -> bool:
    """Whether the last loop is the last index of each operand that has it, so that no reader gathers elements."""
    last = len(index_maps(op)[-1].results) - 1
    for map_ in index_maps(op)[:-1]:
        named = [i for i, e in enumerate(map_.results) if ir.AffineExpr.get_dim(last) == e or _mentions(e, last)]
        if named and named != [len(map_.results) - 1]:
            return False
    return True


def _mentions(expr: ir.AffineExpr, dim: int) -> bool:
    if isinstance(expr, ir.AffineDimExpr):
        return expr.position == dim
    return isinstance(expr, ir.AffineBinaryExpr) and (_mentions(expr.lhs, dim) or _mentions(expr.rhs, dim))


def _contracted(value: ir.Value) -> bool:
    """Whether a value is what a kernel gives, under any shape."""
    while owner_name(value) in ("tensor.expand_shape", "tensor.collapse_shape"):
        value = value.owner.operands[0]
    return owner_name(value) == "func.call"


def _repeat(op: ir.Operation) -> None:
    """A copy of the op in front of each reader but one."""
    result = op.results[0]
    copies: dict[ir.Value, ir.Value] = {}
    for reader, position in [(use.owner.operation, use.operand_number) for use in result.uses]:
        key = reader.results[0]
        if key not in copies:
            copies[key] = op.clone(ip=ir.InsertionPoint(reader)).results[0] if copies else result
        reader.operands[position] = copies[key]


# -- elementwise ops on concatenations ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """A part of a concatenation along an axis: what it is, the first index, and the insertion."""

    value: ir.Value
    first: int
    insertion: ir.Operation


@dataclass(frozen=True)
class _Concatenation:
    """An operand of an elementwise op that is one, along the ``loop`` of the op, from its first part to its last one."""

    operand: int
    loop: int
    parts: tuple[_Part, ...]

    @property
    def bounds(self) -> list[int]:
        return [p.first for p in self.parts]


def _divided(op: ir.Operation) -> list[_Concatenation]:
    """The operands of an elementwise op that are concatenations, all of them divided in the same way."""
    if not any(owner_name(v) == "tensor.insert_slice" for v in op.operands) or not _is_elementwise(op):
        return []
    if any(o.operation.name == "linalg.index" for o in op.regions[0].blocks[0].operations):
        return []
    found: list[_Concatenation] = []
    type_ = ir.RankedTensorType(op.results[0].type)
    if sum(_bytes(v) for v in list(op.operands)[:-1] if isinstance(v.type, ir.RankedTensorType)) < _bytes(op.results[0]):
        return []
    for position, (value, map_) in enumerate(zip(list(op.operands)[:-1], index_maps(op), strict=False)):
        parts = _parts_of(value)
        if parts is None:
            continue
        axis, pieces = parts
        expr = map_.results[axis]
        if not isinstance(expr, ir.AffineDimExpr) or type_.shape[expr.position] != value.type.shape[axis]:
            continue
        entry = _Concatenation(position, expr.position, tuple(pieces))
        short = expr.position == type_.rank - 1 and min(p.value.type.shape[axis] for p in pieces) < _LONG
        if not short and (not found or (found[0].loop, found[0].bounds) == (entry.loop, entry.bounds)):
            found.append(entry)
    return found


def _parts_of(value: ir.Value) -> tuple[int, list[_Part]] | None:
    """The axis and the parts, of constant sizes along it, of a concatenation that is read once; None for anything else."""
    parts: list[_Part] = []
    axes: set[int] = set()
    extents: list[list[ir.Value]] = []
    whole = value.type
    while owner_name(value) == "tensor.insert_slice":
        op = value.owner.operation
        part = op.operands[0]
        offsets, sizes, strides = (
            list(ir.DenseI64ArrayAttr(op.attributes[f"static_{n}"])) for n in ("offsets", "sizes", "strides")
        )
        if _DYNAMIC in offsets or set(strides) != {1} or part.type.rank != whole.rank or not is_read_once(value):
            return None
        axes |= {i for i, (size, full) in enumerate(zip(sizes, whole.shape, strict=True)) if size != full}
        extents.append(list(op.operands)[2:])
        parts.append(_Part(part, sum(offsets), op))
        value = op.operands[1]
    if not is_empty(value) or len(axes) != 1 or len(parts) < 2 or any(e != list(value.owner.operands) for e in extents):
        return None
    (axis,) = axes
    if _DYNAMIC in (whole.shape[axis], *(p.value.type.shape[axis] for p in parts)):
        return None
    parts.sort(key=lambda p: p.first)
    ends = [p.first + p.value.type.shape[axis] for p in parts]
    return (axis, parts) if [0, *ends] == [*(p.first for p in parts), whole.shape[axis]] else None


def _distribute(op: ir.Operation, operands: Sequence[_Concatenation]) -> None:
    """The op for each part, and the results put together."""
    loop, result = operands[0].loop, op.results[0]
    type_ = ir.RankedTensorType(result.type)
    sizes = list(destinations(op)[0].owner.operands)
    with ir.InsertionPoint(op), op.location:
        total = ir.Operation.create("tensor.empty", [type_], sizes).result
        for number, part in enumerate(operands[0].parts):
            values = {c.operand: c.parts[number].value for c in operands}
            length = values[operands[0].operand].type.shape[_axis(op, operands[0])]
            made = _part(op, loop, part.first, length, values)
            total = _inserted(made, total, loop, part.first, sizes)
    result.replace_all_uses_with(total)
    op.erase()
    erase_unused(p.insertion for c in operands for p in c.parts)


def _axis(op: ir.Operation, operand: _Concatenation) -> int:
    return list(index_maps(op)[operand.operand].results).index(ir.AffineExpr.get_dim(operand.loop))


def _part(op: ir.Operation, loop: int, first: int, length: int, values: dict[int, ir.Value]) -> ir.Value:
    """The op on ``length`` iterations of a loop, from the first one on; of what ``values`` has, on that part of it."""
    type_ = ir.RankedTensorType(op.results[0].type)
    shape = [length if i == loop else n for i, n in enumerate(type_.shape)]
    part_type = ir.RankedTensorType.get(shape, type_.element_type)
    maps = [
        m if i in values or i == len(op.operands) - 1 else _shifted(m, loop, first, v.type)
        for i, (m, v) in enumerate(zip(index_maps(op), op.operands, strict=True))
    ]
    out = ir.Operation.create("tensor.empty", [part_type], list(destinations(op)[0].owner.operands)).result
    made = op.clone().operation
    for position, value in {**values, len(op.operands) - 1: out}.items():
        made.operands[position] = value
    made.results[0].set_type(part_type)
    made.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps])
    return made.results[0]


def _shifted(map_: ir.AffineMap, loop: int, first: int, type_: ir.Type) -> ir.AffineMap:
    """With the loop starting at ``first``; where it is an index as it is, not saying that the operand is as short."""
    dims = [ir.AffineExpr.get_dim(i) for i in range(map_.n_dims)]
    moved = ir.AffineMap.get(map_.n_dims, 0, [d + first if i == loop else d for i, d in enumerate(dims)])
    if first:
        return ir.AffineMap.get(map_.n_dims, 0, [e.compose(moved) for e in map_.results])
    shape = ir.RankedTensorType(type_).shape if isinstance(type_, ir.RankedTensorType) else []
    exprs = [e % shape[i] if e == dims[loop] else e for i, e in enumerate(map_.results)]
    return ir.AffineMap.get(map_.n_dims, 0, exprs)


def _inserted(part: ir.Value, whole: ir.Value, axis: int, first: int, sizes: Sequence[ir.Value]) -> ir.Value:
    shape = list(ir.RankedTensorType(part.type).shape)
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get([first if i == axis else 0 for i in range(len(shape))]),
        "static_sizes": ir.DenseI64ArrayAttr.get(shape),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * len(shape)),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0, len(sizes), 0]),
    }
    return ir.Operation.create("tensor.insert_slice", [whole.type], [part, whole, *sizes], attributes).result


# -- questions about one op --------------------------------------------------------------------------------------------


def _is_elementwise(op: ir.Operation) -> bool:
    """Whether an op of one result computes each element from others, into new memory."""
    if len(op.results) != 1 or not is_parallel(op) or not is_empty(destinations(op)[0]):
        return False
    out = index_maps(op)[-1]
    return out == ir.AffineMap.get_identity(out.n_dims) and not captures_tensors(op)


def _elements(value: ir.Value) -> int:
    """How many a tensor has; dimensions that are not known count as long, and equally so."""
    return prod(1 << 10 if d == _DYNAMIC else d for d in ir.RankedTensorType(value.type).shape)


def _bytes(value: ir.Value) -> int:
    width: int = ir.RankedTensorType(value.type).element_type.width  # pyright: ignore[reportAttributeAccessIssue]
    return _elements(value) * -(-width // 8)
