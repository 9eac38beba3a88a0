// RUN: relax-opt %s --verify-diagnostics --relax-bundle-model-params=tuple-name=x

// expected-error@+1 {{'func.func' op expected a name of its own for the weights, got 'x', an input of @main}}
func.func @main(%x: tensor<4xf32> {relax.name = "x"}, %a: tensor<4xf32> {relax.name = "a"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  return %x : tensor<4xf32>
}
