// RUN: relax-opt %s --relax-bundle-model-params | filecheck %s

// The type of a function of several blocks follows the one that returns.
// CHECK: @blocks(%arg0: tensor<4xf32>, %arg1: tuple<tensor<4xf32>>{{.*}}) -> tensor<4xf32>
func.func @blocks(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  cf.br ^end(%w : tensor<4xf32>)
^end(%a: tensor<4xf32>):
  %0 = "relax.add"(%x, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
