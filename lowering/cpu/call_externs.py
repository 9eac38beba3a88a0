"""Calls of functions that stand for those of other libraries become calls of these, by a table that entries then take.

Before::

    func.func @main(%x: memref<4xf32>, %y: memref<4xf32>, ...) attributes {relax.entry = ...} {
      call @extern_0(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()

after::

    func.func @main(%x: memref<4xf32>, %y: memref<4xf32>, ..., %externs: !llvm.ptr) {
      %status = call @extern_0(%externs, %x_address, %c4, %y_address, %c4) : (!llvm.ptr, i64, ...) -> i64
      call @relax_check(%done, %number)

and :func:`definitions` gives this ``@extern_0``, which makes DLTensors of addresses and sizes. A module that calls none
stays as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of
from ...dialect.errors import RelaxError
from ...dialect.extern_functions import ExternArgument, dl_type
from ...dialect.functions import body_of, functions, name_of, update_type
from ...dialect.traversal import nested_operations
from ..entries import entry_of
from ..extern_calls import ExternCall, Externs
from ..kernels.emit.emitter import Emitter
from ..lowering_pass import LoweringPass
from .lower_checks import CHECK

__all__ = ["CallExterns", "call_externs", "definitions"]

#: DLTensor: data, device, dimensions, code, bits, lanes, shape, strides, offset.
_TENSOR = "{ ptr, i32, i32, i32, i8, i8, i16, ptr, ptr, i64 }"
_CPU = 1


@dataclass(frozen=True)
class CallExterns(LoweringPass):
    """Makes entries call functions of other libraries."""

    name: ClassVar[str] = "relax-call-externs"

    def run(self, op: ir.Operation) -> None:
        call_externs(op)


def call_externs(module: ir.Operation) -> None:
    """Rewrites a module of buffers, in place.

    Raises:
        RelaxError: a call is in a function that is not an entry.
    """
    found = {name_of(f): (f, call) for f in functions(module) if (call := ExternCall.of(f)) is not None}
    if not found:
        return
    standing = {name: replace(call, name=name) for name, (_, call) in found.items()}
    with module.context, ir.Location.unknown():
        Externs([*standing.values()]).write(module)
        for function, _ in found.values():
            function.operation.erase()
        _declare(module, standing)
        for function in functions(module):
            if body_of(function) is not None:
                _rewrite(function, standing)


def _declare(module: ir.Operation, calls: Mapping[str, ExternCall]) -> None:
    i1, i64, pointer = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(64), ir.Type.parse("!llvm.ptr")
    known = {name_of(f) for f in functions(module)}
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        for name, call in calls.items():
            numbers = sum(1 + rank for rank in call.ranks)
            func.FuncOp(name, ([pointer, *[i64] * numbers], [i64]), visibility="private")
        if CHECK not in known:
            func.FuncOp(CHECK, ([i1, i64], []), visibility="private")


def _rewrite(function: func.FuncOp, standing: Mapping[str, ExternCall]) -> None:
    calls = [op for op in nested_operations(function.operation) if op.name == "func.call" and callee_of(op) in standing]
    if entry_of(function) is None:
        if calls:
            raise RelaxError(f"expected functions of other libraries in entries alone, got one in @{name_of(function)}",
                             calls[0].location)  # fmt: skip
        return
    block = body_of(function)
    assert block is not None
    table = block.add_argument(ir.Type.parse("!llvm.ptr"), function.location)
    em = Emitter(block)
    for op in calls:
        name = callee_of(op)
        with em.before(op):
            _call(em, table, name, standing[name].check, op)
        op.erase()
    update_type(function)
    if "arg_attrs" in function.attributes:
        del function.attributes["arg_attrs"]


def _call(em: Emitter, table: ir.Value, name: str, check: int, op: ir.Operation) -> None:
    i64 = em.integer(64)
    numbers: list[ir.Value] = []
    for buffer in op.operands:
        numbers.append(em.op("memref.extract_aligned_pointer_as_index", [buffer], em.index))
        axes = range(ir.MemRefType(buffer.type).rank)
        numbers += [em.op("memref.dim", [buffer, em.constant(axis, em.index)], em.index) for axis in axes]
    given = [table, *(em.op("arith.index_cast", [n], i64) for n in numbers)]
    status = em.op("func.call", given, i64, {"callee": ir.FlatSymbolRefAttr.get(name)})
    done = em.compare("eq", status, em.constant(0, i64))
    em.effect("func.call", [done, em.constant(check, i64)], {"callee": ir.FlatSymbolRefAttr.get(CHECK)})


def definitions(externs: Externs) -> str:
    """The functions that are called instead, as LLVM IR."""
    order = externs.functions
    return "".join(_definition(call, order.index(call.function)) for call in externs.calls)


def _definition(call: ExternCall, position: int) -> str:
    before = call.inputs + call.scalars
    outputs = len(call.dtypes) - before
    lines = [
        f"  %inputs = alloca [{call.inputs} x {_TENSOR}]",
        f"  %outputs = alloca [{outputs} x {_TENSOR}]",
        f"  %sizes = alloca [{sum(call.ranks)} x i64]",
        f"  %place = getelementptr ptr, ptr %externs, i64 {position}",
        "  %function = load ptr, ptr %place",
    ]
    parameters, first, numbers = ["ptr %externs"], 0, list[str]()
    for i, (dtype, rank) in enumerate(zip(call.dtypes, call.ranks, strict=True)):
        parameters += [f"i64 %t{i}", *(f"i64 %t{i}d{axis}" for axis in range(rank))]
        if call.inputs <= i < before:
            numbers.append(_number(i, dtype, lines))
            continue
        array, at = ("inputs", i) if i < call.inputs else ("outputs", i - before)
        lines += _tensor(i, f"%{array}", at, dtype, rank, first)
        first += rank
    known = iter(numbers)
    given = [next(known) if value is ... else _argument(i, value, lines) for i, value in enumerate(call.arguments)]
    tensors = [f"ptr %inputs, i32 {call.inputs}", f"ptr %outputs, i32 {outputs}"]
    lines += [f"  %result = call i32 %function({', '.join([*tensors, *given])})", "  %status = sext i32 %result to i64"]
    head = f"define internal i64 @{call.name}({', '.join(parameters)}) {{"
    return "\n".join([head, *lines, "  ret i64 %status", "}", ""])


def _tensor(i: int, array: str, at: int, dtype: str, rank: int, first: int) -> list[str]:
    """Fills DLTensor number ``at`` of an array, with sizes from ``first`` on."""
    code, bits = dl_type(dtype)
    lines = [f"  %shape{i} = getelementptr i64, ptr %sizes, i64 {first}", f"  %data{i} = inttoptr i64 %t{i} to ptr"]
    for axis in range(rank):
        place = f"%size{i}_{axis}"
        lines += [f"  {place} = getelementptr i64, ptr %shape{i}, i64 {axis}", f"  store i64 %t{i}d{axis}, ptr {place}"]
    fields = [
        f"ptr %data{i}", f"i32 {_CPU}", "i32 0", f"i32 {rank}", f"i8 {code}", f"i8 {bits}", "i16 1", f"ptr %shape{i}",
        "ptr null", "i64 0",
    ]  # fmt: skip
    for field, value in enumerate(fields):
        place = f"%field{i}_{field}"
        lines.append(f"  {place} = getelementptr {_TENSOR}, ptr {array}, i64 {at}, i32 {field}")
        lines.append(f"  store {value}, ptr {place}")
    return lines


def _number(i: int, dtype: str, lines: list[str]) -> str:
    """The element of tensor number ``i``, as LLVM IR's text of an argument: an i64, or a double."""
    lines.append(f"  %data{i} = inttoptr i64 %t{i} to ptr")
    code, bits = dl_type(dtype)
    kind = {"f32": "float", "f64": "double"}.get(dtype, f"i{bits}")
    lines.append(f"  %number{i} = load {kind}, ptr %data{i}")
    wide = "double" if kind in ("float", "double") else "i64"
    if kind == wide:
        return f"{wide} %number{i}"
    extend = "fpext" if wide == "double" else "sext" if code == 0 else "zext"
    lines.append(f"  %wide{i} = {extend} {kind} %number{i} to {wide}")
    return f"{wide} %wide{i}"


def _argument(i: int, value: ExternArgument, lines: list[str]) -> str:
    """What follows the tensors, as LLVM IR's text of an argument; a string is on the stack."""
    if isinstance(value, float):
        return f"double 0x{struct.pack('>d', value).hex().upper()}"
    if not isinstance(value, str):
        return f"i64 {int(value)}"
    data = value.encode() + b"\0"
    text = "".join(f"\\{byte:02X}" for byte in data)
    lines.append(f"  %text{i} = alloca [{len(data)} x i8]")
    lines.append(f'  store [{len(data)} x i8] c"{text}", ptr %text{i}')
    return f"ptr %text{i}"
