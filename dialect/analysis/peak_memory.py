"""The bytes of tensors that a function holds at most: its ops as tasks of :mod:`.task_order`, sizes from the types.

Live while an op runs are its operands, its results and all values used later; a value is gone after its last use. An op with
regions holds in addition what one of its blocks holds at most, before it has results; a call, what the called function holds
besides its arguments. Arguments of a function belong to its caller and count throughout. Views do not alias, scalars are free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..bindings import func, ir
from ..call_graph import callee_of
from ..dtypes import numpy_dtype
from ..errors import RelaxError
from ..functions import body_of, name_of
from ..struct_info import TensorInfo, is_tensor
from ..symbolic import Dim, Expr, evaluate
from ..traversal import blocks_of, free_values, nested_operations, operations
from .task_order import Graph, Task, lower_bound, peak_of

__all__ = ["PeakMemory"]

# Bytes, and whether they are more than an estimate.
_Known = tuple[int, bool]


# What an unknown dimension counts for when orders are compared; no peak is stated then.
_NOMINAL = 64
# Element types that NumPy lacks (index, complex) count as many bytes, and no peak is stated.
_NOMINAL_ITEM = 8


class PeakMemory:
    """Sizes and peaks in one module, and which order the blocks inside of ops have."""

    def __init__(self) -> None:
        self._sizes: dict[ir.Type, _Known] = {}
        self._blocks: dict[ir.Block, _Known] = {}
        self._functions: dict[str, _Known] = {}

    def add_callee(self, function: func.FuncOp) -> None:
        """Makes calls of a function known; callees first, one that is not known counts as a recursion."""
        blocks = function.regions[0].blocks
        self._functions[name_of(function)] = (0, True) if not len(blocks) else self._of_region(list(blocks))

    def size_of(self, value: ir.Value) -> int:
        """The bytes of a tensor, estimated where dimensions are not known; 0 for anything else."""
        return self._size(value.type)[0]

    def of_function(self, function: func.FuncOp) -> int | None:
        """The peak of a function of one block, None when it depends on sizes or recursions that are not known."""
        block = body_of(function)
        assert block is not None
        arguments = [self._size(a.type) for a in block.arguments]
        inside, known = self._of_region([block])
        return sum(s for s, _ in arguments) + inside if known and all(k for _, k in arguments) else None

    def bound_of_function(self, function: func.FuncOp) -> int:
        """What no order of the ops of a function takes less than."""
        block = body_of(function)
        assert block is not None
        return sum(self._size(a.type)[0] for a in block.arguments) + lower_bound(self.graph(block))

    def graph(self, block: ir.Block, after: Mapping[int, Sequence[int]] | None = None) -> Graph:
        """The ops of a block without its terminator as tasks.

        Args:
            block: arguments of a block in a region are live from the start; those of a function's body are left out.
            after: positions of ops that must come before others.
        """
        *ops, last = operations(block)
        own = [r for op in ops for r in op.results] + ([] if isinstance(block.owner, func.FuncOp) else list(block.arguments))
        number = {value: i for i, value in enumerate(own)}
        tasks: list[Task] = []
        for i, op in enumerate(ops):
            read = dict.fromkeys(number[v] for v in free_values(op) if v in number)
            results = tuple(number[r] for r in op.results)
            tasks.append(Task(tuple(read), results, self._inside(op)[0], tuple((after or {}).get(i, ()))))
        kept = frozenset(number[v] for v in last.operands if v in number)
        return Graph(tuple(tasks), tuple(self._size(v.type)[0] for v in own), kept)

    def settle(self, block: ir.Block, peak: int) -> None:
        """Says which peak a block has in its final order, for what is around it; those inside of its ops come first."""
        self._blocks[block] = (peak, self._is_known(block))

    def _of_region(self, blocks: Sequence[ir.Block]) -> _Known:
        found = [self._blocks[b] if b in self._blocks else self._of_block(b) for b in blocks]
        # Values that go from block to block are not followed.
        return max((peak for peak, _ in found), default=0), len(blocks) < 2 and all(known for _, known in found)

    def _of_block(self, block: ir.Block) -> _Known:
        for inner in reversed([b for op in operations(block) for b in _blocks_inside(op)]):
            self._blocks[inner] = self._of_one(inner)
        return self._of_one(block)

    def _of_one(self, block: ir.Block) -> _Known:
        """The peak of a block; those inside of its ops are known already, so nesting takes no stack."""
        return peak_of(self.graph(block)), self._is_known(block)

    def _is_known(self, block: ir.Block) -> bool:
        """Whether all sizes in a block are."""
        known = all(self._inside(op)[1] and all(self._size(r.type)[1] for r in op.results) for op in operations(block))
        return known and all(self._size(a.type)[1] for a in block.arguments)

    def _inside(self, op: ir.Operation) -> _Known:
        """What an op holds besides operands and results."""
        if op.name == "func.call":
            return self._functions.get(callee_of(op), (0, False))
        if not len(op.regions):
            return 0, True
        regions = [list(region.blocks) for region in op.regions]
        found = [self._blocks[b] if b in self._blocks else self._of_block(b) for blocks in regions for b in blocks]
        return max((peak for peak, _ in found), default=0), all(k for _, k in found) and all(len(r) < 2 for r in regions)

    def _size(self, type_: ir.Type) -> _Known:
        if type_ not in self._sizes:
            self._sizes[type_] = _bytes(type_)
        return self._sizes[type_]


def _blocks_inside(op: ir.Operation) -> list[ir.Block]:
    """All blocks inside of an op, outer ones first."""
    found = list(blocks_of(op))
    for inner in nested_operations(op) if found else ():
        found += blocks_of(inner)
    return found


def _bytes(type_: ir.Type) -> _Known:
    if not is_tensor(type_):
        return 0, not isinstance(type_, ir.UnrankedTensorType)
    info = TensorInfo.of(type_)
    try:
        item, known = numpy_dtype(info.dtype).itemsize, True
    except RelaxError:
        item, known = _NOMINAL_ITEM, False
    return item * math.prod(_length(d) for d in info.shape), known and all(isinstance(d, int) for d in info.shape)


def _length(dim: Dim) -> int:
    if isinstance(dim, Expr):
        return evaluate(dim, dict.fromkeys(dim.names, _NOMINAL))
    return _NOMINAL if dim is None else dim
