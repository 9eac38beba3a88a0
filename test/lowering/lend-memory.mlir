// RUN: relax-opt %s --relax-lend-memory | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK: %[[OWN:.*]] = memref.alloc() : memref<64xf32>
// CHECK: call @kernel_0(%{{.*}}, %[[OWN]])
func.func @main(%x: memref<64xf32>) {
  call @kernel_0(%x) : (memref<64xf32>) -> ()
  return
}
// CHECK-LABEL: func.func private @kernel_0(
// CHECK-SAME: memref<64xf32>, %[[ARG:.*]]: memref<64xf32>
// CHECK: memref.store %{{.*}}, %[[ARG]]
func.func private @kernel_0(%x: memref<64xf32>) attributes {relax.kernel} {
  %c0 = arith.constant 0 : index
  %own = memref.alloc() : memref<64xf32>
  %v = memref.load %x[%c0] : memref<64xf32>
  memref.store %v, %own[%c0] : memref<64xf32>
  return
}
