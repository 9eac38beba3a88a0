"""A product cut along k: parts of its sums are products of a batch, which another kernel adds up in order.

Before::

    out[m, n] = body(sum over k of left[m, k] * right[k, n])

after, with ``K' = K div parts``::

    sums[p, m, n] = sum over k' of left[m, p * K' + k'] * right[p * K' + k', n]     // a kernel of as many products
    out[m, n] = body(sums[0, m, n] + sums[1, m, n] + ...)                           // one of elements
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from ....kernels.structure.match import MatchedGroup
from .results import starts_at_zero

__all__ = ["SplitProduct", "can_split", "split_product"]


@dataclass(frozen=True)
class SplitProduct:
    """What a product becomes.

    Attributes:
        parts: the products.
        total: what adds them up, and goes on with the sums.
    """

    parts: MatchedGroup
    total: ir.Operation


def can_split(group: MatchedGroup) -> bool:
    """Whether a product is summed over one loop, by which its factors are read one after the other, from 0 on."""
    operation = group.contraction
    kinds = [str(kind) for kind in ir.ArrayAttr(operation.attributes["iterator_types"])]
    body = operation.regions[0].blocks[0].operations
    if not starts_at_zero(group) or "reduction" not in kinds[-1] or any("reduction" in kind for kind in kinds[:-1]):
        return False
    if any(op.operation.name == "linalg.index" for op in body):
        return False
    *inputs, _ = _maps(operation)
    k = len(kinds) - 1
    return all(_is_read_in_order(m, v, k) for m, v in zip(inputs, operation.operands, strict=False))


def _maps(operation: ir.Operation) -> list[ir.AffineMap]:
    return [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(operation.attributes["indexing_maps"])]


def _is_read_in_order(indices: ir.AffineMap, value: ir.Value, k: int) -> bool:
    """Whether k is no index of an operand, or one of constant size by itself."""
    known = [i for i, e in enumerate(indices.results) if isinstance(e, ir.AffineDimExpr) and e.position == k]
    others = [e for i, e in enumerate(indices.results) if i not in known]
    if any(_has(e, k) for e in others) or len(known) > 1:
        return False
    return not known or (isinstance(value.type, ir.MemRefType) and not ir.MemRefType(value.type).is_dynamic_dim(known[0]))


def _has(expression: ir.AffineExpr, dim: int) -> bool:
    if isinstance(expression, ir.AffineDimExpr):
        return expression.position == dim
    return hasattr(expression, "lhs") and any(_has(e, dim) for e in (expression.lhs, expression.rhs))  # pyright: ignore


def split_product(em: Emitter, group: MatchedGroup, parts: int) -> SplitProduct:
    """Builds both where the emitter is; the group stays, for its caller to erase."""
    sums = _allocated(em, group.contraction.operands[len(group.contraction.operands) - 1], parts)
    contraction = _parts_of(em, group.contraction, sums, parts)
    return SplitProduct(MatchedGroup(contraction, group.fill, None, None), _total(em, group, sums, parts))


def _allocated(em: Emitter, result: ir.Value, parts: int) -> ir.Value:
    """Memory for the sums of all parts."""
    kind = ir.MemRefType(result.type)
    there = ir.MemRefType.get([parts, *kind.shape], kind.element_type, loc=em.location)
    unknown = [i for i in range(kind.rank) if kind.is_dynamic_dim(i)]
    owner = result.owner
    if not isinstance(owner, ir.Block) and owner.name == "memref.alloc":
        sizes = list(owner.operands)
    else:
        sizes = [em.op("memref.dim", [result, em.number(i)], em.index) for i in unknown]
    return em.op("memref.alloc", sizes, there, {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(sizes), 0], em.context)})


def _parts_of(em: Emitter, operation: ir.Operation, sums: ir.Value, parts: int) -> ir.Operation:
    """The products of all parts, the first loop over these."""
    kinds = list(ir.ArrayAttr(operation.attributes["iterator_types"]))
    k, shifted = len(kinds) - 1, [ir.AffineExpr.get_dim(i + 1, em.context) for i in range(len(kinds))]
    part, found = ir.AffineExpr.get_dim(0, em.context), list[ir.AffineMap]()
    operands = list(operation.operands)
    *inputs, output = _maps(operation)
    for position, indices in enumerate(inputs):
        results = list[ir.AffineExpr]()
        for axis, expression in enumerate(indices.results):
            if isinstance(expression, ir.AffineDimExpr) and expression.position == k:
                operands[position] = _cut(em, operands[position], axis, parts)
                results.append(part)
            results.append(expression.compose(ir.AffineMap.get(len(kinds) + 1, 0, shifted, em.context)))
        found.append(ir.AffineMap.get(len(kinds) + 1, 0, results, em.context))
    moved = [e.compose(ir.AffineMap.get(len(kinds) + 1, 0, shifted, em.context)) for e in output.results]
    found.append(ir.AffineMap.get(len(kinds) + 1, 0, [part, *moved], em.context))
    made = operation.clone(ip=em.point)
    for position, value in enumerate([*operands[:-1], sums]):
        made.operands[position] = value
    made.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in found], em.context)
    made.attributes["iterator_types"] = ir.ArrayAttr.get([kinds[0], *kinds], em.context)
    return made


def _cut(em: Emitter, value: ir.Value, axis: int, parts: int) -> ir.Value:
    """A buffer one of whose dimensions is two: the part, and the place in it."""
    kind = ir.MemRefType(value.type)
    strides, offset = kind.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    size, step = kind.shape[axis] // parts, strides[axis]
    shape = [*kind.shape[:axis], parts, size, *kind.shape[axis + 1 :]]
    steps = [*strides[:axis], step if step == unknown else step * size, *strides[axis:]]
    is_plain = isinstance(kind.layout, ir.AffineMapAttr)
    layout = None if is_plain else ir.StridedLayoutAttr.get(offset, steps, em.context)
    there = ir.MemRefType.get(shape, kind.element_type, layout, kind.memory_space, loc=em.location)
    i64, groups = em.integer(64), [[i] for i in range(axis)]
    groups += [[axis, axis + 1], *([i + 1] for i in range(axis + 1, kind.rank))]
    arrays = [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, i) for i in group], em.context) for group in groups]
    open_ = [i for i in range(kind.rank) if kind.is_dynamic_dim(i)]
    sizes = [em.op("memref.dim", [value, em.number(i)], em.index) for i in open_]
    attributes = {
        "reassociation": ir.ArrayAttr.get(arrays, em.context),
        "static_output_shape": ir.DenseI64ArrayAttr.get(list(shape), em.context),
    }
    return em.op("memref.expand_shape", [value, *sizes], there, attributes)


def _total(em: Emitter, group: MatchedGroup, sums: ir.Value, parts: int) -> ir.Operation:
    """The operation that adds parts up, and computes what the group does with the sums."""
    contraction, epilogue = group.contraction, group.epilogue
    result = contraction.operands[len(contraction.operands) - 1]
    if epilogue is None:
        rank = ir.MemRefType(result.type).rank
        own = [ir.AffineExpr.get_dim(i, em.context) for i in range(rank)]
        body, place = None, own
        kinds = [ir.Attribute.parse("#linalg.iterator_type<parallel>", em.context)] * rank
        inputs, outputs = list[tuple[ir.Value, ir.AffineMap]](), [(result, ir.AffineMap.get(rank, 0, own, em.context))]
    else:
        kinds = list(ir.ArrayAttr(epilogue.attributes["iterator_types"]))
        count, body = ir.DenseI32ArrayAttr(epilogue.attributes["operandSegmentSizes"])[0], epilogue.regions[0].blocks[0]
        operands = list(zip(epilogue.operands, _maps(epilogue), strict=True))
        inputs, outputs = operands[:count], operands[count:]
        place = next(list(m.results) for v, m in operands if v == result)
    others = [(v, m) for v, m in inputs if v != result]
    read = [
        ir.AffineMap.get(len(kinds), 0, [ir.AffineExpr.get_constant(i, em.context), *place], em.context) for i in range(parts)
    ]
    operands = [*((sums, m) for m in read), *others, *outputs]
    attributes = {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for _, m in operands], em.context),
        "iterator_types": ir.ArrayAttr.get(kinds, em.context),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([parts + len(others), len(outputs)], em.context),
    }
    made = em.nested("linalg.generic", [v for v, _ in operands], [], attributes, 1)
    types = [ir.MemRefType(v.type).element_type if isinstance(v.type, ir.MemRefType) else v.type for v, _ in operands]
    block = made.regions[0].blocks.append(*types, arg_locs=[em.location] * len(types))
    with em.inside(block):
        arguments = list(block.arguments)
        total = _added(em, arguments[:parts])
        known = dict[ir.Value, ir.Value]()
        if body is not None:
            rest = iter(arguments[parts:])
            for argument, (value, _) in zip(body.arguments, [*inputs, *outputs], strict=True):
                known[argument] = total if value == result and argument.arg_number < len(inputs) else next(rest)
        _finished(em, [] if body is None else [op.operation for op in body.operations], known, total)
    return made


def _added(em: Emitter, values: Sequence[ir.Value]) -> ir.Value:
    """In order."""
    total, name = values[0], "arith.addf" if isinstance(values[0].type, ir.FloatType) else "arith.addi"
    for value in values[1:]:
        total = em.op(name, [total, value], value.type)
    return total


def _finished(em: Emitter, operations: Sequence[ir.Operation], known: dict[ir.Value, ir.Value], total: ir.Value) -> None:
    """The operations of a body with other values for its arguments; what it yields, or the total of none."""
    if not operations:
        em.effect("linalg.yield", [total])
    for operation in operations:
        made = operation.clone(ip=em.point)
        for position, value in enumerate(operation.operands):
            made.operands[position] = known.get(value, value)
        known.update(zip(operation.results, made.results, strict=True))
