"""Kernels as text: one that stands alone, and one that its callers lend memory."""

__all__ = ["LENT_MEMORY", "PLAIN"]

PLAIN = """
func.func private @plain(%x: memref<64xf32>, %s: index) attributes {relax.kernel} {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%s] : memref<64xf32>
  memref.store %v, %x[%c0] : memref<64xf32>
  return
}
"""

LENT_MEMORY = """
func.func private @works_in_lent_memory(%x: memref<64xf32>) attributes {relax.kernel} {
  %c0 = arith.constant 0 : index
  %own = memref.alloc() : memref<64xf32>
  %v = memref.load %x[%c0] : memref<64xf32>
  memref.store %v, %own[%c0] : memref<64xf32>
  return
}
"""
