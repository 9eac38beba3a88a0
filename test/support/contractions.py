"""Contractions as text, packed matrices, and an epilogue after a contraction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from relaxir.lowering.cpu.kernels.contraction.tuning import TUNINGS
from support.kernel_harness import Compiled, element_of, function, generic

MULTIPLY_ADD = "  %p = arith.mulf %x0, %x1 : f32\n  %q = arith.addf %x2, %p : f32\n  linalg.yield %q : f32"
MARK = ", relax.contraction"

#: A kernel as ``relax_to_linalg`` makes it, with the aliases of its maps, which stand at the top of a module.
PACKED_KERNEL = """
#mk = affine_map<(m, n, k) -> (m, k)>
#packed = affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func private @contraction_0(%a: tensor<?x64xf32>, %b: tensor<2x64x32xf32>, %out: tensor<?x64xf32>) -> tensor<?x64xf32>
    attributes {relax.kernel} {
  %z = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%z : f32) outs(%out : tensor<?x64xf32>) -> tensor<?x64xf32>
  %1 = linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                       relax.contraction}
      ins(%a, %b : tensor<?x64xf32>, tensor<2x64x32xf32>) outs(%0 : tensor<?x64xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  } -> tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}
"""

#: Products of ``x0`` with weights ``x1`` of i8 that have a scale ``x2``.
SCALED_MULTIPLY_ADD = """
      %u = arith.sitofp %x1 : i8 to f32
      %v = arith.mulf %u, %x2 : f32
      %p = arith.mulf %x0, %v : f32
      %q = arith.addf %x3, %p : f32
      linalg.yield %q : f32"""


def tune(monkeypatch, **constants):
    """Plans of all targets are made with these constants."""
    for name, tuning in TUNINGS.items():
        monkeypatch.setitem(TUNINGS, name, replace(tuning, **constants))


#: Blocks of 16 steps, 12 rows and 2 panels, whose rows are not copied.
SMALL_BLOCKS = {"block_longer": 16, "block_depth": 16, "block_rows": 12, "block_panels": (2,), "few_blocks": 0}
#: The same with rows that are copied.
SMALL_COPIES = SMALL_BLOCKS | {"copy_panels": 1}
#: The same, and as few panels for each call as there can be: 4 of 9.
FEW_BLOCKS = SMALL_COPIES | {"block_panels": (9,), "few_blocks": 1 << 20}


def packed(matrix, tile=32):
    """[..., k, n] -> [..., ceil(n / tile), k, tile], zero beyond n."""
    *batch, k, n = matrix.shape
    panels = -(-n // tile)
    wide = np.zeros((*batch, k, panels * tile), matrix.dtype)
    wide[..., :n] = matrix
    return np.ascontiguousarray(np.moveaxis(wide.reshape(*batch, k, panels, tile), -2, -3))


def contraction(maps, kinds, types, body=MULTIPLY_ADD, target=None):
    element = element_of(types[2])
    zero = f"%z = arith.constant {'0.0' if element[0] == 'f' else '0'} : {element}\n"
    fill = f"linalg.fill ins(%z : {element}) outs(%a2 : {types[2]})\n"
    return Compiled(function(types, zero + fill + generic(maps, kinds, types, body, MARK)), target)


def with_epilogue(maps, types, epilogue, epilogue_maps, body=MULTIPLY_ADD, extra="", target=None, kinds="ppr"):
    """types: A, B, further inputs of the epilogue, out. The contraction's own result is a temporary of out's shape."""
    out = types[-1]
    temporary = out[: out.rindex("x") + 1] + "f32>"
    last = len(types) - 1
    sizes = [f"%d{i}" for i, n in enumerate(out[len("memref<") :].split("x")[:-1]) if n == "?"]
    lines = "".join(
        f"%c{i} = arith.constant {i} : index\n%d{i} = memref.dim %a{last}, %c{i} : {out}\n"
        for i, n in enumerate(out[len("memref<") :].split("x")[:-1])
        if n == "?"
    )
    text = (
        f"%z = arith.constant 0.0 : f32\n{lines}%t = memref.alloc({', '.join(sizes)}) : {temporary}\n"
        f"linalg.fill ins(%z : f32) outs(%t : {temporary})\n"
        + generic(maps, kinds, [*types[:2], temporary], body, MARK, names=["%a0", "%a1", "%t"])
        + "\n"
        + extra.replace("TEMPORARY", temporary)
        + generic(
            epilogue_maps, "pp", [temporary, *types[2:]], epilogue, names=["%t", *(f"%a{i}" for i in range(2, len(types)))]
        )
        + f"\nmemref.dealloc %t : {temporary}"
    )
    return Compiled(function(types, text), target)
