// RUN: relax-opt %s --split-input-file --relax-lazy-set-output | filecheck %s

// Each result is handed over right after it is there, under its index and name, once per index; the sink follows the inputs.
// CHECK-LABEL: @writes(%arg0: tensor<4xf32> {relax.name = "x"}, %arg1: !relax.output_sink, %arg2: tensor<4xf32> {relax.name = "w"})
// CHECK-NOT:     ->
// CHECK-SAME:    relax.num_input = 2 : i64
// CHECK-NEXT:    "relax.set_output"(%arg1, %arg0) {index = 3 : i64}
// CHECK-NEXT:    "relax.set_output"(%arg1, %arg2) {index = 2 : i64, name = "raw"}
// CHECK-NEXT:    %0 = "relax.exp"(%arg2)
// CHECK-NEXT:    "relax.set_output"(%arg1, %0) {index = 0 : i64, name = "first"}
// CHECK-NEXT:    "relax.set_output"(%arg1, %0) {index = 4 : i64}
// CHECK-NEXT:    %1 = "relax.add"(%0, %arg0)
// CHECK-NEXT:    "relax.set_output"(%arg1, %1) {index = 1 : i64}
// CHECK-NEXT:    return{{$}}
func.func @writes(%x: tensor<4xf32> {relax.name = "x"}, %w: tensor<4xf32> {relax.name = "w"})
    -> (tensor<4xf32> {relax.name = "first"}, tensor<4xf32>, tensor<4xf32> {relax.name = "raw"}, tensor<4xf32>, tensor<4xf32>)
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.add"(%0, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %w, %x, %0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Results of calls, of branches and of constants are values like others.
// CHECK-LABEL: @kinds
// CHECK-NEXT:    relax.constant
// CHECK-NEXT:    "relax.set_output"(%arg0, %0) {index = 2 : i64}
// CHECK-NEXT:    %1:2 = call @parts(%arg1)
// CHECK-NEXT:    "relax.set_output"(%arg0, %1#0) {index = 1 : i64}
// CHECK-NEXT:    "relax.set_output"(%arg0, %1#1) {index = 0 : i64}
// CHECK-NEXT:    return
func.func @kinds(%w: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<f32>) attributes {relax.num_input = 0 : i64} {
  %c = "relax.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0:2 = call @parts(%w) : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %0#1, %0#0, %c : tensor<2xf32>, tensor<2xf32>, tensor<f32>
}
func.func private @parts(%w: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0:2 = "relax.split"(%w) {sections = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
}

// -----

// Both lazy passes: the sink does not come between provider and use, in either order.
// CHECK-LABEL: @both(%arg0: !relax.param_provider, %arg1: !relax.output_sink)
// CHECK-NEXT:    %0 = "relax.get_param"(%arg0)
// CHECK-NEXT:    "relax.set_output"(%arg1, %0)
func.func @both(%p: !relax.param_provider) -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.get_param"(%p) {index = 0 : i64, name = "w"} : (!relax.param_provider) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
