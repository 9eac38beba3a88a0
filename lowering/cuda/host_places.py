"""Which tensors or buffers of an entry are in the host's memory, where a module uses both devices.

What the entry says of its arguments and results (``relax.host_tensors``), and transfers, whose ends are in different memories,
decide: all other operations have their operands and results in one memory. What nothing ties to the host is in the device's.
A constant, or what is computed from constants and sizes alone, is in either, and each user has one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of
from ...dialect.functions import functions, name_of
from ...dialect.transforms.devices.groups import DeviceGroups
from ...dialect.traversal import nested_operations, operations
from ..entries import entry_of
from ..marks import ON_HOST, TRANSFER

__all__ = ["DEVICE_KIND", "HOST_KIND", "HostPlaces", "transfers_of", "uses_both"]

#: The kinds of devices that a module may use.
HOST_KIND, DEVICE_KIND = "cpu", "cuda"

# What is in no memory yet when nothing that it reads is.
_FREE = ("tensor.empty", "arith.constant", "linalg.fill", "func.call", "tensor.cast", "tensor.collapse_shape",
         "tensor.expand_shape", "tensor.extract_slice", "tensor.insert_slice", "tensor.from_elements",
         "tensor.splat")  # fmt: skip
# What hands on, to results or to the next round, and says nothing itself.
_ENDS = ("scf.yield", "scf.condition", "func.return")


def transfers_of(module: ir.Operation) -> dict[str, str]:
    """The functions that copy from one memory to the other, by name, with the kind of device that they copy to."""
    return {name_of(f): ir.StringAttr(f.attributes[TRANSFER]).value for f in functions(module) if TRANSFER in f.attributes}


def uses_both(module: ir.Operation) -> bool:
    """Whether anything in a module is in the host's memory, but for what prepares weights."""
    return any(ON_HOST in f.attributes or TRANSFER in f.attributes for f in functions(module))


def _is_memory(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType | ir.MemRefType)


class HostPlaces:
    """The values of one entry by memory. Raises RelaxError where an operation has some in both."""

    def __init__(self, function: func.FuncOp, transfers: dict[str, str]):
        """Reads a function on tensors or on buffers; ``transfers`` as :func:`transfers_of` gives them."""
        self.function, self.transfers = function, transfers
        self._groups = DeviceGroups()
        self._free: dict[ir.Value, bool] = {}
        for kind in (HOST_KIND, DEVICE_KIND):
            self._groups.place(kind, kind, function.location)
        block = function.regions[0].blocks[0]
        last = operations(block)[-1]
        self._boundary(list(block.arguments), last)
        for op in nested_operations(function.operation):
            self._read(op)

    def is_host(self, value: ir.Value) -> bool:
        """Whether a value is in the host's memory."""
        return self._groups.device(value) == HOST_KIND

    def transfer(self, op: ir.Operation) -> str | None:
        """The kind of device that a transfer copies to; None for any other operation."""
        return self.transfers.get(callee_of(op)) if op.name == "func.call" else None

    def on_host(self, op: ir.Operation) -> bool:
        """Whether an operation reads or writes the host's memory; a transfer is the device's."""
        return self.transfer(op) is None and any(self.is_host(v) for v in (*op.operands, *op.results) if _is_memory(v))

    def _boundary(self, arguments: Sequence[ir.Value], last: ir.Operation) -> None:
        """Arguments come first, then results, which are arguments, too, once there are buffers."""
        found = ON_HOST in self.function.attributes
        host = set(ir.DenseI64ArrayAttr(self.function.attributes[ON_HOST])) if found else set[int]()
        for position, value in (*enumerate(arguments), *zip(self._returned(len(arguments)), last.operands, strict=False)):
            if _is_memory(value):
                self._join(value, HOST_KIND if position in host else DEVICE_KIND, last)

    def _returned(self, arguments: int) -> Iterator[int]:
        """The positions of what is returned: a state's next value has that of the state."""
        entry = entry_of(self.function)
        updates, following = {} if entry is None else entry.updates, count(arguments)
        return (updates[i] if i in updates else next(following) for i in count())

    def is_free(self, value: ir.Value) -> bool:
        """Whether a tensor is computed of nothing that is in either memory, so that it may be computed in both."""
        if not isinstance(value.type, ir.RankedTensorType) or isinstance(value, ir.BlockArgument):
            return False
        if value not in self._free:
            op = value.owner.operation
            able = op.name in _FREE and self.transfer(op) is None
            self._free[value] = able and all(self.is_free(v) for v in op.operands if _is_memory(v))
        return self._free[value]

    def _join(self, left: ir.Value, right: ir.Value | str, op: ir.Operation) -> None:
        if not self.is_free(left) and (isinstance(right, str) or not self.is_free(right)):
            self._groups.join(left, right, op)

    def _read(self, op: ir.Operation) -> None:
        if (target := self.transfer(op)) is not None:
            self._transfer(op, target)
        elif op.name.startswith("scf."):
            self._flow(op)
        elif op.name not in _ENDS:
            there = [v for v in (*op.operands, *op.results) if _is_memory(v) and not self.is_free(v)]
            for value in there[1:]:
                self._join(there[0], value, op)

    def _transfer(self, op: ir.Operation, target: str) -> None:
        source, *others = (*op.operands, *op.results)
        self._join(source, DEVICE_KIND if target == HOST_KIND else HOST_KIND, op)
        for value in others:
            if _is_memory(value):
                self._join(value, target, op)

    def _flow(self, op: ir.Operation) -> None:
        """Operands, results and arguments of blocks that are one tensor in turn."""
        if op.name in _ENDS:
            return
        results: list[ir.Value] = list(op.results)
        for region in op.regions:
            for block in region.blocks:
                end = operations(block)[-1]
                arguments = list(block.arguments)[1 if op.name == "scf.for" else 0 :]
                self._all(arguments, self._entering(op, block), op)
                handed = list(end.operands)[1 if end.name == "scf.condition" else 0 :]
                self._all(handed, self._next(op, end, results), op)
        if op.name == "scf.for":
            self._all(results, list(op.operands)[3:], op)

    def _entering(self, op: ir.Operation, block: ir.Block) -> list[ir.Value]:
        """What a block's arguments are at first."""
        if op.name == "scf.for":
            return list(op.operands)[3:]
        return list(op.operands) if op.name == "scf.while" and block == op.regions[0].blocks[0] else []

    def _next(self, op: ir.Operation, end: ir.Operation, results: list[ir.Value]) -> list[ir.Value]:
        """What becomes of that which a block hands on."""
        if end.name == "scf.condition":
            self._all(list(op.regions[1].blocks[0].arguments), results, op)
            return results
        return list(op.regions[0].blocks[0].arguments) if op.name == "scf.while" else results

    def _all(self, left: Sequence[ir.Value], right: Sequence[ir.Value], op: ir.Operation) -> None:
        for one, other in zip(left, right, strict=False):
            if _is_memory(one) and _is_memory(other):
                self._join(one, other, op)
