// RUN: relax-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(relax-lift-transform-params{shared=true})'

func.func @a(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<4xf32>
}
// expected-error@+1 {{'func.func' op expected one type for the shared weight 'w', got 'tensor<4xf32>' and 'tensor<5xf32>'}}
func.func @b(%w: tensor<5xf32> {relax.name = "w"}) -> tensor<5xf32> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<5xf32>
}

// -----

func.func @c(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<4xf32>
}
// expected-error@+1 {{'func.func' op expected one type for the shared weight 'w', got 'tensor<4xf32>' and 'tensor<4xf16>'}}
func.func @d(%w: tensor<4xf16> {relax.name = "w"}) -> tensor<4xf16> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<4xf16>
}
