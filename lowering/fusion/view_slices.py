"""Slices of one tensor become views, where many would each be a kernel, or make one different, by nothing but their place.

So do those that a concatenation copies to their place anyway.

Before, of each expert's flags and of its shares, say::

    %0 = linalg.generic {(i, j) -> (i + 9, j), (i, j) -> (i, j)} ins(%flags : tensor<64x?xi8>) outs(%e) { yield %in }
    %1 = linalg.generic {(i, j) -> (i, 9), (i, j) -> (i, j), ...} ins(%shares, %y : tensor<?x64xf32>, ...) { mulf }

after::

    %0 = tensor.extract_slice %flags[9, 0] [1, %n] [1, 1] : tensor<64x?xi8> to tensor<1x?xi8>
    %s = tensor.extract_slice %shares[0, 9] [%m, 1] [1, 1] : tensor<?x64xf32> to tensor<?x1xf32>
    %1 = linalg.generic {(i, j) -> (i, 0), (i, j) -> (i, j), ...} ins(%s, %y : tensor<?x1xf32>, ...) { mulf }

The place is then the caller's, and kernels of all slices are one. Else their number, and the time to compile, would grow with
the number of slices. A view is copied for a kernel; so one that something else is computed with has to be small beside that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ...dialect.bindings import ir
from .linalg_queries import destinations, index_maps, is_empty, is_parallel

__all__ = ["view_slices"]

# So many slices of one tensor, at least, are worth a copy that a kernel is called for instead of one that it is built for.
_WORTH = 4
# An op computes so many elements for each that a copy of what it reads at one place has; dimensions that are not known count
# as that long.
_SMALL, _UNKNOWN = 4, 1 << 10

_SHAPED = ("tensor.collapse_shape", "tensor.expand_shape")
_DYNAMIC = ir.ShapedType.get_dynamic_size()


def view_slices(ops: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Replaces slices of tensors that many are taken of, in place; gives the ops that are left."""
    _separate(ops)
    found: dict[ir.Value, list[tuple[ir.Operation, list[int]]]] = {}
    for op in ops:
        begins = _begins(op)
        if begins is not None:
            found.setdefault(op.operands[0], []).append((op, begins))
    taken = [item for items in found.values() for item in items if len(items) >= _WORTH or _is_copied(item[0].results[0])]
    gone = {op.results[0] for op, _ in taken}
    left = [op for op in ops if not len(op.results) or op.results[0] not in gone]
    for op, begins in taken:
        _view(op, begins)
    return left


def _separate(ops: Sequence[ir.Operation]) -> None:
    """Takes slices at constant places out of what is computed with them."""
    found: dict[ir.Value, list[tuple[ir.Operation, int, dict[int, int]]]] = {}
    for op in ops:
        for position, map_ in enumerate(index_maps(op)[:-1]) if _may_be_separated(op) else ():
            places = _places(op, position, map_)
            if places:
                found.setdefault(op.operands[position], []).append((op, position, places))
    for value, readers in found.items():
        if len({tuple(places.items()) for _, _, places in readers}) >= _WORTH:
            for op, position, places in readers:
                _take_out(op, position, value, places)


def _may_be_separated(op: ir.Operation) -> bool:
    return op.name == "linalg.generic" and is_parallel(op) and len(op.results) == 1


def _places(op: ir.Operation, position: int, map_: ir.AffineMap) -> dict[int, int]:
    """The dimensions of an operand that an op reads at one place, where what it reads is small beside its result."""
    kind = op.operands[position].type
    if not isinstance(kind, ir.RankedTensorType):
        return {}
    found = {i: e.value for i, e in enumerate(map_.results) if isinstance(e, ir.AffineConstantExpr) and kind.shape[i] != 1}
    read = prod(1 if i in found else _size(d) for i, d in enumerate(kind.shape))
    made = prod(map(_size, ir.RankedTensorType(op.results[0].type).shape))
    return found if _SMALL * read <= made else {}


def _size(size: int) -> int:
    return _UNKNOWN if size == _DYNAMIC else size


def _take_out(op: ir.Operation, position: int, value: ir.Value, places: Mapping[int, int]) -> None:
    kind = ir.RankedTensorType(value.type)
    shape = [1 if i in places else size for i, size in enumerate(kind.shape)]
    with ir.InsertionPoint(op), op.location:
        index = ir.IndexType.get()
        sizes = list[ir.Value]()
        for i in (i for i, size in enumerate(shape) if size == _DYNAMIC):
            number = ir.Operation.create("arith.constant", [index], [], {"value": ir.IntegerAttr.get(index, i)}).result
            sizes.append(ir.Operation.create("tensor.dim", [index], [value, number]).result)
        made = _slice(value, [places.get(i, 0) for i in range(len(shape))], shape, sizes)
    op.operands[position] = made
    maps = index_maps(op)
    zero = ir.AffineExpr.get_constant(0, op.context)
    exprs = [zero if i in places else e for i, e in enumerate(maps[position].results)]
    maps[position] = ir.AffineMap.get(maps[position].n_dims, 0, exprs, op.context)
    op.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps], op.context)


def _begins(op: ir.Operation) -> list[int] | None:
    """Where a slice of neighbours begins along each dimension; None of anything else, and of what is all of a tensor."""
    if op.name != "linalg.generic" or len(op.operands) != 2 or not is_parallel(op) or not is_empty(destinations(op)[0]):
        return None
    block = op.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1].operation
    read, out = index_maps(op)
    is_copy = len(block.operations) == 1 and list(terminator.operands) == [block.arguments[0]]
    if not is_copy or out != ir.AffineMap.get_identity(out.n_dims) or len(read.results) != out.n_dims:
        return None
    sizes = [ir.RankedTensorType(v.type).shape for v in (op.operands[0], op.results[0])]
    begins = [_shift(expr, i, sizes[1][i]) for i, expr in enumerate(read.results)]
    known = [b for b in begins if b is not None]
    return known if len(known) == len(begins) and list(sizes[0]) != list(sizes[1]) else None


def _is_copied(value: ir.Value) -> bool:
    """Whether a tensor is nothing but parts of others, of other shapes at most."""
    for use in value.uses:
        reader = use.owner.operation
        if reader.name in _SHAPED:
            if not _is_copied(reader.results[0]):
                return False
        elif reader.name != "tensor.insert_slice" or use.operand_number:
            return False
    return True


def _shift(expr: ir.AffineExpr, dim: int, size: int) -> int | None:
    """By how much an index is more than that of a loop of so many iterations; None where it is another one."""
    if expr == ir.AffineExpr.get_dim(dim):
        return 0
    if isinstance(expr, ir.AffineModExpr) and isinstance(expr.rhs, ir.AffineConstantExpr):  # nothing is cut off in front
        return _shift(expr.lhs, dim, size) if expr.lhs == ir.AffineExpr.get_dim(dim) and 0 <= size <= expr.rhs.value else None
    if not isinstance(expr, ir.AffineAddExpr):
        return None
    lhs, rhs = expr.lhs, expr.rhs
    if lhs == ir.AffineExpr.get_dim(dim) and isinstance(rhs, ir.AffineConstantExpr) and rhs.value >= 0:
        return rhs.value
    return None


def _view(op: ir.Operation, begins: Sequence[int]) -> None:
    result, out = op.results[0], destinations(op)[0].owner
    with ir.InsertionPoint(op), op.location:
        made = _slice(op.operands[0], begins, list(ir.RankedTensorType(result.type).shape), list(out.operands))
    result.replace_all_uses_with(made)
    op.erase()


def _slice(value: ir.Value, begins: Sequence[int], shape: Sequence[int], sizes: Sequence[ir.Value]) -> ir.Value:
    """A part of a tensor, of neighbours; ``sizes`` are those that are not known."""
    kind = ir.RankedTensorType.get(shape, ir.RankedTensorType(value.type).element_type)
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get(list(begins)),
        "static_sizes": ir.DenseI64ArrayAttr.get(list(shape)),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * len(shape)),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, len(sizes), 0]),
    }
    return ir.Operation.create("tensor.extract_slice", [kind], [value, *sizes], attributes).result
