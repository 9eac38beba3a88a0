// RUN: relax-opt %s --split-input-file --relax-lazy-transform-params | filecheck %s

// Reads come just before first uses, writes right after definitions; a raw weight is read and handed on at once.
// CHECK-LABEL: @main_transform_params(%arg0: !relax.param_provider, %arg1: !relax.output_sink)
// CHECK-SAME:    relax.num_input = 2 : i64, relax.transform_for = @main
// CHECK-NEXT:    %0 = "relax.get_param"(%arg0) {index = 1 : i64, name = "b"}
// CHECK-NEXT:    %1 = "relax.astype"(%0)
// CHECK-NEXT:    "relax.set_output"(%arg1, %1) {index = 2 : i64, name = "b.astype"}
// CHECK-NEXT:    %2 = "relax.get_param"(%arg0) {index = 0 : i64, name = "a"}
// CHECK-NEXT:    %3 = "relax.exp"(%2)
// CHECK-NEXT:    "relax.set_output"(%arg1, %3) {index = 1 : i64, name = "a.exp"}
// CHECK-NEXT:    %4 = "relax.get_param"(%arg0) {index = 2 : i64, name = "c"}
// CHECK-NEXT:    "relax.set_output"(%arg1, %4) {index = 0 : i64, name = "c"}
// CHECK-NEXT:    return
// Inference and other functions with weights never become lazy.
// CHECK:       @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32> {relax.name = "c"}, %arg2: tensor<4xf32>
// CHECK-SAME:       {relax.name = "a.exp"}, %arg3: tensor<4xf16> {relax.name = "b.astype"})
// CHECK:       @other(%arg0: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
func.func @main_transform_params(%a: tensor<4xf32> {relax.name = "a"}, %b: tensor<4xf32> {relax.name = "b"},
    %c: tensor<4xf32> {relax.name = "c"})
    -> (tensor<4xf32> {relax.name = "c"}, tensor<4xf32> {relax.name = "a.exp"}, tensor<4xf16> {relax.name = "b.astype"})
    attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  %0 = "relax.astype"(%b) {dtype = f16} : (tensor<4xf32>) -> tensor<4xf16>
  %1 = "relax.exp"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %c, %1, %0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf16>
}
func.func @main(%x: tensor<4xf32>, %c: tensor<4xf32> {relax.name = "c"}, %a: tensor<4xf32> {relax.name = "a.exp"},
    %b: tensor<4xf16> {relax.name = "b.astype"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  return %c : tensor<4xf32>
}
func.func @other(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<4xf32>
}

// -----

// Results that come from a call of a private function, from control flow and from constants; private functions keep
// arguments.
// CHECK-LABEL: @called_transform_params(%arg0: !relax.param_provider, %arg1: !relax.output_sink)
// CHECK:         %[[W:.*]] = "relax.get_param"
// CHECK-NEXT:    %[[P:.*]]:2 = call @parts(%[[W]])
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[P]]#0) {index = 0 : i64, name = "weight0"}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[P]]#1) {index = 1 : i64, name = "weight1"}
// CHECK-NEXT:    %[[I:.*]] = scf.if
// CHECK:         "relax.set_output"(%arg1, %[[I]]) {index = 2 : i64, name = "weight2"}
// CHECK:       func.func private @parts(%arg0: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
func.func @called_transform_params(%w: tensor<4xf32> {relax.name = "w"})
    -> (tensor<2xf32>, tensor<2xf32>, tensor<4xf32>, tensor<f32>)
    attributes {relax.num_input = 0 : i64, relax.transform_for = @called} {
  %true = arith.constant true
  %p:2 = call @parts(%w) : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %i = scf.if %true -> tensor<4xf32> {
    %e = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  } else {
    scf.yield %w : tensor<4xf32>
  }
  %c = "relax.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  return %p#0, %p#1, %i, %c : tensor<2xf32>, tensor<2xf32>, tensor<4xf32>, tensor<f32>
}
func.func private @parts(%w: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0:2 = "relax.split"(%w) {sections = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
}
func.func @called(%a: tensor<2xf32>, %b: tensor<2xf32>, %c: tensor<4xf32>, %d: tensor<f32>)
    attributes {relax.num_input = 0 : i64} {
  return
}

// -----

// One weight and one result, both passed through: what lifting makes when there is nothing to lift.
// CHECK-LABEL: @identity_transform_params(%arg0: !relax.param_provider, %arg1: !relax.output_sink)
// CHECK-NEXT:    %[[W:.*]] = "relax.get_param"(%arg0) {index = 0 : i64, name = "w"}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[W]]) {index = 0 : i64, name = "w"}
// CHECK-NEXT:    %[[V:.*]] = "relax.get_param"(%arg0) {index = 1 : i64, name = "v"}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[V]]) {index = 1 : i64, name = "v"}
// CHECK-NEXT:    return
func.func @identity_transform_params(%w: tensor<4xf32> {relax.name = "w"}, %v: tensor<4xf32> {relax.name = "v"})
    -> (tensor<4xf32> {relax.name = "w"}, tensor<4xf32> {relax.name = "v"})
        attributes {relax.num_input = 0 : i64, relax.transform_for = @identity} {
  return %w, %v : tensor<4xf32>, tensor<4xf32>
}
func.func @identity(%w: tensor<4xf32> {relax.name = "w"}, %v: tensor<4xf32> {relax.name = "v"})
    attributes {relax.num_input = 0 : i64} {
  return
}

// -----

// Results that one op with several results gives, and a result that is handed over twice; the read comes before all of
// them.
// CHECK-LABEL: @split_transform_params(%arg0: !relax.param_provider, %arg1: !relax.output_sink)
// CHECK-NEXT:    %[[W:.*]] = "relax.get_param"(%arg0)
// CHECK-NEXT:    %[[S:.*]]:2 = "relax.split"(%[[W]])
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[S]]#0) {index = 0 : i64, name = "a"}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[S]]#0) {index = 2 : i64, name = "c"}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[S]]#1) {index = 1 : i64, name = "b"}
// CHECK-NEXT:    return
func.func @split_transform_params(%w: tensor<4xf32> {relax.name = "w"})
    -> (tensor<2xf32> {relax.name = "a"}, tensor<2xf32> {relax.name = "b"}, tensor<2xf32> {relax.name = "c"})
        attributes {relax.num_input = 0 : i64, relax.transform_for = @split} {
  %0:2 = "relax.split"(%w) {sections = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %0#0, %0#1, %0#0 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
func.func @split(%a: tensor<2xf32> {relax.name = "a"}, %b: tensor<2xf32> {relax.name = "b"}, %c: tensor<2xf32>
    {relax.name = "c"}) attributes {relax.num_input = 0 : i64} {
  return
}

// -----

// Sizes of weights may be symbols, that no argument binds any more: a read binds them.
// CHECK-LABEL: @symbolic_transform_params(%arg0: !relax.param_provider, %arg1: !relax.output_sink)
// CHECK-NEXT:    %[[W:.*]] = "relax.get_param"(%arg0) {index = 0 : i64, name = "w"} : (!relax.param_provider)
// CHECK-SAME:    -> tensor<?x4xf32, {sym = ["m"]}>
// CHECK-NEXT:    %[[T:.*]] = "relax.permute_dims"(%[[W]])
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[T]]) {index = 0 : i64, name = "weight0"}
// CHECK-SAME:    : (!relax.output_sink, tensor<4x?xf32, {sym = ["m"]}>) -> ()
func.func @symbolic_transform_params(%w: tensor<?x4xf32, {sym = ["m"]}> {relax.name = "w"})
    -> tensor<4x?xf32, {sym = ["m"]}>
    attributes {relax.num_input = 0 : i64, relax.transform_for = @symbolic} {
  %0 = "relax.permute_dims"(%w) : (tensor<?x4xf32, {sym = ["m"]}>) -> tensor<4x?xf32, {sym = ["m"]}>
  return %0 : tensor<4x?xf32, {sym = ["m"]}>
}
func.func @symbolic(%w: tensor<4x?xf32, {sym = ["m"]}>) attributes {relax.num_input = 0 : i64} {
  return
}

// -----

// A transform function with run-time inputs keeps them; without relax.num_input all its arguments are weights.
// CHECK-LABEL: @with_input(%arg0: tensor<4xf32> {relax.name = "scale"}, %arg1: !relax.param_provider,
// CHECK-SAME: %arg2: !relax.output_sink)
// CHECK-SAME:    relax.num_input = 3 : i64
// CHECK-LABEL: @no_attribute(%arg0: !relax.param_provider, %arg1: !relax.output_sink)
func.func @with_input(%s: tensor<4xf32> {relax.name = "scale"}, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64, relax.transform_for = @other} {
  %0 = "relax.multiply"(%w, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @no_attribute(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.transform_for = @another} {
  return %w : tensor<4xf32>
}
func.func @other(%w: tensor<4xf32>) attributes {relax.num_input = 0 : i64} {
  return
}
func.func @another(%w: tensor<4xf32>) attributes {relax.num_input = 0 : i64} {
  return
}

// -----

// A transform function that is called stays there for its callers, as a private function that is none.
// CHECK-LABEL: func.func @main_transform_params(%arg0: !relax.param_provider, %arg1: !relax.output_sink)
// CHECK-LABEL: func.func private @main_transform_params_called(%arg0: tensor<4xf32> {relax.name = "w"})
// CHECK-SAME: -> (tensor<4xf32> {relax.name = "w"}) {
// CHECK-LABEL: func.func @all(
// CHECK:         call @main_transform_params_called
func.func @main_transform_params(%w: tensor<4xf32> {relax.name = "w"}) -> (tensor<4xf32> {relax.name = "w"})
    attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<4xf32>
}
func.func @all(%w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @main_transform_params(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @main(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
