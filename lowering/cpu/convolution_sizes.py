"""Convolutions as kernels for any image, channels and strides: what they read is a view with lines, columns and a window.

Before::

    func.func private @k(%x: memref<1x16x16x256xf32>, %w: memref<1x8x3x3x256x32xf32>, %y: memref<196x256xf32>) {
      linalg.generic {maps = [(r, n, i, j, c) -> (0, r floordiv 14 + i, r mod 14 + j, c), ...],
                      relax.contraction, relax.plan = "tile=8x2x16 ..."} ins(%x, %w) outs(%y) ... }

after::

    func.func private @k(%x: memref<?x?x3x?xf32, strided<[?, ?, ?, 1]>>, %w: memref<?x3x?x32xf32>, %y: memref<?x?x?xf32>) {
      linalg.generic {maps = [(y, x, n, i, c) -> (y, x, i, c), (y, x, n, i, c) -> (n floordiv 32, i, c, n mod 32), ...],
                      relax.contraction, relax.multiples = array<i64: 32, 8>, relax.plan = "tile=8x2x16 ... joined=yes"} ... }

and callers say how the image is seen so::

    %view = memref.reinterpret_cast %x to offset: [0], sizes: [14, 14, 3, 768], strides: [4096, 256, 4096, 1]
    call @k(%view, ...)

A line of the window is one sum, columns of it and channels; so convolutions of any stride and width are the same, and only
how many lines a window has is known. Products of few sizes, which no kernel of :mod:`.product_sizes` is for, are convolutions
of one line. Tiles go on from one line of the image to the next (``joined``), all of one height, which rows are a multiple of:
there is no code for what is left of them. Convolutions that have no such height, images of less than four tiles, sums that are
no multiple of eight, columns that fill no panels, and windows whose neighbours lie apart, stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...dialect.bindings import func, ir
from ...dialect.functions import update_type
from ...dialect.traversal import operations
from ..kernels.emit.buffers import Buffers
from ..kernels.emit.linear_index import Linear, Size
from ..kernels.structure.factor import Factor
from ..kernels.structure.match import Contraction, find_group, match_contraction
from .kernels.contraction.contraction_plan import ContractionPlan
from .kernels.contraction.plan_contractions import write_plan
from .product_sizes import SUM_STEPS, maps_of, planned_product, sized_as, write_multiples

__all__ = ["Convolution", "StridedView", "convolution_of"]

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_DYNAMIC_STRIDE = ir.ShapedType.get_dynamic_stride_or_offset()
# Loops of the kernel: lines and columns of the image, channels of the result, lines of the window, its columns and channels.
_LINE, _COLUMN, _CHANNEL, _WINDOW, _DEPTH = range(5)


@dataclass(frozen=True)
class StridedView:
    """How an argument is seen.

    Attributes:
        sizes, strides, offset: of the view.
        free: dimensions of any size.
        is_plain: whether the view is contiguous, and its type says no strides.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    free: frozenset[int]
    is_plain: bool = False

    def type_of(self, buffer: ir.MemRefType) -> ir.MemRefType:
        """What a kernel takes in the place of a buffer."""
        shape = [_DYNAMIC if i in self.free else size for i, size in enumerate(self.sizes)]
        if self.is_plain:
            return ir.MemRefType.get(shape, buffer.element_type, None, buffer.memory_space)
        strides = [*[_DYNAMIC_STRIDE] * (len(shape) - 1), self.strides[-1]]
        layout = ir.StridedLayoutAttr.get(_DYNAMIC_STRIDE if self.offset else 0, strides)
        return ir.MemRefType.get(shape, buffer.element_type, layout, buffer.memory_space)

    def of(self, value: ir.Value) -> ir.Value:
        """The view of a buffer, built at the insertion point."""
        buffer = ir.MemRefType(value.type)
        if self.is_plain and list(self.sizes) == buffer.shape:
            return ir.Operation.create("memref.cast", [self.type_of(buffer)], [value]).result
        layout = ir.StridedLayoutAttr.get(self.offset, list(self.strides))
        exact = ir.MemRefType.get(self.sizes, buffer.element_type, layout, buffer.memory_space)
        static = {"static_offsets": [self.offset], "static_sizes": self.sizes, "static_strides": self.strides}
        attributes: dict[str, ir.Attribute] = {name: ir.DenseI64ArrayAttr.get(list(values)) for name, values in static.items()}
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 0, 0, 0])
        seen = ir.Operation.create("memref.reinterpret_cast", [exact], [value], attributes).result
        return ir.Operation.create("memref.cast", [self.type_of(buffer)], [seen]).result


@dataclass(frozen=True)
class Convolution:
    """A convolution in tiles, with what is elementwise behind it.

    Attributes:
        kernel: what computes it.
        op: the sum of products.
        contraction: what its loops are.
        plan: the plan of the kernel for any sizes.
        views: how each argument is seen; None for those that stay.
    """

    kernel: func.FuncOp
    op: ir.Operation
    contraction: Contraction
    plan: ContractionPlan
    views: tuple[StridedView | None, ...]

    def free(self) -> func.FuncOp:
        """The kernel for any sizes, in front of this one."""
        kept = self.kernel.operation.clone(ip=ir.InsertionPoint(self.kernel)).opview
        assert isinstance(kept, func.FuncOp)
        block = kept.regions[0].blocks[0]
        place = operations(self.kernel.regions[0].blocks[0]).index(self.op)
        with kept.context, kept.location:
            types = [_seen(a.type, view) for a, view in zip(block.arguments, self.views, strict=True)]
            sum_of_products = self._with_loops(operations(block)[place])
            for op in (o for o in operations(block) if o.name == "linalg.generic" and o != sum_of_products):
                _over_lines(op)
            for argument, type_ in zip(block.arguments, types, strict=True):
                argument.set_type(type_)
            sized_as(block, types[-1])
        update_type(kept)
        return kept

    def _with_loops(self, op: ir.Operation) -> ir.Operation:
        """The sum of products over lines and columns, in the place of one over rows."""
        d, panel = ir.AffineExpr.get_dim, self.plan.tile.columns
        left = [d(_LINE), d(_COLUMN), d(_WINDOW), d(_DEPTH)]
        right = [
            ir.AffineExpr.get_floor_div(d(_CHANNEL), panel), d(_WINDOW), d(_DEPTH), ir.AffineExpr.get_mod(d(_CHANNEL), panel)
        ]  # fmt: skip
        is_left_first = self.contraction.left.operands[0].value == self.op.operands[0]
        factors = [left, right] if is_left_first else [right, left]
        maps = [ir.AffineMap.get(5, 0, m) for m in (*factors, [d(_LINE), d(_COLUMN), d(_CHANNEL)])]
        write_multiples(op, panel, SUM_STEPS, self.plan.tile.rows)
        write_plan(op, replace(self.plan, joined=True))
        return _rebuilt(op, maps, ["parallel"] * 3 + ["reduction"] * 2)


def convolution_of(function: func.FuncOp) -> Convolution | None:
    """The convolution that a kernel is, None for others.

    Args:
        function: a kernel of constants, memory and ``linalg.generic``, planned.
    """
    block = function.regions[0].blocks[0]
    found = planned_product(block)
    if found is None or not all(_is_fixed(a.type) for a in block.arguments):
        return None
    op, plan = found
    contraction = match_contraction(op, Buffers(op.location))
    if contraction is None or plan.split is not None or not _is_alone(op, block):
        return None
    image, filters = _image(contraction), _filters(contraction, plan.tile.columns)
    if image is None or filters is None:
        return None
    views, height = _views(op, block, contraction, image, filters), _height(plan, image.sizes[0] * image.sizes[1])
    if views is None or height is None:
        return None
    return Convolution(function, op, contraction, replace(plan, tile=replace(plan.tile, rows=height)), views)


def _height(plan: ContractionPlan, rows: int) -> int | None:
    """The height of tiles that so many rows fill, as many as need not know how many: the plan's, or one less.

    A convolution of 512 channels of 7 x 7 takes 1.026 of the time with tiles of 8, 4, 2 and 1 rows, 1.00 in tiles of 7; of 128
    channels of 28 x 28, 0.998 in tiles of 8, 1.01 to 1.04 of 7 (Zen 4, one thread, least of 500, others beside).
    """
    most, many = plan.tile.rows, plan.fetch_shares(None)
    lower = most - 1 if (most - 1) * plan.tile.vectors >= plan.accumulators else most
    return next((h for h in (most, lower) if rows % h == 0 and plan.fetch_shares(rows // h) == many), None)


def _is_fixed(type_: ir.Type) -> bool:
    """Whether all of a buffer is known; of what is none, too."""
    if not isinstance(type_, ir.MemRefType):
        return True
    strides, offset = type_.get_strides_and_offset()
    return type_.has_static_shape and _DYNAMIC_STRIDE not in (*strides, offset)


def _is_alone(op: ir.Operation, block: ir.Block) -> bool:
    """Whether all that a kernel does is part of one group."""
    group, generics = find_group(op, operations(block)), [o for o in operations(block) if o.name == "linalg.generic"]
    return len(generics) == sum(o is not None for o in (group.fill, group.contraction, group.epilogue))


def _single(factor: Factor) -> tuple[ir.Value, Linear] | None:
    """The buffer that a factor is read from, and where."""
    if len(factor.operands) != 1 or factor.operands[0].buffer is None:
        return None
    return factor.operands[0].value, factor.operands[0].offset


def _image(contraction: Contraction) -> StridedView | None:
    """How the left factor's image is seen: ``[line, column, line of the window, its columns and channels]``."""
    extents, m, k, outer = contraction.nest.extents, contraction.m, contraction.k, contraction.outer
    read = _single(contraction.left)
    if read is None or m is None or contraction.batch or contraction.shared or len(outer) > 1:
        return None
    offset, floors = read[1], read[1].floors()
    if len(floors) > 1 or any(floor.inner != Linear.dim(m) for floor in floors):
        return None
    if offset.dims() != {m, k, *outer} or offset.factor(k).static != 1:
        return None
    sizes = [extents[d].static for d in (m, k, *outer)]
    terms = [value.static for _, value in (*offset.terms, (m, offset.constant))]
    if None in sizes or None in terms:
        return None
    rows, depth, *window = (s for s in sizes if s is not None)
    width, step = floors[0].divisor if floors else rows, _number(offset.factor(m))
    line = sum(_number(value) for atom, value in offset.terms if atom in floors)
    if rows % width or depth % SUM_STEPS:
        return None
    along = _number(offset.factor(outer[0])) if outer else depth
    sizes, strides = (rows // width, width, *(window or [1]), depth), (line + step * width, step, along, 1)
    return StridedView(sizes, strides, _number(offset.constant), frozenset({0, 1, 3}))


def _filters(contraction: Contraction, panel: int) -> StridedView | None:
    """How the right factor is seen: ``[panel, line of the window, its columns and channels, column of the panel]``."""
    extents, n, k, outer = contraction.nest.extents, contraction.n, contraction.k, contraction.outer
    read = _single(contraction.right)
    columns, depth = extents[n].static, extents[k].static
    lines = extents[outer[0]].static if outer else 1
    if read is None or columns is None or depth is None or lines is None or columns % panel:
        return None
    whole = lines * depth * panel
    expected = Linear.dim(n).floordiv(panel).scaled(whole) + Linear.dim(n) % panel + Linear.dim(k).scaled(panel)
    expected = expected + Linear.dim(outer[0]).scaled(depth * panel) if outer else expected
    if expected != read[1]:
        return None
    sizes, strides = (columns // panel, lines, depth, panel), (whole, depth * panel, panel, 1)
    return StridedView(sizes, strides, 0, frozenset({0, 2}), is_plain=True)


def _number(size: Size) -> int:
    assert size.static is not None
    return size.static


def _views(
    op: ir.Operation, block: ir.Block, contraction: Contraction, image: StridedView, filters: StridedView
) -> tuple[StridedView | None, ...] | None:
    """How each argument is seen, None where one is seen in two ways."""
    lines, width, *_ = image.sizes
    found: dict[ir.Value, StridedView] = {}
    factors = {f.operands[0].value: view for f, view in ((contraction.left, image), (contraction.right, filters))}
    for generic in (o for o in operations(block) if o.name == "linalg.generic"):
        for value, map_ in zip(generic.operands, maps_of(generic), strict=True):
            if not isinstance(value.type, ir.MemRefType) or not isinstance(value.owner, ir.Block):
                continue
            is_factor = generic == op and value in factors
            view = factors[value] if is_factor else _by_lines(value.type, map_, (lines, width))
            if view is None or found.setdefault(value, view) != view:
                return None
    return tuple(found.get(a) for a in block.arguments)


def _by_lines(type_: ir.MemRefType, map_: ir.AffineMap, image: tuple[int, int]) -> StridedView | None:
    """How what is elementwise sees a buffer, whose rows become lines and columns."""
    strides, offset = type_.get_strides_and_offset()
    sizes, steps, free = list[int](), list[int](), set[int]()
    for size, stride, e in zip(type_.shape, strides, map_.results, strict=True):
        position = ir.AffineDimExpr(e).position if isinstance(e, ir.AffineDimExpr) else None
        if position is not None:
            free |= {len(sizes), len(sizes) + 1} if position == 0 else {len(sizes)}
        sizes += image if position == 0 else (size,)
        steps += (stride * image[1], stride) if position == 0 else (stride,)
    if steps and steps[-1] != 1:
        return None
    is_plain = isinstance(type_.layout, ir.AffineMapAttr)
    return StridedView(tuple(sizes), tuple(steps), offset, frozenset(free), is_plain)


def _seen(type_: ir.Type, view: StridedView | None) -> ir.Type:
    return type_ if view is None else view.type_of(ir.MemRefType(type_))


def _over_lines(op: ir.Operation) -> None:
    """An elementwise operation over lines and columns, in the place of one over rows."""
    d = ir.AffineExpr.get_dim
    changed = {0: [d(_LINE), d(_COLUMN)], 1: [d(_CHANNEL)]}
    maps: list[ir.AffineMap] = []
    for map_ in maps_of(op):
        results = [changed[ir.AffineDimExpr(e).position] if isinstance(e, ir.AffineDimExpr) else [e] for e in map_.results]
        maps.append(ir.AffineMap.get(3, 0, [e for each in results for e in each]))
    _rebuilt(op, maps, ["parallel"] * 3)


def _rebuilt(op: ir.Operation, maps: Sequence[ir.AffineMap], kinds: Sequence[str]) -> ir.Operation:
    """An operation with other loops, in its place."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps])
    attributes["iterator_types"] = ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{k}>") for k in kinds])
    with ir.InsertionPoint(op):
        made = ir.Operation.create("linalg.generic", [], list(op.operands), attributes, regions=1)
    op.regions[0].blocks[0].append_to(made.regions[0])
    op.erase()
    return made
