// RUN: relax-opt %s --relax-lazy-get-input --relax-lazy-set-output | filecheck %s

// What a tuple has no names for goes by its name, or that of its position, and the positions in it; behind it names
// stay.
// CHECK-LABEL: @nested(
// CHECK-SAME:    %arg0: !relax.param_provider, %arg1: !relax.output_sink)
// CHECK-NEXT:    %[[A:.*]] = "relax.get_param"(%arg0) {index = 0 : i64, name = "p.0"}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[A]]) {index = 1 : i64, name = "r.1.0"}
// CHECK-NEXT:    %[[B:.*]] = "relax.get_param"(%arg0) {index = 1 : i64, name = "p.1.0"}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[B]]) {index = 0 : i64, name = "r.0"}
// CHECK-NEXT:    %[[C:.*]] = "relax.get_param"(%arg0) {index = 2 : i64, name = "weight1"}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[C]]) {index = 2 : i64, name = "c"}
// CHECK-NEXT:    return
func.func @nested(%p: tuple<tensor<4xf32>, tuple<tensor<2xf32>>> {relax.name = "p"}, %c: tensor<3xf32>)
    -> (tuple<tensor<2xf32>, tuple<tensor<4xf32>>> {relax.name = "r"}, tensor<3xf32> {relax.name = "c"})
    attributes {relax.num_input = 0 : i64} {
  %0:2 = builtin.unrealized_conversion_cast %p
    : tuple<tensor<4xf32>, tuple<tensor<2xf32>>> to tensor<4xf32>, tuple<tensor<2xf32>>
  %1 = builtin.unrealized_conversion_cast %0#1 : tuple<tensor<2xf32>> to tensor<2xf32>
  %2 = builtin.unrealized_conversion_cast %0#0 : tensor<4xf32> to tuple<tensor<4xf32>>
  %3 = builtin.unrealized_conversion_cast %1, %2
    : tensor<2xf32>, tuple<tensor<4xf32>> to tuple<tensor<2xf32>, tuple<tensor<4xf32>>>
  return %3, %c : tuple<tensor<2xf32>, tuple<tensor<4xf32>>>, tensor<3xf32>
}

// A tuple that something needs as a whole is put together again.
// CHECK-LABEL: @whole(
// CHECK:         %[[W:.*]] = "relax.get_param"
// CHECK-NEXT:    %[[P:.*]] = builtin.unrealized_conversion_cast %[[W]]
// CHECK-NEXT:    call @outside(%[[P]])
func.func @whole(%p: tuple<tensor<4xf32>> {relax.name = "p"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  %0 = call @outside(%p) : (tuple<tensor<4xf32>>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @outside(tuple<tensor<4xf32>>) -> tensor<4xf32>
