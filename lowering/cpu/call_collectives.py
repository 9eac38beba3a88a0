"""Calls of functions that stand for collectives become calls of the run time, by a table that entries then take as an argument.

Before::

    func.func @main(%x: memref<4xf32>, %y: memref<4xf32>, ...) attributes {relax.entry = ...} {
      call @all_reduce_0(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()

after::

    func.func @main(%x: memref<4xf32>, %y: memref<4xf32>, ..., %ranks: !llvm.ptr) {
      %status = call @relaxir_collective(%ranks, %kind, %in, %out, %elements, %type) : (!llvm.ptr, i64, ...) -> i64
      call @relax_check(%done, %lost)

In a module for one rank nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of
from ...dialect.errors import RelaxError
from ...dialect.functions import body_of, functions, name_of, update_type
from ...dialect.sharding import ranks_of
from ...dialect.traversal import nested_operations
from ..collective_call import ELEMENTS, KINDS, LOST
from ..entries import entry_of
from ..kernels.emit.emitter import Emitter
from ..lowering_pass import LoweringPass
from ..marks import COLLECTIVE
from .lower_checks import CHECK

__all__ = ["CALL", "DEFINITION", "CallCollectives", "call_collectives"]

CALL = "relaxir_collective"

#: The function that is called, as LLVM IR.
DEFINITION = f"""
define internal i64 @{CALL}(ptr %ranks, i64 %kind, i64 %in, i64 %out, i64 %elements, i64 %type) {{
  %call = load ptr, ptr %ranks
  %place = getelementptr ptr, ptr %ranks, i64 1
  %context = load ptr, ptr %place
  %from = inttoptr i64 %in to ptr
  %to = inttoptr i64 %out to ptr
  %status = call i64 %call(ptr %context, i64 %kind, ptr %from, ptr %to, i64 %elements, i64 %type)
  ret i64 %status
}}
"""


@dataclass(frozen=True)
class CallCollectives(LoweringPass):
    """Makes entries of modules for several ranks call the run time."""

    name: ClassVar[str] = "relax-call-collectives"

    def run(self, op: ir.Operation) -> None:
        call_collectives(op)


def call_collectives(module: ir.Operation) -> None:
    """Rewrites a module of buffers, in place.

    Raises:
        RelaxError: a collective is in a function that is not an entry, or its elements are of a kind that is not sent.
    """
    if ranks_of(module) == 1 or any(name_of(f) == CALL for f in functions(module)):
        return
    kinds = {name_of(f): KINDS.index(ir.StringAttr(f.attributes[COLLECTIVE]).value)
             for f in functions(module) if COLLECTIVE in f.attributes}  # fmt: skip
    with module.context, ir.Location.unknown():
        _declare(module)
        for function in functions(module):
            entry = entry_of(function)
            if body_of(function) is not None and name_of(function) not in kinds:
                _rewrite(function, kinds, entry is not None and not entry.is_step)
        for function in functions(module):
            if name_of(function) in kinds:
                function.operation.erase()


def _declare(module: ir.Operation) -> None:
    i1, i64, pointer = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(64), ir.Type.parse("!llvm.ptr")
    known = {name_of(f) for f in functions(module)}
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        func.FuncOp(CALL, ([pointer, *[i64] * 5], [i64]), visibility="private")
        if CHECK not in known:
            func.FuncOp(CHECK, ([i1, i64], []), visibility="private")


def _rewrite(function: func.FuncOp, kinds: dict[str, int], is_entry: bool) -> None:
    calls = [op for op in nested_operations(function.operation) if op.name == "func.call" and callee_of(op) in kinds]
    if calls and not is_entry:
        raise RelaxError(f"expected collectives in entries alone, got one in @{name_of(function)}", calls[0].location)
    block = body_of(function)
    if block is None or not is_entry:
        return
    ranks = block.add_argument(ir.Type.parse("!llvm.ptr"), function.location)
    em = Emitter(block)
    for op in calls:
        with em.before(op):
            _call(em, ranks, kinds[callee_of(op)], op)
        op.erase()
    update_type(function)
    if "arg_attrs" in function.attributes:
        del function.attributes["arg_attrs"]


def _call(em: Emitter, ranks: ir.Value, kind: int, op: ir.Operation) -> None:
    i64 = em.integer(64)
    source, target = op.operands[0], op.operands[len(op.operands) - 1]
    element = str(ir.MemRefType(source.type).element_type)
    if element not in ELEMENTS:
        raise RelaxError(f"expected elements that ranks send ({', '.join(ELEMENTS)}), got {element}", op.location)
    numbers = [em.constant(kind, i64), _address(em, source), _address(em, target), _elements(em, source),
               em.constant(ELEMENTS.index(element), i64)]  # fmt: skip
    status = em.op("func.call", [ranks, *numbers], i64, {"callee": ir.FlatSymbolRefAttr.get(CALL)})
    done = em.compare("eq", status, em.constant(0, i64))
    em.effect("func.call", [done, em.constant(LOST, i64)], {"callee": ir.FlatSymbolRefAttr.get(CHECK)})


def _address(em: Emitter, buffer: ir.Value) -> ir.Value:
    """Where the elements of a buffer begin, which are one behind the other."""
    index = em.op("memref.extract_aligned_pointer_as_index", [buffer], em.index)
    return em.op("arith.index_cast", [index], em.integer(64))


def _elements(em: Emitter, buffer: ir.Value) -> ir.Value:
    count = em.constant(1, em.index)
    for axis in range(ir.MemRefType(buffer.type).rank):
        size = em.op("memref.dim", [buffer, em.constant(axis, em.index)], em.index)
        count = em.op("arith.muli", [count, size], em.index)
    return em.op("arith.index_cast", [count], em.integer(64))
