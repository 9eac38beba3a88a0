// RUN: relax-opt %s --relax-lift-transform-params | filecheck %s

// A call that is lifted as a whole, beside one that returns nothing.
// CHECK-LABEL: @main_transform_params(
// CHECK:         call @twice(
// CHECK-LABEL: @main(
// CHECK-NOT:     call @twice
// CHECK:         call @note(%arg0) : (tensor<4xf32>) -> ()
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = call @twice(%w) : (tensor<4xf32>) -> tensor<4xf32>
  call @note(%x) : (tensor<4xf32>) -> ()
  %1 = "relax.add"(%x, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @twice(%v: tensor<4xf32>) -> tensor<4xf32> attributes {no_inline} {
  %0 = "relax.add"(%v, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @note(tensor<4xf32>)
