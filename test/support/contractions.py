"""Contractions as text, packed matrices, and an epilogue after a contraction."""

from __future__ import annotations

import numpy as np

from support.kernel_harness import Compiled, element_of, function, generic

MULTIPLY_ADD = "  %p = arith.mulf %x0, %x1 : f32\n  %q = arith.addf %x2, %p : f32\n  linalg.yield %q : f32"
MARK = ", relax.contraction"


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
