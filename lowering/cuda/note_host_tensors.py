"""Writes down which arguments and results of entries are in the host's memory, before types forget devices.

Before::

    func.func @main(%x: tensor<4xf32, {vdevice = "cpu:0"}>, %y: tensor<4xf32>) -> tensor<4xf32, {vdevice = "cpu:0"}>
        attributes {relax.entry = {...}}

after::

    ... attributes {relax.entry = {...}, relax.host_tensors = array<i64: 0, 2>}

Positions are those of the arguments, then of the results that are no state. All others are in the GPU's memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.errors import RelaxError
from ...dialect.functions import body_of, returned_values
from ...dialect.struct_info import is_tensor, vdevice_of
from ..entries import Entry, entries_of
from ..lowering_pass import LoweringPass
from ..marks import ON_HOST
from .host_places import DEVICE_KIND, HOST_KIND

__all__ = ["NoteHostTensors", "note_host_tensors"]


@dataclass(frozen=True)
class NoteHostTensors(LoweringPass):
    """Writes down which tensors of callers are in the host's memory."""

    name: ClassVar[str] = "relax-note-host-tensors"

    def run(self, op: ir.Operation) -> None:
        note_host_tensors(op)


def note_host_tensors(module: ir.Operation) -> None:
    """Marks the entries of a relax module, in place.

    Raises:
        RelaxError: a tensor is on a device of another kind, or entries that share a state have it in different memories.
    """
    places = dict[str, bool]()
    for function, entry in entries_of(module):
        host = [] if entry.is_step else _host_positions(function, entry)
        if host:
            function.attributes[ON_HOST] = ir.DenseI64ArrayAttr.get(host, module.context)
        for state in entry.spec.state:
            if places.setdefault(state.name, state.argument in host) != (state.argument in host):
                raise RelaxError(f"expected state '{state.name}' on one device, got it on both", function.location)


def _host_positions(function: func.FuncOp, entry: Entry) -> list[int]:
    block = body_of(function)
    assert block is not None
    results = [v for i, v in enumerate(returned_values(function)) if i not in entry.updates]
    tensors: list[ir.Value] = [*block.arguments, *results]
    return [i for i, value in enumerate(tensors) if is_tensor(value) and _kind(value, function) == HOST_KIND]


def _kind(value: ir.Value, function: func.FuncOp) -> str:
    device = vdevice_of(value) or DEVICE_KIND
    kind = device.partition(":")[0]
    if kind not in (HOST_KIND, DEVICE_KIND):
        raise RelaxError(f"expected tensors on '{HOST_KIND}:0' or '{DEVICE_KIND}:0', got one on '{device}'", function.location)
    return kind
