"""Makes one matrix product of several that multiply one value with different weights; lifting prepares the combined weight.

Before::

    %q = "relax.matmul"(%x, %wq) : (tensor<?x64xf32, {sym = ["n"]}>, tensor<64x64xf32>) -> tensor<?x64xf32, {sym = ["n"]}>
    %k = "relax.matmul"(%x, %wk) : (tensor<?x64xf32, {sym = ["n"]}>, tensor<64x32xf32>) -> tensor<?x32xf32, {sym = ["n"]}>

after::

    %w = "relax.concat"(%wq, %wk) {axis = 1 : i64} : (tensor<64x64xf32>, tensor<64x32xf32>) -> tensor<64x96xf32>
    %y = "relax.matmul"(%x, %w) : (tensor<?x64xf32, {sym = ["n"]}>, tensor<64x96xf32>) -> tensor<?x96xf32, {sym = ["n"]}>
    %q = "relax.strided_slice"(%y) {axes = array<i64: 1>, begin = [0], end = [64]}
    %k = "relax.strided_slice"(%y) {axes = array<i64: 1>, begin = [64], end = [96]}

Combined are products in one block, of one left side, one ``out_dtype``, and weights that differ in their columns alone, in
program order. What follows all of them alike is done once: elementwise functions, and elementwise ops with a vector of weights,
such as biases. A weight that inference reads elsewhere too is left alone: it would be stored twice. Each element is
computed as before. Where the weights are transposed, see ``relax-reorder-permute-dims-after-concat``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...bindings import func, ir
from ...errors import RelaxError
from ...inference import normalize_axis
from ...op import attrs_of, is_elementwise, op_class
from ...op_costs import Size
from ...ops import Concat, MatMul, StridedSlice
from ...passes.rewriting import Patterns, Rewriter, walk
from ...struct_info import TensorInfo
from ...traversal import blocks_of, free_values, is_read_once, is_unused, nested_operations, operations
from ..lifting.known_ahead import KnownValues
from .product_pass import ProductPass

__all__ = ["CombineParallelMatmul"]


@dataclass(frozen=True)
class CombineParallelMatmul(ProductPass):
    """Combines products of one value with several weights.

    Attributes, besides those of :class:`.ProductPass`:
        min_count: the least number of products to combine.
        max_count: the greatest number of weights in one product; 0 is no limit.
        always: also matrices that come when the model runs, as adapters of a request may, and biases that do. Each call then
            copies them to one.
    """

    name: ClassVar[str] = "relax-combine-parallel-matmul"
    min_count: int = 2
    max_count: int = 0
    always: bool = False

    def run(self, op: ir.Operation) -> None:
        if self.min_count < 2:
            raise RelaxError(f"expected min-count of 2 or more, got {self.min_count}")
        if self.max_count and self.max_count < self.min_count:
            raise RelaxError(f"expected max-count of 0, or min-count or more, got {self.max_count}")
        super().run(op)

    def rewrite(self, function: func.FuncOp, values: KnownValues) -> None:
        """Block by block: an analysis finds the products of one that become one, and a pattern on the first makes that."""
        unused: list[ir.Value] = []
        for block in _blocks(function.operation):
            rule = _Rule(values, _Order(block), self.always)
            found = (chunk for group in _groups(block, rule) for chunk in self._chunks(group))
            chunks: dict[ir.Value, list[MatMul]] = {chunk[0].result: chunk for chunk in found}
            if chunks:
                walk(block.owner, _Combination(chunks, rule, unused).patterns(), values.flow)
        _erase_chains(unused)  # last, so that no new value is where one of these was: they are known values

    def _chunks(self, group: Sequence[MatMul]) -> Iterator[list[MatMul]]:
        """Products of a group that become one, in program order."""
        chunk: list[MatMul] = []
        parts = 0
        for product in group:
            count = _parts(product.rhs, self.max_count)
            if self.max_count and parts + count > self.max_count:
                yield from [chunk] if len(chunk) >= self.min_count else []
                chunk, parts = [], 0
            chunk.append(product)
            parts += count
        yield from [chunk] if len(chunk) >= self.min_count else []


def _blocks(function: ir.Operation) -> Iterator[ir.Block]:
    yield from blocks_of(function)
    for op in nested_operations(function):
        yield from blocks_of(op)


def _parts(weight: ir.Value, limit: int) -> int:
    """Of how many weights this is the concatenation by columns, as far as the limit: combining again must not exceed it."""
    count, pending = 0, [weight]
    while pending and count <= limit:
        op = pending.pop().owner
        if isinstance(op, Concat) and normalize_axis(op.axis, TensorInfo.of(op.lhs).rank) == TensorInfo.of(op.lhs).rank - 1:
            pending += list(op.operands)
        else:
            count += 1
    return count


def _groups(block: ir.Block, rule: _Rule) -> list[list[MatMul]]:
    """Products of a block by what they have in common, in program order."""
    found: dict[object, dict[ir.Value, list[MatMul]]] = {}
    for op in operations(block):
        view = op.opview
        if not isinstance(view, MatMul) or is_unused(op) or rule.values.flow.is_ahead(view.lhs):
            continue
        if rule.is_candidate(view.rhs):
            found.setdefault(_key(view), {}).setdefault(view.rhs, []).append(view)
    return [_distinct(by_weight, rule) for by_weight in found.values()]


def _columns(weight: ir.Value) -> Size:
    size = TensorInfo.of(weight).shape[-1]
    assert size is not None
    return size


def _key(product: MatMul) -> object:
    weight = TensorInfo.of(product.rhs)
    return product.lhs, attrs_of(product)["out_dtype"], weight.shape[:-1], weight.vdevice


def _distinct(by_weight: dict[ir.Value, list[MatMul]], rule: _Rule) -> list[MatMul]:
    """Those whose weight inference reads nowhere else, and is there in time; equal ones are left to ``cse``."""
    values = rule.values
    single = [(w, ops[0]) for w, ops in by_weight.items() if len(ops) == 1]
    found = [(w, op) for w, op in single if not values.is_ready(w) or _readers(w, values) == 1]
    return [op for w, op in found if rule.is_there(w, found[0][1].operation)]


def _readers(weight: ir.Value, values: KnownValues) -> int:
    """How many operands of run-time ops a weight is, counted up to two."""
    count = 0
    for use in weight.uses:
        results = list(use.owner.operation.results)
        count += not results or not values.is_ready(results[0])
        if count > 1:
            break
    return count


class _Order:
    """Where in a block values are made. MLIR renumbers a block when ops are squeezed in, which is not linear any more."""

    def __init__(self, block: ir.Block):
        self._positions = {r: i for i, op in enumerate(operations(block)) for r in op.results}

    def move_before(self, wanted: Iterable[ir.Value], where: ir.Operation) -> None:
        """Moves weight math of the block to before an op of it, so that the values are there; producers go first."""
        limit = self._positions[where.results[0]]
        pending = [(v, False) for v in reversed(list(wanted))]
        while pending:
            value, ready = pending.pop()
            if self._positions.get(value, limit) <= limit:
                continue
            op = value.owner.operation
            if ready:
                op.move_before(where)
                self._positions.update(dict.fromkeys(op.results, limit))
                continue
            pending.append((value, True))
            pending += [(v, False) for v in reversed(free_values(op))]

    def is_before(self, value: ir.Value, where: ir.Operation) -> bool:
        """Whether a value is there before an op of the block: made in it, or around it."""
        return self._positions.get(value, -1) < self._positions[where.results[0]]


@dataclass
class _Rule:
    """What may be combined in one block.

    Attributes:
        values: what is known of the function's values.
        order: where the values of the block are made.
        always: whether also matrices and vectors that come at run time.
    """

    values: KnownValues
    order: _Order
    always: bool

    def is_candidate(self, weight: ir.Value) -> bool:
        """Whether a value is a stack of matrices that could be put beside others."""
        shape = TensorInfo.of(weight).shape
        return len(shape) > 1 and shape[-1] is not None and (self.always or self.values.is_ready(weight))

    def is_there(self, value: ir.Value, where: ir.Operation) -> bool:
        """Whether a value is made before an op, or is weight math, which can be moved there."""
        return self.values.is_ready(value) or (self.always and self.order.is_before(value, where))


def _erase_chains(concats: Iterable[ir.Value]) -> None:
    """Erases concatenations that nothing reads, and those that only they read."""
    for value in concats:
        op = value.owner
        while isinstance(op, Concat) and is_unused(op.operation):
            lhs = op.lhs.owner
            op.operation.erase()
            op = lhs


@dataclass(frozen=True)
class _Combination:
    """The work on one block.

    Attributes:
        chunks: products that become one, by the result of the first; emptied.
        rule: what may follow them.
        unused: gets the combined weights that are of no use, because lifting would not prepare them.
    """

    chunks: dict[ir.Value, list[MatMul]]
    rule: _Rule
    unused: list[ir.Value]

    def patterns(self) -> Patterns:
        return [(MatMul, self._multiply_once)]

    def _multiply_once(self, first: MatMul, rewriter: Rewriter) -> bool:
        # Once: weight math that moves in front of the first product may take the driver back to it.
        products = self.chunks.pop(first.result, None)
        if products is None:
            return False
        found = _combined(products, self.rule)
        if found.replaced:
            rewriter.discard(*(op for ops in found.replaced for op in ops))
        else:
            self.unused.append(found.weight)
        return bool(found.replaced)


@dataclass(frozen=True)
class _Combined:
    """The weights of several products as one, and what is replaced now: the products, then what followed each of them."""

    weight: ir.Value
    replaced: Sequence[Sequence[ir.Operation]]


def _combined(products: Sequence[MatMul], rule: _Rule) -> _Combined:
    """Puts one product in the place of several, unless lifting would not prepare its weight."""
    first, values, order = products[0], rule.values, rule.order
    weights = [p.rhs for p in products]
    order.move_before(weights, first.operation)
    sizes = [_columns(w) for w in weights]
    ends: list[ir.Value] = [p.results[0] for p in products]
    with ir.InsertionPoint(first), first.location:
        weight = _concatenated(weights, values)
        # Each is, but they grow too much together.
        if not rule.always and not values.is_ready(weight):
            return _Combined(weight, [])
        result = MatMul.create(first.lhs, weight, out_dtype=attrs_of(first)["out_dtype"]).results[0]
    replaced = [[p.operation for p in products]]
    while (step := _Step.of(ends, sizes, rule, first.operation)) is not None:
        order.move_before(step.vectors, first.operation)
        result = step.apply(result, first.operation, values)
        ends = [op.results[0] for op in step.ops]
        replaced.append(step.ops)
    _slice(result, ends, sizes, first.operation)
    return _Combined(weight, replaced)


@dataclass
class _Step:
    """An elementwise op that follows each of the products.

    Attributes:
        ops: the op after each product.
        position: which operand the product is.
        vectors: the other operands, empty for a function of one.
    """

    ops: list[ir.Operation]
    position: int
    vectors: list[ir.Value]

    @staticmethod
    def of(ends: Sequence[ir.Value], sizes: Sequence[Size], rule: _Rule, where: ir.Operation) -> _Step | None:
        """What reads each value, if that is one op each and it is the same for all."""
        uses = [list(end.uses) if is_read_once(end) else [] for end in ends]
        if not all(uses):
            return None
        ops, positions = [u[0].owner.operation for u in uses], [u[0].operand_number for u in uses]
        if len({(op.name, position) for op, position in zip(ops, positions, strict=True)}) > 1:
            return None
        kind = op_class(ops[0])
        block = ends[0].owner.operation.block
        if kind is None or any(op.block != block or attrs_of(op) != attrs_of(ops[0]) for op in ops):
            return None
        if not is_elementwise(ops[0]) or len(ops[0].operands) > 2:
            return None
        if len(ops[0].operands) == 1:
            return _Step(ops, 0, [])
        vectors = [op.operands[1 - positions[0]] for op in ops]
        fits = [rule.is_there(v, where) and TensorInfo.of(v).shape == (n,) for v, n in zip(vectors, sizes, strict=True)]
        return _Step(ops, positions[0], vectors) if all(fits) else None

    def apply(self, value: ir.Value, where: ir.Operation, values: KnownValues) -> ir.Value:
        """The op on the combined value, put before ``where``."""
        kind: Any = op_class(self.ops[0])
        with ir.InsertionPoint(where), self.ops[0].location:
            operands = [value, *([_concatenated(self.vectors, values)] if self.vectors else [])]
            return kind.create(*(operands[::-1] if self.position else operands), **_given(self.ops[0])).results[0]


def _given(op: ir.Operation) -> dict[str, Any]:
    return {key: value for key, value in attrs_of(op).items() if key in op.attributes}


def _concatenated(parts: Sequence[ir.Value], values: KnownValues) -> ir.Value:
    """The parts one after the other along their last dimension; concat is binary, so a chain."""
    axis = TensorInfo.of(parts[0]).rank - 1
    whole = parts[0]
    for part in parts[1:]:
        whole = values.enter(Concat.create(whole, part, axis=axis)).results[0]
    return whole


def _slice(whole: ir.Value, parts: Sequence[ir.Value], sizes: Sequence[Size], where: ir.Operation) -> None:
    """Puts slices of the last dimension in the place of the parts."""
    axis = TensorInfo.of(whole).rank - 1
    begin: Size = 0
    for part, size in zip(parts, sizes, strict=True):
        end = begin + size
        with ir.InsertionPoint(where), part.owner.location:
            piece = StridedSlice.create(whole, axes=[axis], begin=[begin], end=[end], result_types=[part.type])
        part.replace_all_uses_with(piece.results[0])
        begin = end
