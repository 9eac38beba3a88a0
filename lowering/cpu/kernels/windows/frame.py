"""Images in a frame of one number that a kernel makes for itself: windows can be read without making it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .....dialect.bindings import ir
from ....kernels.emit.buffers import Buffers
from ....kernels.emit.linear_index import Linear, Size, from_affine
from .shape import Along, Frame, Windows

__all__ = ["MadeFrame", "find_frame", "without_frame"]


@dataclass(frozen=True)
class MadeFrame:
    """What makes a frame around an image in a buffer: the number everywhere, then the image in its place."""

    buffer: ir.Value
    fill: ir.Operation
    copy: ir.Operation
    offsets: tuple[int, ...]

    @property
    def image(self) -> ir.Value:
        """What is put into the frame."""
        return self.copy.operands[0]

    @property
    def number(self) -> ir.Value:
        """What is around it."""
        return self.fill.operands[0]


def find_frame(buffer: ir.Value, found: Sequence[ir.Operation]) -> MadeFrame | None:
    """What makes a buffer's frame, out of some operations in order; None when that is not all that happens to it before."""
    if isinstance(buffer, ir.BlockArgument) or buffer.owner.name != "memref.alloc":
        return None
    users = [use.owner.operation for use in buffer.uses]
    views = [op for op in users if op.name == "memref.subview"]
    writers = [op for op in found if _output(op) == buffer]
    if (
        len(views) != 1
        or len(writers) != 1
        or any(op not in found and op.name != "memref.dealloc" for op in users if op not in views)
    ):
        return None
    (view,), (fill,) = views, writers
    copies = [op for op in found if _output(op) == view.results[0]]
    offsets = tuple(ir.DenseI64ArrayAttr(view.attributes["static_offsets"]))
    strides = ir.DenseI64ArrayAttr(view.attributes["static_strides"])
    if len(copies) != 1 or len(list(view.results[0].uses)) != 1 or len(view.operands) != 1 or any(s != 1 for s in strides):
        return None
    made = MadeFrame(buffer, fill, copies[0], offsets)
    in_order = found.index(fill) < found.index(copies[0])
    return made if in_order and _gives_input(fill, scalar=True) and _gives_input(copies[0], scalar=False) else None


def without_frame(windows: Windows, made: MadeFrame, memory: Buffers) -> Windows | None:
    """Windows of the image itself; None where sizes are open, or an index is none of a window's row or column."""
    nest = windows.nest
    position = nest.inputs.index(windows.image)
    map_ = ir.AffineMapAttr(ir.ArrayAttr(nest.operation.attributes["indexing_maps"])[position]).value
    indices = [from_affine(e).substituted(lambda d: Linear.dim(d) if d in nest.extents else Linear(())) for e in map_.results]
    outer, inner = ir.MemRefType(made.buffer.type), ir.MemRefType(made.image.type)
    if not (outer.has_static_shape and inner.has_static_shape) or outer.rank != inner.rank:
        return None
    buffer, along = memory.buffer(made.image), list[Along]()
    for place, tap in ((windows.y, windows.down), (windows.x, windows.across)):
        axes = [i for i, index in enumerate(indices) if tap in index.dims()]
        factors = None if len(axes) != 1 else _factors(indices[axes[0]], place, tap)
        if factors is None or (place is not None and nest.extents[place].static is None):
            return None
        axis = axes[0]
        along.append(Along(*factors, made.offsets[axis], inner.shape[axis], buffer.strides[axis], axis))
    rows, columns = along
    others = [i for i in range(inner.rank) if i not in (rows.axis, columns.axis)]
    if rows.axis == columns.axis or any(made.offsets[i] or outer.shape[i] != inner.shape[i] for i in others):
        return None
    for one in along:
        indices[one.axis] += Linear.of(-one.before)
    image = replace(windows.image, value=made.image, buffer=buffer, offset=buffer.linear(indices))
    inputs = tuple(image if o is windows.image else o for o in nest.inputs)
    return replace(windows, nest=replace(nest, inputs=inputs), image=image, frame=Frame(made.number, rows, columns))


def _factors(index: Linear, place: int | None, tap: int) -> tuple[int, int] | None:
    """How far one window and one tap of a window move an index, None where something else does, too."""
    stride = Size.of(0) if place is None else index.factor(place)
    found = stride.static, index.factor(tap).static
    if index.floors() or not index.dims() <= {place, tap} or index.constant.static != 0 or None in found:
        return None
    return found[0] or 0, found[1] or 0


def _output(operation: ir.Operation) -> ir.Value:
    return operation.operands[len(operation.operands) - 1]


def _gives_input(operation: ir.Operation, scalar: bool) -> bool:
    """Whether an operation writes its one input as it is: a scalar, or a buffer, element by element."""
    block = operation.regions[0].blocks[0]
    (*_, last) = block.operations
    if operation.name != "linalg.generic" or len(operation.operands) != 2 or list(last.operands) != [block.arguments[0]]:
        return False
    maps = [ir.AffineMapAttr(m).value for m in ir.ArrayAttr(operation.attributes["indexing_maps"])]
    if isinstance(operation.operands[0].type, ir.MemRefType) == scalar:
        return False
    identity = ir.AffineMap.get_identity(maps[1].n_dims, operation.context)
    return maps[1] == identity and (scalar or maps[0] == identity)
