// RUN: relax-opt %s --split-input-file --relax-lazy-set-output | filecheck %s

// Each result is handed over right after it is there, under its index and name, once per index; the sink follows the
// inputs.
// CHECK-LABEL: @writes(%arg0: tensor<4xf32> {relax.name = "x"}, %arg1: !relax.output_sink, %arg2: tensor<4xf32>
// CHECK-SAME: {relax.name = "w"})
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
    -> (tensor<4xf32> {relax.name = "first"}, tensor<4xf32>, tensor<4xf32> {relax.name = "raw"}, tensor<4xf32>,
        tensor<4xf32>)
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
func.func @kinds(%w: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<f32>)
    attributes {relax.num_input = 0 : i64} {
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

// -----

// Results of branches and loops are handed over after them, before what uses them next; those of one op in order.
// CHECK-LABEL: @control_flow(
// CHECK-NEXT:    %[[I:.*]]:2 = scf.if
// CHECK-NOT:       set_output
// CHECK:         {{^ +}$}}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[I]]#0) {index = 1 : i64}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[I]]#1) {index = 0 : i64}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[I]]#1) {index = 2 : i64}
// CHECK-NEXT:    arith.constant 0
// CHECK-NEXT:    arith.constant 1
// CHECK-NEXT:    %[[F:.*]] = scf.for
// CHECK-NOT:       set_output
// CHECK:         {{^ +}$}}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[F]]) {index = 3 : i64}
// CHECK-NEXT:    return
func.func @control_flow(%c: i1, %w: tensor<4xf32> {relax.name = "w"})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {relax.num_input = 1 : i64} {
  %0:2 = scf.if %c -> (tensor<4xf32>, tensor<4xf32>) {
    %e = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e, %w : tensor<4xf32>, tensor<4xf32>
  } else {
    scf.yield %w, %w : tensor<4xf32>, tensor<4xf32>
  }
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %1 = scf.for %i = %i0 to %i1 step %i1 iter_args(%k = %0#0) -> (tensor<4xf32>) {
    %n = "relax.exp"(%k) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %0#1, %0#0, %0#1, %1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// What is used after it is handed over stays as it is: a sink reads. An input that is returned is handed over, too.
// CHECK-LABEL: @used_later(
// CHECK-NEXT:    "relax.set_output"(%arg1, %arg0) {index = 2 : i64}
// CHECK-NEXT:    %[[A:.*]] = "relax.exp"(%arg0)
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[A]]) {index = 0 : i64}
// CHECK-NEXT:    %[[B:.*]] = "relax.exp"(%[[A]])
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[B]]) {index = 1 : i64}
// CHECK-NEXT:    return
func.func @used_later(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Results with symbolic dimensions, and none at all: nothing to hand over changes nothing.
// CHECK-LABEL: @symbolic(%arg0: tensor<?xf32, {sym = ["n"]}>, %arg1: !relax.output_sink)
// CHECK:         "relax.set_output"(%arg1, %{{.*}}) {index = 0 : i64}
// CHECK-SAME:      : (!relax.output_sink, tensor<?xf32, {sym = ["n * 2"]}>) -> ()
// CHECK-LABEL: @nothing(%arg0: tensor<4xf32>) attributes {relax.num_input = 0 : i64}
func.func @symbolic(%x: tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n * 2"]}>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.concat"(%x, %x) : (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>)
      -> tensor<?xf32, {sym = ["n * 2"]}>
  return %0 : tensor<?xf32, {sym = ["n * 2"]}>
}
func.func @nothing(%w: tensor<4xf32>) attributes {relax.num_input = 0 : i64} {
  return
}

// -----

// What is handed over is no state any more; a caller's copy has none, either.
// CHECK-LABEL: @updates(
// CHECK-NOT:     relax.state
// CHECK:         "relax.set_output"(%arg1, %0) {index = 0 : i64, name = "count"}
// CHECK-LABEL: func.func private @updates_called(
// CHECK-NOT:     relax.state
// CHECK:         return
func.func @updates(%c: tensor<4xf32> {relax.name = "count"}) -> (tensor<4xf32> {relax.name = "count"})
    attributes {relax.num_input = 1 : i64, relax.state = {count = dense<0.0> : tensor<4xf32>}} {
  %0 = "relax.exp"(%c) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @caller(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @updates(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
