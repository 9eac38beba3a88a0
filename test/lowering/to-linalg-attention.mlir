// RUN: relax-opt %s --relax-to-linalg=tile=16 | filecheck %s
// RUN: relax-opt %s --relax-to-linalg="tile=16 attention-keys=8" | filecheck %s --check-prefix=BLOCKS
// RUN: not relax-opt %s --relax-to-linalg="tile=16 attention-keys=0" 2>&1 | filecheck %s --check-prefix=KEYS
// RUN: not relax-opt %s --relax-to-linalg="tile=16 attention-parts=0" 2>&1 | filecheck %s --check-prefix=PARTS

// Forty keys are one block, or five of eight, one after the other.
// The function says what it computes, for those who build another kernel of it.
// CHECK-LABEL: func.func private @attention
// CHECK-SAME: relax.attention_kernel = {causal = false, maps = [#map, #map, #map, #map],
// CHECK-SAME: scale = 5.000000e-01 : f64, sizes = [2, 40, 4]}
// CHECK: scf.for
// CHECK-NOT: scf.for
// BLOCKS-LABEL: func.func private @attention
// BLOCKS: scf.for
// BLOCKS: scf.for {{.*}} to %c40 step %c8
// KEYS: error: expected positive attention-keys, got 0
// PARTS: error: expected positive attention-parts, got 0
func.func @main(%q: tensor<1x2x9x4xf32>, %k: tensor<1x2x40x4xf32>, %v: tensor<1x2x40x4xf32>) -> tensor<1x2x9x4xf32> {
  %0 = "relax.attention"(%q, %k, %v) {causal = false}
      : (tensor<1x2x9x4xf32>, tensor<1x2x40x4xf32>, tensor<1x2x40x4xf32>) -> tensor<1x2x9x4xf32>
  return %0 : tensor<1x2x9x4xf32>
}
