"""Large constants as bytes: as text of LLVM IR, numbers one by one take 13 us each, to write, rewrite and read (Zen 5).

Before::

    llvm.mlir.global private constant @c(dense<...> : tensor<1000x8xf32>) : !llvm.array<1000 x array<8 x f32>>

after, read at the same addresses, as accesses say themselves what they read::

    llvm.mlir.global private constant @c(dense<...> : tensor<32000xi8>) : !llvm.array<32000 x i8>

A matrix of 1,000 by 1,000 numbers then is compiled in 1.3 s and not in 13.3, imports among them (Zen 5).
"""

from __future__ import annotations

import numpy as np

from ..dialect.bindings import ir
from ..dialect.elements import to_numpy
from ..dialect.traversal import operations

__all__ = ["constants_as_bytes"]

#: So many elements are written as numbers still: LLVM folds what reads them at places that are known.
_FEW = 256


def constants_as_bytes(module: ir.Operation) -> None:
    """Rewrites the globals of a module in the LLVM dialect, in place."""
    for op in operations(module.regions[0].blocks[0]):
        value = op.attributes["value"] if op.name == "llvm.mlir.global" and "value" in op.attributes else None
        if isinstance(value, ir.DenseElementsAttr) and _is_large(value):
            op.attributes["alignment"] = op.attributes["alignment"] if "alignment" in op.attributes else _alignment(value)
            stored = np.frombuffer(to_numpy(value).tobytes(), np.int8)
            op.attributes["value"] = ir.DenseElementsAttr.get(stored)
            op.attributes["global_type"] = ir.TypeAttr.parse(f"!llvm.array<{stored.size} x i8>")


def _is_large(value: ir.DenseElementsAttr) -> bool:
    element = value.type.element_type
    return len(value) > _FEW and isinstance(element, ir.FloatType | ir.IntegerType) and element.width % 8 == 0


def _alignment(value: ir.DenseElementsAttr) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), max(value.type.element_type.width // 8, 1))
