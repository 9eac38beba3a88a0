"""Takes what widens a weight into the contractions that read it, so that the wide weight never is in memory.

Before::

    %e = tensor.empty() : tensor<96x768x32xf32>
    %w = linalg.generic {(p, k, t) -> (p, k, t), (p, k, t) -> (p, t), (p, k, t) -> (p, k, t)}
         ins(%q, %scale : tensor<96x768x32xi8>, tensor<96x32xf32>) outs(%e) { sext; sitofp; mulf }
    %y = call @contraction_0(%x, %w, %out)

after::

    %y = call @kernel_0(%x, %q, %scale, %out)     // sums %x[m, k] * (float(%q[n floordiv 32, k, n mod 32]) * %scale[...])

The kernel template computes the factor once per vector of columns and step of k, for all rows of a tile. A producer moves in,
whoever else reads it, when it comes from weights alone, takes fewer bytes than it gives, and is cheap enough to be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ...dialect.analysis.weight_flow import FlowRules, WeightFlow
from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of
from ...dialect.functions import body_of, num_input
from ...dialect.traversal import clone_with, is_unused, nested_operations
from ..integer_product import INTEGERS, IntegerProduct
from ..marks import CONTRACTION
from .linalg_queries import captured, index_maps, is_parallel, is_scalar_constant, owner_name

__all__ = ["fuse_prologues"]

# An 8-bit float is decoded by 12 operations, a group of int4 with a zero point by 8, half a byte by 9, five bits with a scale
# and a minimum of eight bits by 28, a code of four bits by a table and a scale of six bits by 42.
_CHEAP = 44
_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape")


def fuse_prologues(
    function: func.FuncOp, kernels: Mapping[str, func.FuncOp], add: Callable[[func.FuncOp], str], rules: FlowRules
) -> None:
    """Rewrites a function's calls of contraction kernels; in place, linear in the number of ops.

    Args:
        function: the caller; without ``relax.num_input`` it has no weights, and stays.
        kernels: the kernels of the module by name.
        add: names a new kernel, or erases it and returns the name of an equal one.
        rules: what passes weights on.
    """
    if num_input(function) is None:
        return
    weights = _Weights(rules.flow(function))
    for call in [op for op in nested_operations(function.operation) if op.name == "func.call"]:
        fused: ir.Operation | None = call
        while fused is not None:  # what a producer reads may have grown, too
            fused = _fused(fused, kernels, weights, add)
    weights.erase_unused()


def _fused(
    call: ir.Operation,
    kernels: Mapping[str, func.FuncOp],
    weights: _Weights,
    add: Callable[[func.FuncOp], str],
) -> ir.Operation | None:
    """The call of a kernel that has the producers of a call's operands inside; None when there are none."""
    kernel = kernels.get(callee_of(call))
    contraction = None if kernel is None else _contraction(kernel)
    if kernel is None or contraction is None:
        return None
    block = kernel.regions[0].blocks[0]
    producers = {
        i: producer
        for i, value in enumerate(list(call.operands)[:-1])
        if (producer := weights.growth_of(value)) is not None and _takes(contraction, block.arguments[i], producer)
    }
    producers = _with_loops_left(contraction, list(block.arguments), producers)
    return _replace(call, add(_Kernel(kernel, contraction, producers).build()), producers) if producers else None


class _Weights:
    """What of a function comes from weights alone, and which values that widen them have been moved."""

    def __init__(self, flow: WeightFlow):
        self._flow = flow
        self._moved: list[ir.Value] = []

    def growth_of(self, value: ir.Value) -> _Growth | None:
        """What widens a weight to this value, or to another shape of it, when it can be moved."""
        type_ = value.type
        if not isinstance(type_, ir.RankedTensorType):
            return None
        view, passed = ir.AffineMap.get_identity(type_.rank), [value]
        while owner_name(passed[-1]) in _RESHAPES:
            reshape = passed[-1].owner.operation
            if not all(ir.RankedTensorType(v.type).has_static_shape for v in (passed[-1], reshape.operands[0])):
                return None
            view = _composed(_source_of(reshape), view)
            passed.append(reshape.operands[0])
        if isinstance(passed[-1], ir.BlockArgument) or not _is_growth(passed[-1].owner.operation):
            return None
        if not self._flow.is_known(value):  # asked last: nothing grows in most functions
            return None
        self._moved.extend(reversed(passed))
        return _Growth(passed[-1].owner.operation, view)

    def erase_unused(self) -> None:
        """Erases the ops that nothing reads any more."""
        for value in reversed(list(dict.fromkeys(self._moved))):
            if is_unused(value.owner.operation):
                value.owner.operation.erase()


@dataclass(frozen=True)
class _Growth:
    """A ``linalg.generic`` that widens; ``view`` says which of its elements is at an index of the value that is read."""

    op: ir.Operation
    view: ir.AffineMap

    @property
    def inputs(self) -> list[ir.Value]:
        return list(self.op.operands)[:-1]

    def maps(self, outer: ir.AffineMap) -> list[ir.AffineMap]:
        """Where its inputs are read, when its value is read at ``outer``."""
        return [_composed(_composed(m, self.view), outer) for m in index_maps(self.op)[:-1]]


def _source_of(reshape: ir.Operation) -> ir.AffineMap:
    """Index of the result to index of the source, of a reshape of static shapes."""
    collapse = reshape.name == "tensor.collapse_shape"
    many = ir.RankedTensorType((reshape.operands[0] if collapse else reshape.results[0]).type).shape
    groups = [[ir.IntegerAttr(d).value for d in ir.ArrayAttr(g)] for g in ir.ArrayAttr(reshape.attributes["reassociation"])]
    exprs: list[ir.AffineExpr] = []
    for i, group in enumerate(groups):
        strides = [prod(many[d + 1 : group[-1] + 1]) for d in group]
        parts = [ir.AffineExpr.get_dim(i if collapse else d) for d in group]
        if collapse:
            within = parts[:1] + [p % (s * many[d]) for d, p, s in list(zip(group, parts, strides, strict=True))[1:]]
            exprs += [ir.AffineExpr.get_floor_div(p, s) for p, s in zip(within, strides, strict=True)]
        else:
            terms = [p * s for p, s in zip(parts, strides, strict=True)]
            exprs.append(sum(terms[1:], terms[0]))
    return ir.AffineMap.get(len(groups) if collapse else len(many), 0, exprs)


def _contraction(kernel: func.FuncOp) -> ir.Operation | None:
    """The only contraction of a kernel, at its top level."""
    block = body_of(kernel)
    found = [op.operation for op in block.operations if CONTRACTION in op.operation.attributes] if block is not None else []
    return found[0] if len(found) == 1 else None


def _takes(contraction: ir.Operation, argument: ir.Value, producer: _Growth) -> bool:
    """Whether an argument of a kernel is an input of its contraction and nothing else, which may be computed where it is read.

    Integers that instructions multiply as such are read from memory, and each role of a product of integers has an input.
    """
    product, inputs = IntegerProduct.of(contraction), range(len(contraction.operands) - 1)
    if product is not None:
        inputs = [i for i in inputs if product.roles[i] not in INTEGERS and producer.inputs]
    uses = list(argument.uses)
    return bool(uses) and all(u.owner.operation == contraction and u.operand_number in inputs for u in uses)


def _with_loops_left(
    contraction: ir.Operation, arguments: Sequence[ir.Value], producers: Mapping[int, _Growth]
) -> dict[int, _Growth]:  # fmt: skip
    """The first producers after which each loop still is a whole dimension of some operand, which says how long it is.

    A constant moved in has no operand at all, and a tiled one is read at ``d mod 4``.
    """
    kept: dict[int, _Growth] = {}
    for i, producer in producers.items():
        moved = {arguments[j]: p for j, p in (kept | {i: producer}).items()}
        pairs = list(zip(contraction.operands, index_maps(contraction), strict=True))
        maps = [m for v, map_ in pairs for m in (moved[v].maps(map_) if v in moved else [map_])]
        whole = {e.position for m in maps for e in m.results if isinstance(e, ir.AffineDimExpr)}
        if len(whole) == maps[-1].n_dims:
            kept[i] = producer
    return kept


def _is_growth(op: ir.Operation) -> bool:
    """Whether an op computes each element from few others, of fewer bytes in all."""
    if op.name != "linalg.generic" or len(op.results) != 1 or not is_parallel(op):
        return False
    *inputs, destination = op.operands
    tensors = [destination, *inputs]
    if not all(isinstance(v.type, ir.RankedTensorType) and v.type.has_static_shape for v in tensors):
        return False
    if not all(is_scalar_constant(v) for v in captured(op)) or not _is_cheap(op.regions[0].blocks[0]):
        return False
    out = index_maps(op)[-1]
    return out == ir.AffineMap.get_identity(out.n_dims) and sum(map(_bits, inputs)) < _bits(destination)


def _is_cheap(block: ir.Block) -> bool:
    names = [op.operation.name for op in block.operations][:-1]
    unread = next(iter(block.arguments[len(list(block.arguments)) - 1].uses), None) is None
    return unread and len(names) <= _CHEAP and all(_can_repeat(n) for n in names)


def _can_repeat(name: str) -> bool:
    return name == "linalg.index" or (name.startswith("arith.") and name != "arith.divf")


def _bits(value: ir.Value) -> int:
    type_ = ir.RankedTensorType(value.type)
    width: int = type_.element_type.width  # pyright: ignore[reportAttributeAccessIssue]
    return prod(type_.shape) * width


def _replace(call: ir.Operation, name: str, producers: Mapping[int, _Growth]) -> ir.Operation:
    operands = _operands(list(call.operands), producers)
    with ir.InsertionPoint(call), call.location:
        new = func.CallOp([r.type for r in call.results], ir.FlatSymbolRefAttr.get(name), operands)
    for old, result in zip(call.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    call.erase()
    return new.operation


def _operands(values: Sequence[ir.Value], producers: Mapping[int, _Growth]) -> list[ir.Value]:
    """The values, with the inputs of its producer in place of each that has one."""
    found: list[ir.Value] = []
    for i, value in enumerate(values):
        found += producers[i].inputs if i in producers else [value]
    return found


@dataclass
class _Kernel:
    """A kernel in the making: another one with producers of some of its arguments inside."""

    kernel: func.FuncOp
    contraction: ir.Operation
    producers: Mapping[int, _Growth]

    def build(self) -> func.FuncOp:
        """The function at the end of the module, not yet named."""
        old = list(self.kernel.regions[0].blocks[0].arguments)
        taken = [self.producers[i].inputs if i in self.producers else [v] for i, v in enumerate(old)]
        types = [v.type for values in taken for v in values]
        results = ir.FunctionType(ir.TypeAttr(self.kernel.attributes["function_type"]).value).results
        module = self.kernel.operation.parent
        with ir.InsertionPoint(module.regions[0].blocks[0]), self.contraction.location:
            function = func.FuncOp("kernel", (types, results), visibility="private")
        self._copy_attributes(function, [len(values) for values in taken])
        block = function.add_entry_block(arg_locs=[ir.Location.unknown()] * len(types))
        arguments = iter(block.arguments)
        given = [[next(arguments) for _ in values] for values in taken]
        values = {v: given[i][0] for i, v in enumerate(old) if i not in self.producers}
        inputs = {old[i]: given[i] for i in self.producers}
        with ir.InsertionPoint(block):
            self._clone_body(values, inputs)
        return function

    def _copy_attributes(self, function: func.FuncOp, counts: Sequence[int]) -> None:
        for item in self.kernel.attributes:
            name = item if isinstance(item, str) else item.name
            if name not in ("sym_name", "function_type", "arg_attrs"):
                function.attributes[name] = self.kernel.attributes[name]
        if "arg_attrs" not in self.kernel.attributes:
            return
        attributes = list(ir.ArrayAttr(self.kernel.attributes["arg_attrs"]))
        repeated = [a for a, count in zip(attributes, counts, strict=True) for _ in range(count)]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(repeated)

    def _clone_body(self, values: dict[ir.Value, ir.Value], inputs: Mapping[ir.Value, list[ir.Value]]) -> None:
        here = ir.InsertionPoint.current
        for op in self.kernel.regions[0].blocks[0].operations:
            if op.operation == self.contraction:
                values[self.contraction.results[0]] = self._fused(values, inputs).results[0]
            else:
                clone_with(op.operation, values, here)

    def _fused(self, values: Mapping[ir.Value, ir.Value], inputs: Mapping[ir.Value, list[ir.Value]]) -> ir.Operation:
        """The contraction on the producers' inputs, their bodies in front of its own."""
        by_argument = {a: op for a, op in zip(inputs, self.producers.values(), strict=True)}
        taken: list[list[ir.Value]] = []
        maps: list[ir.AffineMap] = []
        for value, map_ in zip(self.contraction.operands, index_maps(self.contraction), strict=True):
            producer = by_argument.get(value)
            taken.append([values[value]] if producer is None else inputs[value])
            maps += [map_] if producer is None else producer.maps(map_)
        operands = [value for own in taken for value in own]
        attributes = {name: self.contraction.attributes[name] for name in _attribute_names(self.contraction)}
        attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps])
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([len(operands) - 1, 1])
        product = IntegerProduct.of(self.contraction)
        if product is not None:
            attributes |= product.with_inputs([len(own) for own in taken[:-1]]).mark()
        fused = ir.Operation.create(
            "linalg.generic", [self.contraction.results[0].type], operands, attributes, regions=1, loc=self.contraction.location
        )
        self._fuse_bodies(fused, operands, by_argument, values)
        return fused

    def _fuse_bodies(
        self,
        fused: ir.Operation,
        operands: Sequence[ir.Value],
        by_argument: Mapping[ir.Value, _Growth],
        outer: Mapping[ir.Value, ir.Value],
    ) -> None:
        types = [ir.RankedTensorType(v.type).element_type for v in operands]
        block = ir.Block.create_at_start(fused.regions[0], types, [ir.Location.unknown()] * len(types))
        elements = iter(block.arguments)
        source = self.contraction.regions[0].blocks[0]
        inner = dict(outer)  # a contraction of integers uses constants from outside
        maps = index_maps(self.contraction)
        for value, argument, map_ in zip(self.contraction.operands, source.arguments, maps, strict=True):
            producer = by_argument.get(value)
            inner[argument] = next(elements) if producer is None else _computed(producer, map_, elements, fused, block)
        with ir.InsertionPoint(block):
            for op in source.operations:
                clone_with(op.operation, inner, ir.InsertionPoint.current)
        _stay_wide(block)


def _computed(
    producer: _Growth, outer: ir.AffineMap, elements: Iterator[ir.Value], fused: ir.Operation, block: ir.Block
) -> ir.Value:
    """A producer's element, from elements of its inputs; the constants it uses come in front of the contraction."""
    source = producer.op.regions[0].blocks[0]
    inner: dict[ir.Value, ir.Value] = {}
    for argument in list(source.arguments)[:-1]:
        inner[argument] = next(elements)
    for value in captured(producer.op):
        inner[value] = value.owner.clone(ip=ir.InsertionPoint(fused)).results[0]
    place = _composed(producer.view, outer)
    *body, last = list(source.operations)
    for op in body:
        if op.operation.name == "linalg.index":
            inner[op.results[0]] = _index(place, ir.IntegerAttr(op.attributes["dim"]).value, block)
        else:
            clone_with(op.operation, inner, ir.InsertionPoint(block))
    return inner[last.operands[0]]


def _index(place: ir.AffineMap, dim: int, block: ir.Block) -> ir.Value:
    """At the end of a body: where a producer's loop is, when its value is read at ``place``."""
    kind, i64 = ir.IndexType.get(), ir.IntegerType.get_signless(64)
    expr = place.results[dim]
    loops = sorted(_loops(expr))
    with ir.InsertionPoint(block):
        indices = [ir.Operation.create("linalg.index", [kind], [], {"dim": ir.IntegerAttr.get(i64, i)}).result for i in loops]
        if isinstance(expr, ir.AffineDimExpr):
            return indices[0]
        own = [
            ir.AffineExpr.get_dim(loops.index(i)) if i in loops else ir.AffineExpr.get_constant(0) for i in range(place.n_dims)
        ]
        at = ir.AffineMap.get(len(loops), 0, [expr.compose(ir.AffineMap.get(len(loops), 0, own))])
        return ir.Operation.create("affine.apply", [kind], indices, {"map": ir.AffineMapAttr.get(at)}).result


def _loops(expr: ir.AffineExpr) -> set[int]:
    """The loops that an index depends on."""
    if isinstance(expr, ir.AffineDimExpr):
        return {expr.position}
    return _loops(expr.lhs) | _loops(expr.rhs) if hasattr(expr, "lhs") else set()


def _stay_wide(block: ir.Block) -> None:
    """Replaces ``extui(trunci(x & c))`` by ``x & c`` where nothing is cut off: LLVM would shift bytes, in more steps.

    And ``uitofp(trunci(x & c))``, which is what becomes of that before a conversion, by ``sitofp(x & c)``.
    """
    for op in list(block.operations):
        is_float = op.operation.name == "arith.uitofp"
        narrow = _operand_of(op.operation, "arith.uitofp" if is_float else "arith.extui")
        masked = None if narrow is None else _operand_of(narrow, "arith.trunci")
        if narrow is None or masked is None or masked.name != "arith.andi":
            continue
        if not is_float and masked.results[0].type != op.results[0].type:
            continue
        mask = masked.operands[1].owner
        bits = ir.IntegerType(narrow.results[0].type).width
        if mask.name == "arith.constant" and 0 <= ir.IntegerAttr(mask.attributes["value"]).value < 1 << bits:
            _replace_wide(op, masked.results[0], is_float)
            if is_unused(narrow):
                narrow.erase()


def _replace_wide(op: ir.OpView, wide: ir.Value, is_float: bool) -> None:
    """Makes what reads an op read a wider integer, or that as a float."""
    value = wide
    if is_float:
        with ir.InsertionPoint(op), op.location:
            value = ir.Operation.create("arith.sitofp", [op.results[0].type], [wide]).result
    op.results[0].replace_all_uses_with(value)
    op.operation.erase()


def _operand_of(op: ir.Operation, name: str) -> ir.Operation | None:
    """The op that makes the only operand of an op of that name."""
    if op.name != name or isinstance(op.operands[0], ir.BlockArgument):
        return None
    return op.operands[0].owner.operation


def _composed(inner: ir.AffineMap, outer: ir.AffineMap) -> ir.AffineMap:
    """Where an operand of a producer is read, whose result is read at ``outer``."""
    return ir.AffineMap.get(outer.n_dims, 0, [e.compose(outer) for e in inner.results])


def _attribute_names(op: ir.Operation) -> list[str]:
    return [item if isinstance(item, str) else item.name for item in op.attributes]
