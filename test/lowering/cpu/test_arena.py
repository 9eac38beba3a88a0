"""The arena: buffers that live at the same time never overlap, whatever the sizes; outputs are written in place."""

from __future__ import annotations

import ctypes
import re

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect import symbolic
from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.functions import body_of, find_function
from relaxir.lowering.arena import Arena
from relaxir.lowering.cpu.arena import plan_arena


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
    assert str(arena.size) == "((n + 1) // 2) * 64 + n * 64"  # a and c take turns beside b
    assert "memref.alloc" not in after


VECTORS = """
  func.func private @k(memref<?xT>, memref<?xT>)
  func.func @f(%x: memref<?xT>) {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : memref<?xT>
    %a = memref.alloc(%n) : memref<?xT>
    call @k(%x, %a) : (memref<?xT>, memref<?xT>) -> ()
    %b = memref.alloc(%n) : memref<?xT>
    call @k(%a, %b) : (memref<?xT>, memref<?xT>) -> ()
    return
  }"""


@pytest.mark.parametrize(
    ("dtype", "size"), [("i8", "((n + 63) // 64) * 128"), ("f32", "((n + 15) // 16) * 128"), ("f64", "((n + 7) // 8) * 128")]
)
def test_vectors_take_their_bytes_rounded_up_once(dtype: str, size: str) -> None:
    arena, _ = plan(VECTORS.replace("T", dtype), [["n"]])
    assert str(arena.size) == size


def test_rows_that_are_nearly_aligned_are_rounded_up() -> None:
    text = VECTORS.replace("?xT", "?x1001xf32")
    arena, _ = plan(text, [["n", 1001]])
    assert str(arena.size) == "n * 8064"


def test_vectors_fit_between_rows_where_that_takes_less() -> None:
    text = """
      func.func private @k(memref<?x64xf32>)
      func.func private @v(memref<?x16xi8>)
      func.func @f(%x: memref<?x64xf32>) {
        %c0 = arith.constant 0 : index
        %n = memref.dim %x, %c0 : memref<?x64xf32>
        %a = memref.alloc(%n) : memref<?x64xf32>
        call @k(%a) : (memref<?x64xf32>) -> ()
        %b = memref.alloc(%n) : memref<?x16xi8>
        call @v(%b) : (memref<?x16xi8>) -> ()
        return
      }"""
    arena, _ = plan(text, [["n", 64]])
    assert str(arena.size) == "n * 256"


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


@pytest.mark.parametrize(("width", "size"), [("n + 1", "((n * 4 + 67) // 64) * 64"), ("n * 2", "((n + 7) // 8) * 64")])
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


def test_more_memory_than_64_bits_count_is_refused() -> None:
    vector, matrix = ('tensor<?xf32, {sym = ["n"]}>', 'tensor<?x0xf32, {sym = ["n"]}>')
    text = f"""
      func.func @main(%x: {matrix}) -> tensor<f32> {{
        %a = "relax.sum"(%x) {{axis = array<i64: 1>}} : ({matrix}) -> {vector}
        %b = "relax.cumsum"(%a) {{axis = 0 : i64}} : ({vector}) -> {vector}
        %s = "relax.sum"(%b) : ({vector}) -> tensor<f32>
        return %s : tensor<f32>
      }}"""
    executable = rx.compile(rx.Module.parse(text))
    assert executable(np.empty((3, 0), np.float32)) == 0
    beyond = r"expected less than 2\*\*63 bytes, got '\(\(n \+ 15\) // 16\) \* 128' = 9223372036854775808"
    for n, message in ((2**59, f"expected {2**62} bytes of scratch memory, got none"), (2**60, beyond)):
        with pytest.raises(rx.RelaxError, match=message):
            executable(np.empty((n, 0), np.float32))
    # What calls it from C has no manifest: it is asked for more memory than there is.
    entry = executable.entries["main"]
    call = executable._library.function(entry.symbol)
    assert call((ctypes.c_void_p * 2)(), (ctypes.c_int64 * 1)(2**60), None, 0) == 2**63 - 1


def test_rounded_parts_that_are_others_do_not_overlap() -> None:
    """Vectors of n bf16 round up to 32 elements, as panels of a packed matrix do: ``(m + 31) // 32`` twice."""
    wide = 'tensor<?x?xbf16, {sym = ["m", "m"]}>'
    module = rx.Module.parse(f"""
func.func @main(%a: tensor<?x7xbf16, {{sym = ["m"]}}> {{relax.name = "x"}}) -> {wide} {{
  %0 = "relax.full"() {{value = 2 : i64}} : () -> tensor<7x?xbf16, {{sym = ["m"]}}>
  %1 = "relax.matmul"(%a, %0) : (tensor<?x7xbf16, {{sym = ["m"]}}>, tensor<7x?xbf16, {{sym = ["m"]}}>) -> {wide}
  return %1 : {wide}
}}""")
    executable = rx.compile(module, cache=False)
    for rows in (1, 3, 33, 70):
        x = np.ones((rows, 7), ml_dtypes.bfloat16)
        np.testing.assert_array_equal(executable(x).astype(np.float32), np.full((rows, rows), 14, np.float32))


def test_sizes_rounded_up_by_dividing_a_negative_number() -> None:
    """A size of one term whose factor is negative, as of padding to whole blocks, stays 0 or more."""
    text = """
      func.func private @k(memref<?x16xf32>, memref<?x16xf32>)
      func.func @f(%x: memref<?x16xf32>, %out: memref<?x16xf32>) {
        %c0 = arith.constant 0 : index
        %n = memref.dim %x, %c0 : memref<?x16xf32>
        %a = memref.alloc(%n) : memref<?x16xf32>
        call @k(%x, %a) : (memref<?x16xf32>, memref<?x16xf32>) -> ()
        call @k(%a, %out) : (memref<?x16xf32>, memref<?x16xf32>) -> ()
        return
      }"""
    arena, after = plan(text, [["-((-n) // 128)", 16], ["-((-n) // 128)", 16]], outputs=1)
    assert "memref.alloc" not in after
    assert {str(unit): extent for unit, extent in arena.groups.items()} == {"-((-n) // 128)": 64}
    assert symbolic.evaluate(arena.size, {"n": 12}) == 64
