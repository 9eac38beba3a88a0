// RUN: relax-opt %s --relax-check-accesses | filecheck %s

// CHECK: module attributes {relax.accesses = [
// CHECK-SAME: relax.exp: memref.load of memref<4xf32>
// CHECK: func.func private @kernel_0(
// CHECK-SAME: %arg2: memref<4xi64>
// CHECK: scf.if
// CHECK: memref.load %arg0
// CHECK: func.call @relaxir_fault(%arg2
func.func private @kernel_0(%x: memref<4xf32>, %i: index) -> f32 attributes {relax.kernel, relax.ops = ["relax.exp"]} {
  %v = memref.load %x[%i] : memref<4xf32>
  return %v : f32
}
