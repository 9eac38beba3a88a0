"""Says which functions work on memory of the device: entries and what they call. What preparation calls, too, is there twice.

In a module that uses both memories, what entries call with buffers of the host's is the host's, as what preparation calls is
(:mod:`.host_operations`).

Before::

    func.func @main(...) attributes {relax.entry = {step = false, ...}} { call @kernel_0(...); call @kernel_1(...) }
    func.func @main_transform_params.step0(...) attributes {relax.entry = {step = true, ...}} { call @kernel_1(...) }
    func.func private @kernel_0(...) attributes {relax.kernel}
    func.func private @kernel_1(...) attributes {relax.kernel}

after::

    func.func @main(...) attributes {relax.device, ...} { call @kernel_0(...); call @kernel_1_device(...) }
    func.func @main_transform_params.step0(...) attributes {...} { call @kernel_1(...) }
    func.func private @kernel_0(...) attributes {relax.device, relax.kernel}
    func.func private @kernel_1(...) attributes {relax.kernel}
    func.func private @kernel_1_device(...) attributes {relax.device, relax.kernel}
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of, calls_in
from ...dialect.functions import body_of, functions, name_of
from ..entries import entries_of
from ..lowering_pass import LoweringPass
from ..marks import DEVICE, HOST
from .host_operations import mark_host_operations
from .host_places import transfers_of, uses_both

__all__ = ["SeparateDevices", "copied", "separate_devices"]


@dataclass(frozen=True)
class SeparateDevices(LoweringPass):
    """Marks what works on memory of the device."""

    name: ClassVar[str] = "relax-separate-devices"

    def run(self, op: ir.Operation) -> None:
        separate_devices(op)


def separate_devices(module: ir.Operation) -> None:
    """Marks entries and what they call, and copies what preparation calls, too; in place."""
    roots = entries_of(module)
    if uses_both(module):
        transfers = transfers_of(module)
        for function in (f for f, e in roots if not e.is_step):
            mark_host_operations(function, transfers)
    by_name = {name_of(f): f for f in functions(module) if body_of(f) is not None}
    calls = {name: [callee_of(c) for c in calls_in(f.operation) if HOST not in c.attributes] for name, f in by_name.items()}
    by_host = [callee_of(c) for f in by_name.values() for c in calls_in(f.operation) if HOST in c.attributes]
    here = _reached([name_of(f) for f, e in roots if not e.is_step], calls)
    there = _reached([*(name_of(f) for f, e in roots if e.is_step), *by_host], calls)
    copies: dict[str, func.FuncOp] = {name: _copy(by_name[name], by_name) for name in here if name in there}
    for name in here:
        function: func.FuncOp = copies.get(name) or by_name[name]
        function.attributes[DEVICE] = ir.UnitAttr.get(module.context)
        for op in calls_in(function.operation):
            if HOST not in op.attributes and callee_of(op) in copies:
                op.attributes["callee"] = ir.FlatSymbolRefAttr.get(name_of(copies[callee_of(op)]), module.context)


def _reached(roots: Iterable[str], calls: Mapping[str, list[str]]) -> dict[str, None]:
    """The functions that some call, and these themselves, in the order in which they are met."""
    found, pending = dict[str, None](), list(roots)[::-1]
    while pending:
        name = pending.pop()
        if name in calls and name not in found:
            found[name] = None
            pending += calls[name][::-1]
    return found


def _copy(function: func.FuncOp, by_name: dict[str, func.FuncOp]) -> func.FuncOp:
    copy = copied(function, by_name, "device")
    by_name[name_of(copy)] = copy
    return copy


def copied(function: func.FuncOp, taken: Container[str], suffix: str) -> func.FuncOp:
    """A copy of a function in front of it, with a name of its own that ends as is said."""
    name = f"{name_of(function)}_{suffix}"
    while name in taken:
        name += "_"
    copy = function.operation.clone(ip=ir.InsertionPoint(function.operation))
    copy.attributes["sym_name"] = ir.StringAttr.get(name, function.context)
    assert isinstance(copy, func.FuncOp)
    return copy
