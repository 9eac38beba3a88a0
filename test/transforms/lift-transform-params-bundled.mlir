// RUN: relax-opt %s --relax-lift-transform-params --relax-bundle-model-params --relax-lift-transform-params \
// RUN:   | filecheck %s
// RUN: relax-opt %s --relax-lift-transform-params --relax-bundle-model-params | filecheck %s --check-prefix=BUNDLED

// Weights that were lifted and then bundled are found in the transform function again, by the names that the tuple
// keeps.
// CHECK-LABEL: @main_transform_params(%arg0: tuple<tensor<4xf32>, tensor<4xf32>>
// CHECK-SAME:    -> (tensor<4xf32> {relax.name = "b"}, tensor<4xf32> {relax.name = "w.exp"})
// CHECK-NEXT:    %0:2 = builtin.unrealized_conversion_cast %arg0
// CHECK-NEXT:    %1 = "relax.exp"(%0#0)
// CHECK-NEXT:    return %0#1, %1
// CHECK-LABEL: @main(%arg0: tensor<4xf32> {relax.name = "x"}, %arg1: tensor<4xf32> {relax.name = "b"},
// CHECK-SAME: %arg2: tensor<4xf32> {relax.name = "w.exp"})
// CHECK-NOT:     cast
// BUNDLED-LABEL: @main(
// BUNDLED-SAME:    relax.bundled = [{relax.name = "b"}, {relax.name = "w.exp"}]
func.func @main(%x: tensor<4xf32> {relax.name = "x"}, %w: tensor<4xf32> {relax.name = "w"}, %b: tensor<4xf32>
    {relax.name = "b"}) -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.add"(%x, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "relax.multiply"(%1, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// A tuple that inference needs as a whole stays one, and the result says what is in it.
// CHECK-LABEL: @whole_transform_params(
// CHECK-SAME:    -> (tuple<tensor<4xf32>> {relax.bundled = [{relax.name = "w"}], relax.name = "p"})
// CHECK-LABEL: @whole(
func.func @whole(%x: tensor<4xf32> {relax.name = "x"}, %p: tuple<tensor<4xf32>>
    {relax.name = "p", relax.bundled = [{relax.name = "w"}]}) -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
  %0 = call @outside(%p) : (tuple<tensor<4xf32>>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @outside(tuple<tensor<4xf32>>) -> tensor<4xf32>
