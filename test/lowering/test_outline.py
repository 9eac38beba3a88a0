"""Outlining: one private kernel per distinct linalg op, epilogues inside of their contraction."""

from __future__ import annotations

from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.functions import functions, is_private, name_of
from relaxir.lowering.fusion.outline_kernels import outline_kernels
from relaxir.lowering.marks import KERNEL
from support.contractions import PACKED_KERNEL

MAPS = """
#id = affine_map<(m, n) -> (m, n)>
#swap = affine_map<(m, n) -> (n, m)>
#row = affine_map<(m, n) -> (n)>
"""


def bias(source: str, name: str, map_: str = "#id") -> str:
    return f"""
  %{name} = linalg.generic {{indexing_maps = [{map_}, #row, #id], iterator_types = ["parallel", "parallel"]}}
      ins({source}, %bias : tensor<?x64xf32>, tensor<64xf32>) outs(%e : tensor<?x64xf32>) {{
  ^bb0(%u: f32, %v: f32, %o: f32):
    %p = arith.addf %u, %v : f32
    linalg.yield %p : f32
  }} -> tensor<?x64xf32>"""


def outlined(body: str, result: str) -> tuple[list[str], str]:
    """Names of the kernels, and the text of @main."""
    text = f"""{MAPS}{PACKED_KERNEL}
func.func @main(%x: tensor<?x64xf32>, %w: tensor<2x64x32xf32>, %bias: tensor<64xf32>) -> tensor<?x64xf32> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%n) : tensor<?x64xf32>
  {body}
  return {result} : tensor<?x64xf32>
}}"""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        outline_kernels(module.operation)
        assert module.operation.verify()
        kernels = [name_of(f) for f in functions(module) if KERNEL in f.attributes]
        assert all(is_private(f) for f in functions(module) if KERNEL in f.attributes)
        return kernels, next(str(f) for f in functions(module) if name_of(f) == "main")


CALL = "call @contraction_0({0}, %w, %e) : (tensor<?x64xf32>, tensor<2x64x32xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>"


def test_equal_ops_become_one_kernel() -> None:
    kernels, main = outlined(bias("%x", "a") + bias("%a", "b"), "%b")
    assert len(kernels) == 1
    assert main.count(f"call @{kernels[0]}") == 2
    assert "linalg" not in main


def test_an_elementwise_consumer_moves_into_its_contraction() -> None:
    kernels, main = outlined(f"%h = {CALL.format('%x')}" + bias("%h", "a"), "%a")
    assert len(kernels) == 1
    assert "contraction_0" not in kernels
    assert main.count("call @") == 1


def test_a_contraction_used_twice_keeps_its_result() -> None:
    body = f"%h = {CALL.format('%x')}" + bias("%h", "a") + f"\n%g = {CALL.format('%h')}" + bias("%g", "b")
    kernels, main = outlined(body, "%b")
    assert "contraction_0" in kernels
    assert main.count("call @contraction_0") == 1


def test_a_consumer_that_reads_across_is_a_kernel_of_its_own() -> None:
    body = f"""%h = {CALL.format("%x")}
  %s = tensor.cast %h : tensor<?x64xf32> to tensor<?x64xf32>
  %a = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {{
  ^bb0(%v: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %t = tensor.extract %h[%i, %j] : tensor<?x64xf32>
    linalg.yield %t : f32
  }} -> tensor<?x64xf32>"""
    kernels, main = outlined(body, "%a")
    assert sorted(kernels)[0] == "contraction_0"
    assert main.count("call @") == 2


def test_unused_kernels_are_dropped() -> None:
    kernels, _ = outlined(bias("%x", "a"), "%a")
    assert "contraction_0" not in kernels
