// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-pack-weights{tile=8})' | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-pack-weights{tile=8},relax-lift-transform-params)' | filecheck %s --check-prefix=LIFTED
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-pack-weights{tile=0})' 2>&1 | filecheck %s --check-prefix=TILE

// A weight, or what comes from weights, is packed once for all its products; the written result type stays.
// CHECK-LABEL: @packs
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg1)
// CHECK-NEXT:    %1 = "relax.pack_weight"(%0) {tile = 8 : i64} : (tensor<4x12xf32>) -> tensor<2x4x8xf32>
// CHECK-NEXT:    %2 = "relax.packed_matmul"(%arg0, %1) {n = 12 : i64} : ({{.*}}) -> tensor<?x12xf32>
// CHECK-NEXT:    %3 = "relax.packed_matmul"(%arg0, %1)
// LIFTED-LABEL: @packs_transform_params
// LIFTED-SAME:   -> (tensor<2x4x8xf32> {relax.name = "w.permute_dims.pack_weight"})
// TILE: error: expected a positive tile, got 0
func.func @packs(%x: tensor<?x4xf32, {sym = ["n"]}>, %w: tensor<12x4xf32> {relax.name = "w"}) -> (tensor<?x12xf32>, tensor<?x12xf32, {sym = ["n"]}>) attributes {relax.num_input = 1 : i64} {
  %t = "relax.permute_dims"(%w) : (tensor<12x4xf32>) -> tensor<4x12xf32>
  %0 = "relax.matmul"(%x, %t) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x12xf32>) -> tensor<?x12xf32>
  %1 = "relax.matmul"(%x, %t) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x12xf32>) -> tensor<?x12xf32, {sym = ["n"]}>
  return %0, %1 : tensor<?x12xf32>, tensor<?x12xf32, {sym = ["n"]}>
}

// Left alone: a product of run-time values, of weights alone, with a batch of matrices, of integers, behind a barrier.
// CHECK-LABEL: @leaves
// CHECK-NOT:     pack
func.func @leaves(%x: tensor<4x4xf32>, %i: tensor<4x4xi8>, %w: tensor<4x4xf32> {relax.name = "w"}, %b: tensor<2x4x4xf32> {relax.name = "b"}, %q: tensor<4x4xi8> {relax.name = "q"})
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x4x4xf32>, tensor<4x4xi8>, tensor<4x4xf32>) attributes {relax.num_input = 2 : i64} {
  %0 = "relax.matmul"(%x, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relax.matmul"(%w, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "relax.matmul"(%x, %b) : (tensor<4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %3 = "relax.matmul"(%i, %q) : (tensor<4x4xi8>, tensor<4x4xi8>) -> tensor<4x4xi8>
  %s = "relax.stop_lift_params"(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = "relax.matmul"(%x, %s) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %2, %3, %4 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x4x4xf32>, tensor<4x4xi8>, tensor<4x4xf32>
}

// What a product in a loop reads is packed before the loop, once; a constant zero point does not hide a weight.
// CHECK-LABEL: @loops
// CHECK:         %[[W:.*]] = "relax.dequantize"
// CHECK:         %[[P:.*]] = "relax.pack_weight"(%[[W]]) {tile = 8 : i64} : (tensor<4x4xf32>) -> tensor<1x4x8xf32>
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      "relax.packed_matmul"(%{{.*}}, %[[P]])
// CHECK-NEXT:      "relax.packed_matmul"(%{{.*}}, %[[P]])
func.func @loops(%x: tensor<2x4xf32>, %q: tensor<4x4xi8> {relax.name = "lq"}, %s: tensor<f32> {relax.name = "ls"}) -> tensor<2x4xf32> attributes {relax.num_input = 1 : i64} {
  %z = "relax.full"() {value = 1 : i64} : () -> tensor<i8>
  %w = "relax.dequantize"(%q, %s, %z) : (tensor<4x4xi8>, tensor<f32>, tensor<i8>) -> tensor<4x4xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> (tensor<2x4xf32>) {
    %0 = "relax.matmul"(%a, %w) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = "relax.matmul"(%0, %w) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    scf.yield %1 : tensor<2x4xf32>
  }
  return %r : tensor<2x4xf32>
}
