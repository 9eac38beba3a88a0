// RUN: relax-opt %s --verify-diagnostics --relax-lazy-transform-params

// A transform function by name alone, as TVM has them, says nothing of what it prepares.
// expected-error@+1 {{'func.func' op expected relax.transform_for of the transform function @main_transform_params, got none}}
func.func @main_transform_params(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 0 : i64} {
  return %w : tensor<4xf32>
}
