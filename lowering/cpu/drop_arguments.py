"""Kernels take no arguments that they do not read: of most descriptors of buffers, that is all but a pointer.

Before::

    llvm.func internal @kernel_0(%0: !llvm.ptr, %1: !llvm.ptr, %2: i64, %3: i64, %4: i64) attributes {no_inline} {
      %5 = llvm.load %1 ...
    llvm.call @kernel_0(%a, %b, %c, %d, %e)

after::

    llvm.func internal @kernel_0(%0: !llvm.ptr) attributes {no_inline, relax.arguments = array<i64: 5, 1>} {
      %1 = llvm.load %0 ...
    llvm.call @kernel_0(%b)

What a kernel takes depends on nothing but the kernel, so that its code fits into other modules. A declaration with the
attribute is a kernel that was compiled before (:mod:`.known_kernels`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import dialect_module, ir
from ...dialect.traversal import nested_operations, operations
from ..lowering_pass import LoweringPass
from .kernel_arguments import NUMBERED, KernelArguments

__all__ = ["DropArguments", "drop_arguments"]

_HIDDEN = 1


@dataclass(frozen=True)
class DropArguments(LoweringPass):
    """Drops the arguments that kernels do not read."""

    name: ClassVar[str] = "relax-drop-arguments"

    def run(self, op: ir.Operation) -> None:
        drop_arguments(op)


def drop_arguments(module: ir.Operation) -> None:
    """Changes kernels and their calls, in place; declarations of one code become one."""
    functions = [op for op in operations(module.regions[0].blocks[0]) if op.name == "llvm.func"]
    calls = [op for f in functions if not _is_kernel(f) for op in nested_operations(f) if op.name == "llvm.call"]
    declared = {_name(f): _name(f).partition(NUMBERED)[0] for f in functions if _is_declared_kernel(f)}
    dropped = {name: found for f in functions for name in [_name(f)] if (found := _narrowed(f)) is not None}
    for call in calls:
        name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value if "callee" in call.attributes else ""
        if name in dropped:
            _call(call, declared.get(name, name), dropped[name])
        elif name in declared:  # one that reads all of its arguments
            call.attributes["callee"] = ir.FlatSymbolRefAttr.get(declared[name], call.context)
    seen = set[str]()
    for function in functions:
        symbol = declared.get(_name(function))
        if symbol in seen:
            function.erase()
        elif symbol is not None:
            function.attributes["sym_name"] = ir.StringAttr.get(symbol, module.context)
            seen.add(symbol)


def _name(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _is_kernel(function: ir.Operation) -> bool:
    return "no_inline" in function.attributes


def _is_declared_kernel(function: ir.Operation) -> bool:
    return len(function.regions[0].blocks) == 0 and KernelArguments.of(function) is not None


def _narrowed(function: ir.Operation) -> KernelArguments | None:
    """What a kernel takes from now on; None where it took no more before."""
    known = KernelArguments.of(function)
    blocks = function.regions[0].blocks
    if len(blocks) == 0:
        if known is None:
            return None
        function.attributes["visibility_"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, function.context), _HIDDEN)
        if len(_inputs(function)) == len(known.kept):
            return None
        _set_inputs(function, known.kept)
        return known
    if known is not None or not _is_kernel(function):
        return None
    arguments = list(blocks[0].arguments)
    found = KernelArguments(len(arguments), tuple(i for i, a in enumerate(arguments) if any(True for _ in a.uses)))
    for i in reversed(range(found.count)):
        if i not in found.kept:
            blocks[0].erase_argument(i)
    _set_inputs(function, found.kept)
    found.write(function)
    return found


def _inputs(function: ir.Operation) -> list[ir.Type]:
    return list(ir.TypeAttr(function.attributes["function_type"]).value.inputs)


def _set_inputs(function: ir.Operation, kept: Sequence[int]) -> None:
    inputs = _inputs(function)
    old = ir.TypeAttr(function.attributes["function_type"]).value
    new = dialect_module("llvm").FunctionType.get(old.return_type, [inputs[i] for i in kept])
    function.attributes["function_type"] = ir.TypeAttr.get(new)
    if "arg_attrs" in function.attributes:
        given = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([given[i] for i in kept], function.context)


def _call(call: ir.Operation, symbol: str, arguments: KernelArguments) -> None:
    """Calls what has fewer arguments now."""
    operands = [call.operands[i] for i in arguments.kept]
    attributes = {name: call.attributes[name] for name in call.attributes}
    attributes["callee"] = ir.FlatSymbolRefAttr.get(symbol, call.context)
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([len(operands), 0], call.context)
    with ir.InsertionPoint(call), call.location:
        new = ir.Operation.create("llvm.call", [r.type for r in call.results], operands, attributes)
    for old, result in zip(call.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    call.erase()
