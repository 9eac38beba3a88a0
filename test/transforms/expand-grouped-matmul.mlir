// RUN: relax-opt %s --relax-expand-grouped-matmul --verify-semantics | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-expand-grouped-matmul,relax-canonicalize)' \
// RUN:   | filecheck %s --check-prefix=SIMPLE

// Rows are zero but in the place of their group; matrices that were side by side are one below the other.
// CHECK-LABEL: @groups(
// CHECK:         %[[BEGINS:.*]] = "relax.concat"
// CHECK:         %[[FROM:.*]] = "relax.greater_equal"(%{{.*}}, %[[BEGINS]])
// CHECK:         %[[TO:.*]] = "relax.less"(%{{.*}}, %arg2)
// CHECK:         "relax.logical_and"(%[[FROM]], %[[TO]])
// CHECK:         %[[PLACED:.*]] = "relax.where"({{.*}}) : ({{.*}}) -> tensor<?x3x4xf32, {sym = ["n"]}>
// CHECK:         %[[ROWS:.*]] = "relax.reshape"(%[[PLACED]])
// CHECK:         %[[PARTS:.*]] = "relax.permute_dims"({{.*}}) {axes = array<i64: 1, 0, 2>}
// CHECK:         %[[MATRIX:.*]] = "relax.reshape"(%[[PARTS]]) : (tensor<3x4x2xf32>) -> tensor<12x2xf32>
// CHECK:         "relax.matmul"(%[[ROWS]], %[[MATRIX]])
func.func @groups(%x: tensor<?x4xf32, {sym = ["n"]}>, %w: tensor<4x6xf32>, %ends: tensor<3xi64>)
    -> tensor<?x2xf32, {sym = ["n"]}> {
  %0 = "relax.grouped_matmul"(%x, %w, %ends)
      : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x6xf32>, tensor<3xi64>) -> tensor<?x2xf32, {sym = ["n"]}>
  return %0 : tensor<?x2xf32, {sym = ["n"]}>
}

// Matrices of experts as PyTorch has them are permuted once.
// SIMPLE-LABEL: @experts(
// SIMPLE:         %[[PARTS:.*]] = "relax.permute_dims"(%arg1) {axes = array<i64: 0, 2, 1>}
// SIMPLE:         "relax.reshape"(%[[PARTS]]) : (tensor<3x4x2xf32>) -> tensor<12x2xf32>
// SIMPLE-NOT:     "relax.permute_dims"
func.func @experts(%x: tensor<?x4xf32, {sym = ["n"]}>, %w: tensor<3x2x4xf32>, %ends: tensor<3xi64>)
    -> tensor<?x2xf32, {sym = ["n"]}> {
  %0 = "relax.reshape"(%w) : (tensor<3x2x4xf32>) -> tensor<6x4xf32>
  %1 = "relax.permute_dims"(%0) {axes = array<i64: 1, 0>} : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %2 = "relax.grouped_matmul"(%x, %1, %ends)
      : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x6xf32>, tensor<3xi64>) -> tensor<?x2xf32, {sym = ["n"]}>
  return %2 : tensor<?x2xf32, {sym = ["n"]}>
}
