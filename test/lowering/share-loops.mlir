// RUN: relax-opt %s --relax-set-target="target=cpu:x86-64-v4 openmp=true" --relax-share-loops | filecheck %s

// Threads share the iterations, and each has its own buffer on the stack.
// CHECK-LABEL: func.func private @attention(
// CHECK-NOT: relax.stack
// CHECK: omp.parallel
// CHECK: memref.alloca() {{.*}}: memref<32xf32>
// CHECK: omp.wsloop
func.func private @attention(%x: memref<?x32xf32>, %n: index) attributes {relax.kernel, relax.stack} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %own = memref.alloc() : memref<32xf32>
    %v = memref.load %x[%i, %c0] : memref<?x32xf32>
    memref.store %v, %own[%c0] : memref<32xf32>
    %w = memref.load %own[%c1] : memref<32xf32>
    memref.store %w, %x[%i, %c0] : memref<?x32xf32>
  } {relax.shared = array<i64: 0, 0, 0, 1>}
  return
}
