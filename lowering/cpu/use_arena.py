"""Every buffer of an entry function comes from one arena, which its caller gives it, and says how large it has to be.

Before::

    func.func @main(%x: memref<?x64xf32>, %out: memref<?x64xf32>) {
      %h = memref.alloc(%n) : memref<?x64xf32>
      call @kernel_0(%x, %h)
      call @kernel_1(%h, %out)
      return
    }

after::

    func.func @main(%x: memref<?x64xf32>, %out: memref<?x64xf32>, %arena: memref<?xi8>, %n: index) -> i64
        attributes {relax.arena = {groups = [["n", 256 : i64]], reserved = 0 : i64}, ...} {
      %h = memref.view %arena[%offset][%n] : memref<?xi8> to memref<?x64xf32>
      call @kernel_0(%x, %h)
      call @kernel_1(%h, %out)
      return %c0_i64
    }
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.errors import RelaxError
from ...dialect.functions import body_of, name_of, terminator, update_type
from ..arena import Arena, write_arena
from ..entries import entries_of
from ..lowering_pass import LoweringPass
from ..manifest_specs import EntrySpec
from ..marks import ARENA
from .arena import plan_arena

__all__ = ["UseArena", "use_arena"]


@dataclass(frozen=True)
class UseArena(LoweringPass):
    """Takes the buffers of entry functions from an arena of their callers.

    Attributes:
        reserved: bytes at its beginning that no buffer gets; a multiple of 64.
    """

    name: ClassVar[str] = "relax-use-arena"
    reserved: int = 0

    def run(self, op: ir.Operation) -> None:
        for function, entry in entries_of(op):
            if ARENA not in function.attributes:
                write_arena(function, use_arena(function, entry.spec, self.reserved))


def use_arena(function: func.FuncOp, spec: EntrySpec, reserved: int = 0) -> Arena:
    """Takes the buffers of an entry function from one arena, which is returned.

    It gets two groups of arguments more: the arena (``memref<?xi8>``) and the value of each symbol (``index``). It returns 0 as
    i64. Of the arena, ``reserved`` bytes are left alone.

    Raises:
        RelaxError: it returns a buffer.
    """
    block = body_of(function)
    assert block is not None, name_of(function)
    index, i64 = ir.IndexType.get(function.context), ir.IntegerType.get_signless(64, function.context)
    with function.location:
        tensors: list[ir.Value] = list(block.arguments)
        bytes_ = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], ir.IntegerType.get_signless(8))
        buffer = block.add_argument(bytes_, function.location)
        symbols = {s.name: block.add_argument(index, function.location) for s in spec.symbols}
        shapes = {value: list(shape) for value, shape in zip(tensors, spec.shapes, strict=True)}
        outputs = tensors[len(tensors) - len(spec.outputs) :]
        arena = plan_arena(function, shapes, outputs, buffer, symbols, reserved)
        returned = terminator(block)
        if len(returned.operands):
            raise RelaxError(f"expected the results of @{name_of(function)} in memory of the caller, got one in its own")
        with ir.InsertionPoint(returned):
            zero = ir.Operation.create("arith.constant", [i64], attributes={"value": ir.IntegerAttr.get(i64, 0)})
            func.ReturnOp([zero.result])
        returned.erase()
        update_type(function)
        if "arg_attrs" in function.attributes:
            del function.attributes["arg_attrs"]
    return arena
