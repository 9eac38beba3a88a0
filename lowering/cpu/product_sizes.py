"""Which sizes of a product's kernel may become arguments: rows, columns and the sum's, where code loses nothing by it.

Before::

    func.func private @k(%x: memref<784x128xf32>, %w: memref<16x128x32xf32>, %y: memref<784x512xf32>) {
      %sums = memref.alloc() : memref<784x512xf32>
      linalg.generic {relax.contraction, relax.plan = "tile=8x2x16 ..."} ins(%x, %w) outs(%sums) ... }

after::

    func.func private @k(%x: memref<?x?xf32>, %w: memref<?x?x32xf32>, %y: memref<?x?xf32>) {
      %sums = memref.alloc(%rows, %columns) : memref<?x?xf32>
      linalg.generic {relax.contraction, relax.multiples = array<i64: 32, 8>, relax.plan = "tile=8x2x16 ..."} ... }

Columns are whole panels, and the sum has whole iterations, or whole tile registers, which the code is told: it has no tile for
what is left of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...dialect.bindings import func, ir
from ...dialect.traversal import operations
from ..marks import CONTRACTION, MULTIPLES, PLAN
from .kernels.contraction.contraction_plan import ContractionPlan, parse_plan
from .kernels.nest.nest_plan import is_nest_plan

__all__ = [
    "SUM_STEPS", "free_product", "maps_of", "panel_of", "planned_product", "sized_as", "sizes_of_product",
    "temporary_of", "write_multiples",
]  # fmt: skip

#: Steps of a sum that iterations of every tile take evenly: as many as a tile of one vector has accumulators, and as many as a
#: tile register has.
SUM_STEPS, SPLIT_STEPS = 8, 32


@dataclass(frozen=True)
class _Product:
    """A product of two matrices, the right one in panels, with what is elementwise behind it.

    Attributes:
        op: the sum of products.
        loops: its rows, columns and sum.
        sizes: of these.
        panel: columns of a panel.
        steps: what the sum's are a multiple of.
    """

    op: ir.Operation
    loops: tuple[int, int, int]
    sizes: tuple[int, int, int]
    panel: int
    steps: int


def sizes_of_product(function: func.FuncOp, least: int) -> list[set[int]]:
    """The dimensions of each argument that may be of any size; empty for kernels that are nothing but such a product.

    Args:
        function: a kernel of constants, memory and ``linalg.generic``, planned.
        least: smaller sizes stay.
    """
    block = function.regions[0].blocks[0]
    product = _product(block)
    if product is None:
        return []
    arguments: list[ir.Value] = list(block.arguments)
    found: list[set[int]] = [set() for _ in arguments]
    for op in (o for o in operations(block) if o.name == "linalg.generic"):
        loops = product.loops if op == product.op else (0, 1, -1)
        free = {loop for loop, size in zip(loops, product.sizes, strict=True) if size >= least}
        for value, map_ in zip(op.operands, maps_of(op), strict=True):
            if value in arguments and isinstance(value.type, ir.MemRefType):
                found[arguments.index(value)] |= {i for i, e in enumerate(map_.results) if _loop_of(e, product.panel) in free}
    return found


def temporary_of(block: ir.Block) -> ir.Operation | None:
    """What a kernel keeps its sums in, which is as large as its result."""
    return next((op for op in operations(block) if op.name == "memref.alloc"), None)


def free_product(function: func.FuncOp, types: Sequence[ir.Type]) -> None:
    """Gives a kernel of :func:`sizes_of_product` arguments of these types, in place."""
    block = function.regions[0].blocks[0]
    product = _product(block)
    assert product is not None
    for argument, type_ in zip(block.arguments, types, strict=True):
        argument.set_type(type_)
    write_multiples(product.op, product.panel, product.steps)
    sized_as(block, types[-1])


def write_multiples(op: ir.Operation, columns: int, steps: int, *rows: int) -> None:
    """Says on a contraction what its columns, the steps of its sum and, where they are told, its rows are multiples of."""
    op.attributes[MULTIPLES] = ir.DenseI64ArrayAttr.get([columns, steps, *rows], op.context)


def sized_as(block: ir.Block, type_: ir.Type) -> None:
    """Gives a kernel's sums, if they are in memory of its own, the sizes of its result, which has this type."""
    memory = temporary_of(block)
    if memory is None:
        return
    result, shape = block.arguments[len(block.arguments) - 1], list(ir.MemRefType(type_).shape)
    index, element = ir.IndexType.get(type_.context), ir.MemRefType(memory.results[0].type).element_type
    with ir.InsertionPoint(memory), memory.location:
        sizes: list[ir.Value] = []
        for axis in (i for i, size in enumerate(shape) if size == ir.ShapedType.get_dynamic_size()):
            place = ir.Operation.create("arith.constant", [index], attributes={"value": ir.IntegerAttr.get(index, axis)})
            sizes.append(ir.Operation.create("memref.dim", [index], [result, place.result]).result)
        attributes = {name: memory.attributes[name] for name in memory.attributes}
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([len(sizes), 0])
        made = ir.Operation.create("memref.alloc", [ir.MemRefType.get(shape, element)], sizes, attributes)
    memory.results[0].replace_all_uses_with(made.result)
    memory.erase()


def _product(block: ir.Block) -> _Product | None:
    """The product that a kernel is, None for others, and where a size cannot be told from the plan."""
    found = planned_product(block)
    return None if found is None else _matched(*found)


def planned_product(block: ir.Block) -> tuple[ir.Operation, ContractionPlan] | None:
    """The sum of products that a kernel is, in tiles alone, over rows and columns, with what is elementwise behind it."""
    ops = operations(block)
    generics, memory = [op for op in ops if op.name == "linalg.generic"], [op for op in ops if op.name == "memref.alloc"]
    products = [op for op in generics if CONTRACTION in op.attributes]
    if len(products) != 1 or len(memory) > 1 or PLAN not in products[0].attributes or len(products[0].operands) != 3:
        return None
    (op,) = products
    last = block.arguments[len(block.arguments) - 1]
    result, text = op.operands[2], ir.StringAttr(op.attributes[PLAN]).value
    if is_nest_plan(text):  # loops instead of tiles
        return None
    plan = parse_plan(text)
    if not _has_free_sizes(plan) or not isinstance(last.type, ir.MemRefType) or result.type.shape != last.type.shape:
        return None
    if any(o.results[0] != result for o in memory) or not all(_is_plain(o, result) for o in generics if o != op):
        return None
    return op, plan


def _has_free_sizes(plan: ContractionPlan) -> bool:
    """Whether a plan is one of tiles alone, or of blocks that are of any size."""
    is_split = plan.split is None or plan.split.always
    return plan.sums == "fma" and plan.panels == 1 and plan.stage is None and plan.blocks is None and is_split


def _is_plain(op: ir.Operation, result: ir.Value) -> bool:
    """Whether an operation goes through the rows and columns of a result, and reads what has these."""
    maps, identity = maps_of(op), ir.AffineMap.get_identity(2)
    if any("parallel" not in str(kind) for kind in ir.ArrayAttr(op.attributes["iterator_types"])):
        return False
    if maps[-1] != identity or any(m != identity for v, m in zip(op.operands, maps, strict=True) if v == result):
        return False
    return all(isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for m in maps for e in m.results)


def _matched(op: ir.Operation, plan: ContractionPlan) -> _Product | None:
    """The roles of loops, where columns and sums are even."""
    panel, loops = plan.tile.columns, _loops_in_panels(op, plan.tile.columns)
    if loops is None:
        return None
    (rows, depth), (_, columns) = op.operands[0].type.shape, op.operands[2].type.shape
    steps = SUM_STEPS if plan.split is None else SPLIT_STEPS
    is_static = all(op.operands[i].type.has_static_shape for i in range(3))
    if not is_static or columns % panel or depth % steps:
        return None
    return _Product(op, loops, (rows, columns, depth), panel, steps)


def _loops_in_panels(op: ir.Operation, panel: int) -> tuple[int, int, int] | None:
    """The loops ``(m, n, k)`` of a product ``[m, k] * [n floordiv panel, k, n mod panel]``; None for others."""
    left, right, out = maps_of(op)
    kinds = [str(kind) for kind in ir.ArrayAttr(op.attributes["iterator_types"])]
    if len(kinds) != 3 or not all(isinstance(e, ir.AffineDimExpr) for m in (left, out) for e in m.results):
        return None
    m, n = (e.position for e in out.results) if len(out.results) == 2 else (0, 0)
    k = next((i for i, kind in enumerate(kinds) if "reduction" in kind), -1)
    d = ir.AffineExpr.get_dim
    packed = [ir.AffineExpr.get_floor_div(d(n), panel), d(k), ir.AffineExpr.get_mod(d(n), panel)]
    if {m, n, k} != {0, 1, 2} or list(left.results) != [d(m), d(k)] or list(right.results) != packed:
        return None
    return m, n, k


def panel_of(op: ir.Operation) -> int | None:
    """The columns of a panel, of a product of a matrix and one that is whole panels; None for other products."""
    right = maps_of(op)[1].results[0] if len(op.operands) == 3 else None
    if not isinstance(right, ir.AffineFloorDivExpr):
        return None
    panel = ir.AffineConstantExpr(ir.AffineFloorDivExpr(right).rhs).value
    is_whole = op.operands[2].type.has_static_shape and op.operands[2].type.shape[-1] % panel == 0
    return panel if is_whole and _loops_in_panels(op, panel) is not None else None


def _loop_of(expr: ir.AffineExpr, panel: int) -> int | None:
    """The loop that an index goes through, in steps of one or of a panel."""
    if isinstance(expr, ir.AffineFloorDivExpr):
        expr = ir.AffineFloorDivExpr(expr).lhs
    return ir.AffineDimExpr(expr).position if isinstance(expr, ir.AffineDimExpr) else None


def maps_of(op: ir.Operation) -> list[ir.AffineMap]:
    """The index map of each operand of a ``linalg.generic``."""
    return [ir.AffineMapAttr(m).value for m in ir.ArrayAttr(op.attributes["indexing_maps"])]
