// RUN: relax-opt %s --split-input-file --relax-lift-transform-params --allow-unregistered-dialect | filecheck %s
// RUN: relax-opt %s --split-input-file --relax-lift-transform-params --relax-lift-transform-params \
// RUN:     --allow-unregistered-dialect | filecheck %s

// A weight used through an op moves out with the op; one used as it is passes through; one not used at all vanishes.
// CHECK-LABEL: @basic_transform_params
// CHECK-SAME:    %arg0: tensor<8x4xf32> {relax.name = "q.weight"}, %arg1: tensor<8xf32> {relax.name = "q.bias"})
// CHECK-SAME:    -> (tensor<8xf32> {relax.name = "q.bias"}, tensor<4x8xf32> {relax.name = "q.weight.permute_dims"})
// CHECK-SAME:    relax.num_input = 0 : i64, relax.transform_for = @basic
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg0)
// CHECK-NEXT:    return %arg1, %0
// CHECK:       @basic(%arg0: tensor<?x4xf32, {sym = ["n"]}> {relax.name = "x"}, %arg1: tensor<8xf32>
// CHECK-SAME:       {relax.name = "q.bias"},
// CHECK-SAME:    %arg2: tensor<4x8xf32> {relax.name = "q.weight.permute_dims"})
// CHECK-SAME:    relax.num_input = 1 : i64
// CHECK-NEXT:    %0 = "relax.matmul"(%arg0, %arg2)
// CHECK-NEXT:    %1 = "relax.add"(%0, %arg1)
// CHECK-NEXT:    return %1
func.func @basic(%x: tensor<?x4xf32, {sym = ["n"]}> {relax.name = "x"}, %w: tensor<8x4xf32> {relax.name = "q.weight"},
                 %b: tensor<8xf32> {relax.name = "q.bias"}, %u: tensor<3xf32> {relax.name = "unused"})
    -> tensor<?x8xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %t = "relax.permute_dims"(%w) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %y = "relax.matmul"(%x, %t) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  %z = "relax.add"(%y, %b) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  return %z : tensor<?x8xf32, {sym = ["n"]}>
}

// -----

// Lifted values that are returned, one of them twice, and a raw weight that is: all are prepared weights of inference.
// CHECK-LABEL: @returned_transform_params
// CHECK:         %0 = "relax.exp"(%arg0)
// CHECK-NEXT:    %1:2 = "relax.split"(%arg0)
// CHECK-NEXT:    return %arg0, %0, %1#1
// CHECK:       @returned(%arg0: tensor<4xf32> {relax.name = "w"}, %arg1: tensor<4xf32> {relax.name = "w.exp"},
// CHECK-SAME:       %arg2: tensor<2xf32> {relax.name = "w.split.1"})
// CHECK-SAME:    -> (tensor<4xf32>, tensor<4xf32> {relax.name = "again"}, tensor<4xf32>, tensor<2xf32>)
// CHECK-NEXT:    return %arg1, %arg1, %arg0, %arg2
func.func @returned(%w: tensor<4xf32> {relax.name = "w"})
    -> (tensor<4xf32>, tensor<4xf32> {relax.name = "again"}, tensor<4xf32>, tensor<2xf32>)
        attributes {relax.num_input = 0 : i64} {
  %e = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %s:2 = "relax.split"(%w) {sections = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %e, %e, %w, %s#1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
}

// -----

// Nothing to lift: the transform function passes the weights through.
// CHECK-LABEL: @nothing_transform_params(%arg0: tensor<4xf32> {relax.name = "w"}) -> (tensor<4xf32> {relax.name = "w"})
// CHECK-NEXT:    return %arg0
// CHECK:       @nothing(%arg0: tensor<4xf32>, %arg1: tensor<4xf32> {relax.name = "w"})
// CHECK-NEXT:    %0 = "relax.add"(%arg0, %arg1)
func.func @nothing(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.add"(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Without weights, and without relax.num_input, nothing happens.
// CHECK-NOT: transform_params
// CHECK: @no_weights
// CHECK: @no_num_input
func.func @no_weights(%x: tensor<4xf32>) -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @no_num_input(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Names: chains of ops, several sources, equal names, and arguments without a name.
// CHECK-LABEL: @names_transform_params
// CHECK-SAME:    tensor<4x4xf16> {relax.name = "a.weight.permute_dims.astype"}
// CHECK-SAME:    tensor<8x4xf32> {relax.name = "a.weight+b.weight.concat"}
// CHECK-SAME:    tensor<4xf32> {relax.name = "weight3.exp"}
// CHECK-SAME:    tensor<2x8xf32> {relax.name = "a.weight.reshape"}
// CHECK-SAME:    tensor<8x2xf32> {relax.name = "a.weight.reshape.1"}
func.func @names(%x: tensor<4xf32> {relax.name = "x"}, %a: tensor<4x4xf32> {relax.name = "a.weight"},
    %b: tensor<4x4xf32> {relax.name = "b.weight"}, %c: tensor<4xf32>)
    -> (tensor<4x4xf16>, tensor<8x4xf32>, tensor<4xf32>, tensor<2x8xf32>, tensor<8x2xf32>)
        attributes {relax.num_input = 1 : i64} {
  %t = "relax.permute_dims"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %h = "relax.astype"(%t) {dtype = f16} : (tensor<4x4xf32>) -> tensor<4x4xf16>
  %ab = "relax.concat"(%a, %b) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %e = "relax.exp"(%c) : (tensor<4xf32>) -> tensor<4xf32>
  %r0 = "relax.reshape"(%a) : (tensor<4x4xf32>) -> tensor<2x8xf32>
  %r1 = "relax.reshape"(%a) : (tensor<4x4xf32>) -> tensor<8x2xf32>
  return %h, %ab, %e, %r0, %r1 : tensor<4x4xf16>, tensor<8x4xf32>, tensor<4xf32>, tensor<2x8xf32>, tensor<8x2xf32>
}

// -----

// A prepared weight never takes the name of a raw weight or of an input.
// CHECK-LABEL: @taken_transform_params
// CHECK-SAME:    -> (tensor<4xf32> {relax.name = "w.exp"}, tensor<4xf32> {relax.name = "w.exp.1"}, tensor<4xf32>
// CHECK-SAME:    {relax.name = "w.abs.1"})
func.func @taken(%x: tensor<4xf32> {relax.name = "w.abs"}, %w: tensor<4xf32> {relax.name = "w"}, %e: tensor<4xf32>
    {relax.name = "w.exp"})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.abs"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %e, %1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// The same computation twice is prepared once.
// CHECK-LABEL: @twice_transform_params
// CHECK-COUNT-1: relax.permute_dims
// CHECK:       @twice(%arg0: tensor<2x4xf32>, %arg1: tensor<4x8xf32> {relax.name = "w.permute_dims"})
// CHECK-NEXT:    %0 = "relax.matmul"(%arg0, %arg1)
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %arg1)
func.func @twice(%x: tensor<2x4xf32>, %w: tensor<8x4xf32> {relax.name = "w"}) -> (tensor<2x8xf32>, tensor<2x8xf32>)
    attributes {relax.num_input = 1 : i64} {
  %t0 = "relax.permute_dims"(%w) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %y0 = "relax.matmul"(%x, %t0) : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %t1 = "relax.permute_dims"(%w) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %y1 = "relax.matmul"(%x, %t1) : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  return %y0, %y1 : tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// What comes from constants alone is computed on both sides, and is no weight; what only weights needed leaves
// inference.
// CHECK-LABEL: @constants_transform_params
// CHECK:         relax.constant
// CHECK:         relax.multiply
// CHECK:       @constants(%arg0: tensor<4xf32>, %arg1: tensor<4xf32> {relax.name = "w.multiply"})
// CHECK-NEXT:    %0 = "relax.constant"() {value = dense<2.000000e+00>
// CHECK-NEXT:    %1 = "relax.exp"(%0)
// CHECK-NEXT:    %2 = "relax.add"(%arg0, %1)
// CHECK-NEXT:    %3 = "relax.add"(%2, %arg1)
// CHECK-NEXT:    return
func.func @constants(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %only = "relax.full"() {value = 3.0 : f64} : () -> tensor<4xf32>
  %c = "relax.constant"() {value = dense<2.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %e = "relax.exp"(%c) : (tensor<4xf32>) -> tensor<4xf32>
  %v = "relax.multiply"(%w, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %u = "relax.multiply"(%v, %only) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = "relax.add"(%x, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %z = "relax.add"(%y, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}

// -----

// stop_lift_params is a barrier, and stays one for the next run.
// CHECK-LABEL: @stop_transform_params
// CHECK-NOT:     relax.exp
// CHECK:       @stop(%arg0: tensor<4xf32> {relax.name = "w.abs"})
// CHECK-NEXT:    %0 = "relax.stop_lift_params"(%arg0)
// CHECK-NEXT:    %1 = "relax.exp"(%0)
func.func @stop(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  %0 = "relax.abs"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.stop_lift_params"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relax.exp"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// A barrier inside of a callee or a branch counts too: what is before it moves out, what is behind it stays.
// CHECK-LABEL: @hidden_stop_transform_params
// CHECK-SAME:    -> (tensor<4xf32> {relax.name = "w"}, tensor<4xf32> {relax.name = "w.exp"})
// CHECK:       @hidden_stop(
// CHECK:         %[[S:.*]] = "relax.stop_lift_params"(%arg1)
// CHECK-NEXT:    "relax.abs"(%[[S]])
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      "relax.stop_lift_params"(%arg0)
func.func @hidden_stop(%w: tensor<4xf32> {relax.name = "w"}) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {relax.num_input = 0 : i64} {
  %true = arith.constant true
  %0 = func.call @stopping(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = scf.if %true -> tensor<4xf32> {
    %s = "relax.stop_lift_params"(%w) : (tensor<4xf32>) -> tensor<4xf32>
    %a = "relax.abs"(%s) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  } else {
    scf.yield %w : tensor<4xf32>
  }
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func private @stopping(%w: tensor<4xf32>) -> tensor<4xf32> {
  %e = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %s = "relax.stop_lift_params"(%e) : (tensor<4xf32>) -> tensor<4xf32>
  %a = "relax.abs"(%s) : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// Other attributes of weights and inputs stay with them.
// CHECK-LABEL: @attributes_transform_params(%arg0: tensor<4xf32> {my.note = "kept", relax.name = "weight1"},
// CHECK-SAME: %arg1: tensor<4xf32> {my.note = "gone", relax.name = "v"})
// CHECK:       @attributes(%arg0: tensor<4xf32> {my.note = "input"}, %arg1: tensor<4xf32>
// CHECK-SAME:       {my.note = "kept", relax.name = "weight1"}, %arg2: tensor<4xf32> {relax.name = "v.exp"})
func.func @attributes(%x: tensor<4xf32> {my.note = "input"}, %w: tensor<4xf32> {my.note = "kept"}, %v: tensor<4xf32>
    {my.note = "gone", relax.name = "v"})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {relax.num_input = 1 : i64} {
  %e = "relax.exp"(%v) : (tensor<4xf32>) -> tensor<4xf32>
  return %x, %w, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Weights inside of a private callee: the call is inlined where that brings weight math to light, through several
// levels.
// CHECK-LABEL: @callee_transform_params
// CHECK:         %0 = "relax.permute_dims"(%arg0)
// CHECK-NEXT:    return %0
// CHECK:       @callee(%arg0: tensor<2x4xf32>, %arg1: tensor<4x4xf32> {relax.name = "w.permute_dims"})
// CHECK-NEXT:    %0 = "relax.matmul"(%arg0, %arg1)
// CHECK-NEXT:    %1 = "relax.matmul"(%0, %arg1)
// CHECK-NOT:   private
func.func @callee(%x: tensor<2x4xf32>, %w: tensor<4x4xf32> {relax.name = "w"}) -> tensor<2x4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = call @layers(%x, %w) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
func.func private @layers(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %0 = call @layer(%x, %w) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = call @layer(%0, %w) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %t = "relax.permute_dims"(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = "relax.matmul"(%x, %t) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// A call of a pure function on weights alone is lifted as a call, several results and all.
// A callee without weight math, one that must stay a function and a recursive one are called as before.
// CHECK-LABEL: @calls_transform_params
// CHECK-SAME:    "w.parts.0"
// CHECK:         %0:2 = call @parts(%arg0)
// CHECK:       @calls(
// CHECK-NEXT:    %0 = call @plain(%arg0, %arg2)
// CHECK-NEXT:    %1 = call @stays(%0, %arg1)
// CHECK-NEXT:    %2 = call @again(%1, %arg1)
func.func @calls(%x: tensor<2xf32>, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<2xf32>
    attributes {relax.num_input = 1 : i64} {
  %p:2 = call @parts(%w) : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %0 = call @plain(%x, %p#0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = call @stays(%0, %w) : (tensor<2xf32>, tensor<4xf32>) -> tensor<2xf32>
  %2 = call @again(%1, %w) : (tensor<2xf32>, tensor<4xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}
func.func private @parts(%w: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %s:2 = "relax.split"(%w) {sections = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %s#0, %s#1 : tensor<2xf32>, tensor<2xf32>
}
func.func private @plain(%x: tensor<2xf32>, %w: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "relax.add"(%x, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @stays(%x: tensor<2xf32>, %w: tensor<4xf32>) -> tensor<2xf32> attributes {no_inline} {
  %s:2 = "relax.split"(%w) {sections = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %0 = "relax.add"(%x, %s#0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @again(%x: tensor<2xf32>, %w: tensor<4xf32>) -> tensor<2xf32> {
  %s:2 = "relax.split"(%w) {sections = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %0 = func.call @again(%s#0, %w) : (tensor<2xf32>, tensor<4xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Calls that may have side effects stay, even on weights alone; a declaration can say that it has none.
// CHECK-LABEL: @effects_transform_params
// CHECK-NOT:     @unknown
// CHECK:         call @pure
// CHECK:       @effects(%arg0: tensor<4xf32> {relax.name = "w"}, %arg1: tensor<4xf32> {relax.name = "w.pure"})
// CHECK-NEXT:    %0 = call @unknown(%arg0)
func.func private @unknown(tensor<4xf32>) -> tensor<4xf32>
func.func private @pure(tensor<4xf32>) -> tensor<4xf32> attributes {relax.pure}
func.func @effects(%w: tensor<4xf32> {relax.name = "w"}) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {relax.num_input = 0 : i64} {
  %0 = call @unknown(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @pure(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A branch and a loop that read weights and constants alone are lifted whole.
// CHECK-LABEL: @control_transform_params
// CHECK-SAME:    "w.if"
// CHECK-SAME:    "w.for"
// CHECK:         scf.if
// CHECK:         scf.for
// CHECK:       @control(%arg0: tensor<4xf32> {relax.name = "w.if"}, %arg1: tensor<4xf32> {relax.name = "w.for"})
// CHECK-NEXT:    return %arg0, %arg1
func.func @control(%w: tensor<4xf32> {relax.name = "w"}) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {relax.num_input = 0 : i64} {
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %i3 = arith.constant 3 : index
  %f0 = arith.constant 0.0 : f32
  %first = tensor.extract %w[%i0] : tensor<4xf32>
  %positive = arith.cmpf ogt, %first, %f0 : f32
  %0 = scf.if %positive -> tensor<4xf32> {
    %e = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  } else {
    scf.yield %w : tensor<4xf32>
  }
  %1 = scf.for %i = %i0 to %i3 step %i1 iter_args(%c = %w) -> (tensor<4xf32>) {
    %n = "relax.negative"(%c) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Weight math inside of a run-time branch, and of a run-time while loop, is lifted out of it when it cannot fail.
// CHECK-LABEL: @around_transform_params
// CHECK:         "relax.permute_dims"
// CHECK-NOT:     "relax.take"
// CHECK:       @around(
// CHECK:         scf.while
// CHECK:           %[[M:.*]] = "relax.matmul"({{.*}}, %arg3)
// CHECK:         scf.if
// CHECK-NEXT:      "relax.take"(%arg2, %arg1)
func.func @around(%x: tensor<4x4xf32>, %indices: tensor<4xi64>, %w: tensor<4x4xf32> {relax.name = "w"})
    -> (tensor<4x4xf32>, tensor<4x4xf32>) attributes {relax.num_input = 2 : i64} {
  %i0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %0 = scf.while (%c = %x) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
    %e = tensor.extract %c[%i0, %i0] : tensor<4x4xf32>
    %go = arith.cmpf ogt, %e, %f0 : f32
    scf.condition(%go) %c : tensor<4x4xf32>
  } do {
  ^bb0(%c: tensor<4x4xf32>):
    %t = "relax.permute_dims"(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %m = "relax.matmul"(%c, %t) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %m : tensor<4x4xf32>
  }
  %e = tensor.extract %x[%i0, %i0] : tensor<4x4xf32>
  %positive = arith.cmpf ogt, %e, %f0 : f32
  %1 = scf.if %positive -> tensor<4x4xf32> {
    %r = "relax.take"(%w, %indices) : (tensor<4x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
    scf.yield %r : tensor<4x4xf32>
  } else {
    scf.yield %w : tensor<4x4xf32>
  }
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A scalar is no weight: inference computes it again, from the tensor it comes from.
// CHECK-LABEL: @scalar_transform_params
// CHECK-NOT:     tensor.extract
// CHECK:       @scalar(%arg0: tensor<4xf32>, %arg1: tensor<4xf32> {relax.name = "w.abs"})
// CHECK:         tensor.extract %arg1
func.func @scalar(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %i0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %a = "relax.abs"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %e = tensor.extract %a[%i0] : tensor<4xf32>
  %positive = arith.cmpf ogt, %e, %f0 : f32
  %1 = scf.if %positive -> tensor<4xf32> {
    scf.yield %x : tensor<4xf32>
  } else {
    %r = "relax.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %r : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

// -----

// Symbols that weights define can be used in what is lifted; what mentions a symbol of the inputs stays.
// CHECK-LABEL: @symbols_transform_params
// CHECK-SAME:    -> (tensor<3xf32> {relax.name = "v"}, tensor<?xf32, {sym = ["m"]}> {relax.name = "w.add"})
// CHECK:         "relax.full"
// CHECK-NOT:     relax.broadcast_to
// CHECK:       @symbols(
// CHECK-NEXT:    "relax.broadcast_to"(%arg1)
func.func @symbols(%x: tensor<?x3xf32, {sym = ["n"]}>, %w: tensor<?xf32, {sym = ["m"]}> {relax.name = "w"},
    %v: tensor<3xf32> {relax.name = "v"})
    -> (tensor<?xf32, {sym = ["m"]}>, tensor<?x3xf32, {sym = ["n"]}>) attributes {relax.num_input = 1 : i64} {
  %f = "relax.full"() {value = 1.0 : f64} : () -> tensor<?xf32, {sym = ["m"]}>
  %a = "relax.add"(%w, %f) : (tensor<?xf32, {sym = ["m"]}>, tensor<?xf32, {sym = ["m"]}>)
      -> tensor<?xf32, {sym = ["m"]}>
  %b = "relax.broadcast_to"(%v) : (tensor<3xf32>) -> tensor<?x3xf32, {sym = ["n"]}>
  return %a, %b : tensor<?xf32, {sym = ["m"]}>, tensor<?x3xf32, {sym = ["n"]}>
}

// -----

// A weight that alone defines a symbol inference mentions is kept for that.
// CHECK-LABEL: @kept_for_symbol_transform_params
// CHECK:       @kept_for_symbol(%arg0: tensor<4xf32>, %arg1: tensor<?xf32, {sym = ["m"]}> {relax.name = "w"},
// CHECK-SAME:       %arg2: tensor<f32> {relax.name = "w.sum"})
// CHECK:         "relax.shape_value"() {value = ["m"]}
func.func @kept_for_symbol(%x: tensor<4xf32>, %w: tensor<?xf32, {sym = ["m"]}> {relax.name = "w"})
    -> (tensor<4xf32>, tensor<i64>) attributes {relax.num_input = 1 : i64} {
  %s = "relax.sum"(%w) : (tensor<?xf32, {sym = ["m"]}>) -> tensor<f32>
  %y = "relax.add"(%x, %s) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %m = "relax.shape_value"() {value = ["m"]} : () -> tensor<i64>
  return %y, %m : tensor<4xf32>, tensor<i64>
}

// -----

// match_cast on a weight is lifted with the symbol it defines; one that compares with an input's symbol stays.
// CHECK-LABEL: @cast_transform_params
// CHECK:         "relax.match_cast"(%arg0) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k"]}>
// CHECK-NEXT:    "relax.exp"
// CHECK:       @cast(%arg0: tensor<?xf32, {sym = ["n"]}>, %arg1: tensor<?xf32> {relax.name = "v"},
// CHECK-SAME:       %arg2: tensor<?xf32, {sym = ["k"]}> {relax.name = "w.match_cast.exp"})
// CHECK-NEXT:    "relax.match_cast"(%arg1) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["n"]}>
func.func @cast(%x: tensor<?xf32, {sym = ["n"]}>, %w: tensor<?xf32> {relax.name = "w"}, %v: tensor<?xf32>
    {relax.name = "v"})
    -> (tensor<?xf32, {sym = ["k"]}>, tensor<?xf32, {sym = ["n"]}>) attributes {relax.num_input = 1 : i64} {
  %c = "relax.match_cast"(%w) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k"]}>
  %e = "relax.exp"(%c) : (tensor<?xf32, {sym = ["k"]}>) -> tensor<?xf32, {sym = ["k"]}>
  %d = "relax.match_cast"(%v) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["n"]}>
  %y = "relax.add"(%x, %d) : (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>)
      -> tensor<?xf32, {sym = ["n"]}>
  return %e, %y : tensor<?xf32, {sym = ["k"]}>, tensor<?xf32, {sym = ["n"]}>
}

// -----

// Several entry functions each get their own transform function, before them; private helpers get none.
// CHECK:      @prefill_transform_params
// CHECK:      @prefill(
// CHECK:      @decode_transform_params
// CHECK:      @decode(
// CHECK:      func.func private @helper
func.func @prefill(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = call @helper(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @decode(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = call @helper(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @helper(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.add"(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// An entry function that another one calls changes its signature; the caller keeps a private copy, here inlined.
// CHECK:      @outer_transform_params
// CHECK:        relax.exp
// CHECK:      @outer(%arg0: tensor<4xf32>, %arg1: tensor<4xf32> {relax.name = "w.exp"})
// CHECK-NEXT:   "relax.add"(%arg0, %arg1)
// CHECK:      @inner_transform_params
// CHECK:      @inner(%arg0: tensor<4xf32>, %arg1: tensor<4xf32> {relax.name = "v.exp"})
// CHECK-NOT:  private
func.func @outer(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = call @inner(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @inner(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "v"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %e = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = "relax.add"(%x, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A function that has a transform function gets it extended: the lifted ops read what it returned.
// CHECK-LABEL: @main_transform_params(%arg0: tensor<8x4xf32> {relax.name = "w"})
// CHECK-SAME: -> (tensor<4x8xf16> {relax.name = "w.t.astype"})
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg0)
// CHECK-NEXT:    %1 = "relax.astype"(%0)
// CHECK-NEXT:    return %1
// CHECK:       @main(%arg0: tensor<2x4xf16>, %arg1: tensor<4x8xf16> {relax.name = "w.t.astype"})
func.func @main_transform_params(%w: tensor<8x4xf32> {relax.name = "w"}, %b: tensor<8xf32> {relax.name = "b"})
    -> (tensor<8xf32> {relax.name = "b"}, tensor<4x8xf32> {relax.name = "w.t"})
        attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  %t = "relax.permute_dims"(%w) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %b, %t : tensor<8xf32>, tensor<4x8xf32>
}
func.func @main(%x: tensor<2x4xf16>, %b: tensor<8xf32> {relax.name = "b"}, %t: tensor<4x8xf32> {relax.name = "w.t"})
    -> tensor<2x8xf16> attributes {relax.num_input = 1 : i64} {
  %h = "relax.astype"(%t) {dtype = f16} : (tensor<4x8xf32>) -> tensor<4x8xf16>
  %y = "relax.matmul"(%x, %h) : (tensor<2x4xf16>, tensor<4x8xf16>) -> tensor<2x8xf16>
  return %y : tensor<2x8xf16>
}
