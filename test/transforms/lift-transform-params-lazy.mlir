// RUN: relax-opt %s --relax-lift-transform-params | filecheck %s

// What a transform function has computed on a weight that it reads by itself is found, and named after that weight.
// CHECK-LABEL: @t(%arg0: !relax.param_provider) -> (tensor<8x4xf32> {relax.name = "raw.permute_dims.negative"})
// CHECK-LABEL: @main(%arg0: tensor<8x4xf32> {relax.name = "raw.permute_dims.negative"})
// CHECK-NEXT:    return %arg0
func.func @t(%p: !relax.param_provider) -> (tensor<8x4xf32> {relax.name = "w"})
    attributes {relax.num_input = 1 : i64, relax.transform_for = @main} {
  %w = "relax.get_param"(%p) {index = 0 : i64, name = "raw"} : (!relax.param_provider) -> tensor<4x8xf32>
  %e = "relax.exp"(%w) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = "relax.permute_dims"(%w) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = "relax.negative"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = "relax.abs"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
func.func @main(%w: tensor<8x4xf32> {relax.name = "w"}) -> tensor<8x4xf32> attributes {relax.num_input = 0 : i64} {
  %1 = "relax.negative"(%w) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
