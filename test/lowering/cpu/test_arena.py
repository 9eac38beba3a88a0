"""The arena: buffers that live at the same time never overlap, whatever the sizes; outputs are written in place."""

from __future__ import annotations

import re

import pytest

from relaxir.dialect import symbolic
from relaxir.dialect.bindings import ir
from relaxir.dialect.functions import body_of, find_function
from relaxir.dialect.relax import new_context
from relaxir.lowering.cpu.arena import Arena, plan_arena


def plan(text: str, shapes: list[list[int | str]], outputs: int = 0) -> tuple[Arena, str]:
    """Plans @f of the text; returns the plan and the function after."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        function = find_function(module, "f")
        block = body_of(function)
        assert block is not None
        arguments = list(block.arguments)
        dims = [[symbolic.parse(d) if isinstance(d, str) else d for d in s] for s in shapes]
        names = sorted({n for s in dims for d in s if isinstance(d, symbolic.Expr) for n in d.names})
        arena = block.add_argument(ir.Type.parse("memref<?xi8>"), ir.Location.unknown())
        symbols = {n: block.add_argument(ir.IndexType.get(), ir.Location.unknown()) for n in names}
        found = plan_arena(
            function, dict(zip(arguments, dims, strict=True)), arguments[len(arguments) - outputs :], arena, symbols
        )
        types = ir.FunctionType.get([a.type for a in block.arguments], [])
        function.attributes["function_type"] = ir.TypeAttr.get(types)
        assert module.operation.verify()
        return found, str(module)


CHAIN = """
func.func private @k(memref<64xf32>, memref<64xf32>)
func.func @f(%x: memref<64xf32>, %out: memref<64xf32>) {
  %a = memref.alloc() : memref<64xf32>
  call @k(%x, %a) : (memref<64xf32>, memref<64xf32>) -> ()
  %b = memref.alloc() : memref<64xf32>
  call @k(%a, %b) : (memref<64xf32>, memref<64xf32>) -> ()
  %c = memref.alloc() : memref<64xf32>
  call @k(%b, %c) : (memref<64xf32>, memref<64xf32>) -> ()
  call @k(%c, %out) : (memref<64xf32>, memref<64xf32>) -> ()
  return
}
"""


def test_a_chain_needs_two_buffers() -> None:
    arena, text = plan(CHAIN, [[64], [64]], outputs=1)
    assert arena.size == 2 * 64 * 4
    assert "memref.alloc" not in text


def test_sizes_are_aligned() -> None:
    arena, _ = plan(CHAIN.replace("64", "3"), [[3], [3]], outputs=1)
    assert arena.size == 2 * 64


def test_a_buffer_copied_to_an_output_is_that_output() -> None:
    text = """
      func.func private @k(memref<64xf32>, memref<64xf32>)
      func.func @f(%x: memref<64xf32>, %out: memref<64xf32>) {
        %a = memref.alloc() : memref<64xf32>
        call @k(%x, %a) : (memref<64xf32>, memref<64xf32>) -> ()
        memref.copy %a, %out : memref<64xf32> to memref<64xf32>
        return
      }"""
    arena, after = plan(text, [[64], [64]], outputs=1)
    assert arena.size == 0
    assert "memref.copy" not in after


def test_a_buffer_changed_after_its_copy_stays() -> None:
    text = """
      func.func private @k(memref<64xf32>, memref<64xf32>)
      func.func @f(%x: memref<64xf32>, %out: memref<64xf32>) {
        %a = memref.alloc() : memref<64xf32>
        call @k(%x, %a) : (memref<64xf32>, memref<64xf32>) -> ()
        memref.copy %a, %out : memref<64xf32> to memref<64xf32>
        call @k(%x, %a) : (memref<64xf32>, memref<64xf32>) -> ()
        return
      }"""
    arena, after = plan(text, [[64], [64]], outputs=1)
    assert arena.size == 256
    assert "memref.copy" in after


def test_symbolic_sizes_share_by_their_symbols() -> None:
    text = """
      func.func private @k(memref<?x8xf32>, memref<?x16xf32>)
      func.func @f(%x: memref<?x8xf32>) {
        %c0 = arith.constant 0 : index
        %n = memref.dim %x, %c0 : memref<?x8xf32>
        %a = memref.alloc(%n) : memref<?x16xf32>
        call @k(%x, %a) : (memref<?x8xf32>, memref<?x16xf32>) -> ()
        %b = memref.alloc(%n) : memref<?x8xf32>
        call @k(%b, %a) : (memref<?x8xf32>, memref<?x16xf32>) -> ()
        %c = memref.alloc(%n) : memref<?x16xf32>
        call @k(%b, %c) : (memref<?x8xf32>, memref<?x16xf32>) -> ()
        return
      }"""
    arena, after = plan(text, [["n", 8]])
    assert str(arena.size) == "n * 128"  # a and c take turns beside b, whose 32 bytes a row are rounded up to 64
    assert "memref.alloc" not in after


def test_views_and_branches_keep_a_buffer_alive() -> None:
    text = """
      func.func private @k(memref<8x8xf32>, memref<64xf32>)
      func.func @f(%x: memref<64xf32>, %p: i1) {
        %a = memref.alloc() : memref<64xf32>
        %v = memref.expand_shape %a [[0, 1]] output_shape [8, 8] : memref<64xf32> into memref<8x8xf32>
        %r = scf.if %p -> (memref<8x8xf32>) {
          scf.yield %v : memref<8x8xf32>
        } else {
          %t = memref.alloc() : memref<8x8xf32>
          scf.yield %t : memref<8x8xf32>
        }
        %b = memref.alloc() : memref<64xf32>
        call @k(%r, %b) : (memref<8x8xf32>, memref<64xf32>) -> ()
        return
      }"""
    arena, _ = plan(text, [[64], []])
    assert arena.size == 3 * 256


def test_data_dependent_sizes_are_freed_after_their_last_use() -> None:
    text = """
      func.func private @size() -> index
      func.func private @k(memref<?xf32>)
      func.func @f() {
        %n = call @size() : () -> index
        %a = memref.alloc(%n) : memref<?xf32>
        call @k(%a) : (memref<?xf32>) -> ()
        call @size() : () -> index
        return
      }"""
    arena, after = plan(text, [])
    assert arena.size == 0
    assert re.search(r"call @k\(%alloc\).*\n\s*memref.dealloc %alloc", after)


def test_each_data_dependent_buffer_is_freed_after_its_own_last_use() -> None:
    text = """
      func.func private @size() -> index
      func.func private @k(memref<?xf32>)
      func.func @f() {
        %n = call @size() : () -> index
        %a = memref.alloc(%n) : memref<?xf32>
        %b = memref.alloc(%n) : memref<?xf32>
        call @k(%a) : (memref<?xf32>) -> ()
        %v = memref.expand_shape %b [[0, 1]] output_shape [%n, 1] : memref<?xf32> into memref<?x1xf32>
        %w = memref.collapse_shape %v [[0, 1]] : memref<?x1xf32> into memref<?xf32>
        call @k(%w) : (memref<?xf32>) -> ()
        return
      }"""
    _, after = plan(text, [])
    assert re.search(r"call @k\(%collapse_shape\).*\n\s*memref.dealloc %alloc_0", after)


@pytest.mark.parametrize(("width", "size"), [("n + 1", "((n * 4 + 67) // 64) * 64"), ("n * 2", "n * 64")])
def test_sums_are_rounded_up_as_a_whole(width: str, size: str) -> None:
    text = """
      func.func @f(%x: memref<?xf32>) {
        %c0 = arith.constant 0 : index
        %n = memref.dim %x, %c0 : memref<?xf32>
        %a = memref.alloc(%n) : memref<?xf32>
        return
      }"""
    arena, _ = plan(text, [[width]])
    assert str(arena.size) == size
