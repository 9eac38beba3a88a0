// RUN: relax-opt %s --relax-to-linalg --split-input-file | filecheck %s

// What an op's inference leaves open is checked where the op is, and its operands have the sizes from there on.
func.func @product(%x: tensor<3x?xf32>, %y: tensor<8x4xf32>) -> tensor<3x4xf32> {
  %0 = "relax.matmul"(%x, %y) : (tensor<3x?xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// CHECK: relax.checks = ["{{.*}}'relax.matmul' op expected equal inner dimensions, got [3, ?] and [8, 4]:
// CHECK-SAME: expected dimension 1 of lhs to be 8, got {d0_1}"]
// CHECK-LABEL: func.func @product(
// CHECK: %[[K:.*]] = tensor.dim
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[K]]
// CHECK: call @relax_check(%[[SAME]]
// CHECK: tensor.cast %{{.*}} : tensor<3x?xf32> to tensor<3x8xf32>

// -----

// A step that is a symbol is positive.
func.func @steps(%x: tensor<?xf32, {sym = ["n"]}>, %y: tensor<?xf32, {sym = ["m"]}>)
    -> tensor<?xi64, {sym = ["(n + m - 1) // m"]}> {
  %0 = "relax.arange"() {start = [0], end = ["n"], step = ["m"]} : () -> tensor<?xi64, {sym = ["(n + m - 1) // m"]}>
  return %0 : tensor<?xi64, {sym = ["(n + m - 1) // m"]}>
}

// CHECK: relax.checks = ["{{.*}}'relax.arange' op expected a positive step, got m:
// CHECK-SAME: expected 'm' to be at least 1, got {m}"

// -----

// Sizes that only a type says are no negative numbers.
func.func @negative(%x: tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n - 3"]}> {
  %0 = "relax.full"() {value = 1.0 : f64} : () -> tensor<?xf32, {sym = ["n - 3"]}>
  return %0 : tensor<?xf32, {sym = ["n - 3"]}>
}

// CHECK: relax.checks = ["{{.*}}'relax.full' op expected a result of sizes of 0 or more, got tensor<n - 3xf32>:
// CHECK-SAME: expected 'n - 3' to be at least 0, got {n - 3}"]

// -----

// Types that prove everything need no check.
func.func @proven(%x: tensor<?x8xf32, {sym = ["n"]}>, %y: tensor<8x4xf32>) -> tensor<?x2x2xf32, {sym = ["n"]}> {
  %0 = "relax.matmul"(%x, %y) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<8x4xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
  %1 = "relax.reshape"(%0) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x2x2xf32, {sym = ["n"]}>
  return %1 : tensor<?x2x2xf32, {sym = ["n"]}>
}

// CHECK-LABEL: func.func @proven(
// CHECK-NOT: relax_check
