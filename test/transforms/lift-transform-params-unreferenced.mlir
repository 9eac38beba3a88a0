// RUN: relax-opt %s --relax-lift-transform-params | filecheck %s
// RUN: relax-opt %s --relax-lift-transform-params --relax-lift-transform-params | filecheck %s

// A function of which calls were inlined stays where one that nothing calls, and that stays, calls it.
// CHECK-LABEL: @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32> {relax.name = "w.negative"})
// CHECK-LABEL: @helper(
// CHECK-LABEL: @unused(
// CHECK:         call @helper
// CHECK-NOT:   @gone
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = call @helper(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = call @gone(%0, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @helper(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.negative"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.add"(%x, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @gone(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.negative"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.subtract"(%x, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @helper(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
