// RUN: relax-opt %s --relax-reorder-permute-dims-after-concat | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(func.func(relax-reorder-permute-dims-after-concat))' | filecheck %s

// Two transposed weights are concatenated first.
// CHECK-LABEL: @two(
// CHECK-NEXT:    %0 = "relax.concat"(%arg0, %arg1) {axis = 0 : i64} : ({{.*}}) -> tensor<8x4xf32
// CHECK-NEXT:    %1 = "relax.permute_dims"(%0) {axes = array<i64: 1, 0>}
// CHECK-NEXT:    return %1
func.func @two(%a: tensor<6x4xf32>, %b: tensor<2x4xf32>) -> tensor<4x8xf32> {
  %0 = "relax.permute_dims"(%a) {axes = array<i64: 1, 0>} : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %1 = "relax.permute_dims"(%b) : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %2 = "relax.concat"(%0, %1) {axis = -1 : i64} : (tensor<4x6xf32>, tensor<4x2xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// A chain of concatenations ends in one transposition.
// CHECK-LABEL: @three(
// CHECK-NEXT:    %0 = "relax.concat"(%arg0, %arg1) {axis = 0 : i64} : ({{.*}}) -> tensor<8x4xf32
// CHECK-NEXT:    %1 = "relax.concat"(%0, %arg0) {axis = 0 : i64} : ({{.*}}) -> tensor<14x4xf32
// CHECK-NEXT:    %2 = "relax.permute_dims"(%1) {axes = array<i64: 1, 0>}
// CHECK-NEXT:    return %2
func.func @three(%a: tensor<6x4xf32>, %b: tensor<2x4xf32>) -> tensor<4x14xf32> {
  %0 = "relax.permute_dims"(%a) : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %1 = "relax.permute_dims"(%b) : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %2 = "relax.concat"(%0, %1) {axis = 1 : i64} : (tensor<4x6xf32>, tensor<4x2xf32>) -> tensor<4x8xf32>
  %3 = "relax.permute_dims"(%a) : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %4 = "relax.concat"(%2, %3) {axis = 1 : i64} : (tensor<4x8xf32>, tensor<4x6xf32>) -> tensor<4x14xf32>
  return %4 : tensor<4x14xf32>
}

// Any permutation, and the axis with it; symbols.
// CHECK-LABEL: @other_axes(
// CHECK-NEXT:    %0 = "relax.concat"(%arg0, %arg0) {axis = 0 : i64} : ({{.*}}) -> tensor<?x3x4xf32
// CHECK-NEXT:    %1 = "relax.permute_dims"(%0) {axes = array<i64: 2, 0, 1>}
// CHECK-NEXT:    return %1
func.func @other_axes(%a: tensor<?x3x4xf32, {sym = ["n"]}>) -> tensor<4x?x3xf32, {sym = ["n * 2"]}> {
  %0 = "relax.permute_dims"(%a) {axes = array<i64: 2, 0, 1>} : (tensor<?x3x4xf32, {sym = ["n"]}>)
      -> tensor<4x?x3xf32, {sym = ["n"]}>
  %1 = "relax.permute_dims"(%a) {axes = array<i64: -1, 0, 1>} : (tensor<?x3x4xf32, {sym = ["n"]}>)
      -> tensor<4x?x3xf32, {sym = ["n"]}>
  %2 = "relax.concat"(%0, %1) {axis = 1 : i64} : (tensor<4x?x3xf32, {sym = ["n"]}>, tensor<4x?x3xf32, {sym = ["n"]}>)
      -> tensor<4x?x3xf32, {sym = ["n * 2"]}>
  return %2 : tensor<4x?x3xf32, {sym = ["n * 2"]}>
}

// Left alone: permuted differently.
// CHECK-LABEL: @differ(
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg0) {axes = array<i64: 2, 0, 1>}
// CHECK-NEXT:    %1 = "relax.permute_dims"(%arg0) {axes = array<i64: 0, 2, 1>}
// CHECK-NEXT:    %2 = "relax.concat"(%0, %1) : ({{.*}}) -> tensor<8x4x4xf32
// CHECK-NEXT:    return %2
func.func @differ(%a: tensor<4x4x4xf32>) -> tensor<8x4x4xf32> {
  %0 = "relax.permute_dims"(%a) {axes = array<i64: 2, 0, 1>} : (tensor<4x4x4xf32>) -> tensor<4x4x4xf32>
  %1 = "relax.permute_dims"(%a) {axes = array<i64: 0, 2, 1>} : (tensor<4x4x4xf32>) -> tensor<4x4x4xf32>
  %2 = "relax.concat"(%0, %1) : (tensor<4x4x4xf32>, tensor<4x4x4xf32>) -> tensor<8x4x4xf32>
  return %2 : tensor<8x4x4xf32>
}

// Left alone: one is not permuted, one is read elsewhere, or twice here, two are before a loop.
// CHECK-LABEL: @stay(
// CHECK-NEXT:    %c0 = arith.constant 0 : index
// CHECK-NEXT:    %c1 = arith.constant 1 : index
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg0)
// CHECK-NEXT:    %1 = "relax.permute_dims"(%arg1)
// CHECK-NEXT:    %2 = "relax.concat"(%0, %arg1) : ({{.*}}) -> tensor<8x4xf32
// CHECK-NEXT:    %3 = "relax.permute_dims"(%arg0)
// CHECK-NEXT:    %4 = "relax.concat"(%3, %1) : ({{.*}}) -> tensor<8x4xf32
// CHECK-NEXT:    %5 = "relax.permute_dims"(%arg0)
// CHECK-NEXT:    %6 = "relax.permute_dims"(%arg0)
// CHECK-NEXT:    %7 = "relax.permute_dims"(%arg0)
// CHECK-NEXT:    %8 = "relax.concat"(%7, %7) : ({{.*}}) -> tensor<8x4xf32
// CHECK-NEXT:    %9 = scf.for %arg2 = %c0 to %c1 step %c1 iter_args(%arg3 = %8) -> (tensor<8x4xf32>) {
// CHECK-NEXT:    %10 = "relax.concat"(%5, %6) : ({{.*}}) -> tensor<8x4xf32
// CHECK-NEXT:    scf.yield %10 : tensor<8x4xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %9, %2, %4, %1
func.func @stay(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>)
    -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = "relax.permute_dims"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relax.permute_dims"(%b) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "relax.concat"(%0, %b) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %3 = "relax.permute_dims"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = "relax.concat"(%3, %1) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %5 = "relax.permute_dims"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %8 = "relax.permute_dims"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %9 = "relax.permute_dims"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %10 = "relax.concat"(%9, %9) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %6 = scf.for %i = %c0 to %c1 step %c1 iter_args(%c = %10) -> (tensor<8x4xf32>) {
    %7 = "relax.concat"(%5, %8) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    scf.yield %7 : tensor<8x4xf32>
  }
  return %6, %2, %4, %1 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x4xf32>
}
