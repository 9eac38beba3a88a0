// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v4 --relax-lower-kernels | filecheck %s
// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64 --relax-lower-kernels=all=true \
// RUN:   | filecheck %s --check-prefix=ALL
// RUN: not relax-opt %s --relax-lower-kernels 2>&1 | filecheck %s --check-prefix=UNKNOWN

#id = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func private @kernel_0(
// CHECK: scf.for
// CHECK: vector.load {{.*}} vector<16xf32>
// CHECK: arith.addf
// CHECK: vector.store {{.*}} vector<16xf32>
// ALL: vector<4xf32>
func.func private @kernel_0(%x: memref<64xf32>, %y: memref<64xf32>) attributes {relax.kernel} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : memref<64xf32>) outs(%y : memref<64xf32>) {
    ^bb0(%a: f32, %b: f32):
      %0 = arith.addf %a, %a : f32
      linalg.yield %0 : f32
  }
  return
}

// What is no kernel waits for its arena.
// CHECK-LABEL: func.func @main(
// CHECK: memref.copy
// ALL-LABEL: func.func @main(
// ALL: vector.store
func.func @main(%x: memref<64xf32>, %y: memref<64xf32>) {
  memref.copy %x, %y : memref<64xf32> to memref<64xf32>
  return
}

// UNKNOWN: error: expected a module with relax.target, which relax-set-target writes, got none
