// RUN: relax-opt %s --split-input-file --relax-lazy-get-input | filecheck %s

// Each weight is read once, before its first use, under its index and name (by position without one); an unused one
// never; inputs stay arguments.
// CHECK-LABEL: @reads(%arg0: tensor<4xf32> {relax.name = "x"}, %arg1: !relax.param_provider) -> tensor<4xf32>
// CHECK-SAME:    relax.num_input = 2 : i64
// CHECK-NEXT:    %0 = "relax.exp"(%arg0)
// CHECK-NEXT:    %1 = "relax.get_param"(%arg1) {index = 2 : i64, name = "b"}
// CHECK-NEXT:    %2 = "relax.add"(%0, %1)
// CHECK-NEXT:    %3 = "relax.get_param"(%arg1) {index = 0 : i64, name = "weight1"}
// CHECK-NEXT:    %4 = "relax.multiply"(%2, %3)
// CHECK-NEXT:    %5 = "relax.multiply"(%4, %1)
// CHECK-NEXT:    return %5
func.func @reads(%x: tensor<4xf32> {relax.name = "x"}, %a: tensor<4xf32>, %u: tensor<4xf32> {relax.name = "u"},
    %b: tensor<4xf32> {relax.name = "b"})
    -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.add"(%0, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "relax.multiply"(%1, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = "relax.multiply"(%2, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// -----

// A weight that is only returned is read before the return.
// CHECK-LABEL: @returned
// CHECK-NEXT:    %0 = "relax.get_param"
// CHECK-NEXT:    return %0, %0
func.func @returned(%w: tensor<4xf32> {relax.name = "w"}) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {relax.num_input = 0 : i64} {
  return %w, %w : tensor<4xf32>, tensor<4xf32>
}

// -----

// A weight used in a loop is read once, before it.
// CHECK-LABEL: @loop
// CHECK:         %[[W:.*]] = "relax.get_param"
// CHECK-NEXT:    scf.for
// CHECK:           "relax.add"(%{{.*}}, %[[W]])
func.func @loop(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %0 = scf.for %i = %i0 to %i1 step %i1 iter_args(%c = %x) -> (tensor<4xf32>) {
    %n = "relax.add"(%c, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// A weight that alone defines a symbol is read before the first op that mentions the symbol, be it for that only.
// CHECK-LABEL: @symbol
// CHECK-NEXT:    "relax.exp"
// CHECK-NEXT:    %1 = "relax.get_param"(%arg1) {index = 0 : i64, name = "w"} : (!relax.param_provider)
// CHECK-SAME:    -> tensor<?xf32, {sym = ["m"]}>
// CHECK-NEXT:    "relax.shape_value"() {value = ["m"]}
func.func @symbol(%x: tensor<?xf32, {sym = ["n"]}>, %w: tensor<?xf32, {sym = ["m"]}> {relax.name = "w"},
    %v: tensor<?xf32, {sym = ["n"]}>) -> tensor<i64> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.exp"(%x) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}>
  %1 = "relax.shape_value"() {value = ["m"]} : () -> tensor<i64>
  return %1 : tensor<i64>
}

// -----

// Private functions, functions without weights or relax.num_input, and inference that has a transform function stay as
// they are.
// CHECK:     @main_transform_params(%arg0: !relax.param_provider)
// CHECK:     @main(%arg0: tensor<4xf32> {relax.name = "w"})
// CHECK:     @plain(%arg0: tensor<4xf32>)
// CHECK:     @input(%arg0: tensor<4xf32>)
// CHECK:     @helper(%arg0: tensor<4xf32>)
func.func @main_transform_params(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  return %w : tensor<4xf32>
}
func.func @main(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<4xf32>
}
func.func @plain(%w: tensor<4xf32>) -> tensor<4xf32> {
  return %w : tensor<4xf32>
}
func.func @input(%w: tensor<4xf32>) -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
  return %w : tensor<4xf32>
}
func.func private @helper(%w: tensor<4xf32>) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<4xf32>
}

// -----

// A weight that one branch alone needs is read there, at its first use; one that both need, or that is needed later,
// before.
// CHECK-LABEL: @branch(
// CHECK-NEXT:    %[[BOTH:.*]] = "relax.get_param"(%arg2) {index = 2 : i64, name = "both"}
// CHECK-NEXT:    scf.if %arg1
// CHECK-NEXT:      %[[E:.*]] = "relax.exp"(%arg0)
// CHECK-NEXT:      %[[THEN:.*]] = "relax.get_param"(%arg2) {index = 0 : i64, name = "then"}
// CHECK-NEXT:      %[[A:.*]] = "relax.add"(%[[E]], %[[THEN]])
// CHECK-NEXT:      %[[B:.*]] = "relax.add"(%[[A]], %[[THEN]])
// CHECK-NEXT:      "relax.add"(%[[B]], %[[BOTH]])
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[ELSE:.*]] = "relax.get_param"(%arg2) {index = 1 : i64, name = "else"}
// CHECK-NEXT:      "relax.add"(%[[ELSE]], %[[BOTH]])
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[LATER:.*]] = "relax.get_param"(%arg2) {index = 3 : i64, name = "later"}
// CHECK-NEXT:    scf.if
// CHECK:           scf.yield %[[LATER]]
// CHECK:         "relax.add"(%{{.*}}, %[[LATER]])
func.func @branch(%x: tensor<4xf32>, %c: i1, %then: tensor<4xf32> {relax.name = "then"}, %else: tensor<4xf32>
    {relax.name = "else"},
    %both: tensor<4xf32> {relax.name = "both"}, %later: tensor<4xf32> {relax.name = "later"}) -> tensor<4xf32>
        attributes {relax.num_input = 2 : i64} {
  %0 = scf.if %c -> tensor<4xf32> {
    %e = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %a = "relax.add"(%e, %then) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %b = "relax.add"(%a, %then) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %d = "relax.add"(%b, %both) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %d : tensor<4xf32>
  } else {
    %a = "relax.add"(%else, %both) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  }
  %1 = scf.if %c -> tensor<4xf32> {
    scf.yield %later : tensor<4xf32>
  } else {
    scf.yield %0 : tensor<4xf32>
  }
  %2 = "relax.add"(%1, %later) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// Branches in branches: in the innermost one that holds all uses. A loop in a branch reads before the loop.
// CHECK-LABEL: @nested(
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      %[[OUTER:.*]] = "relax.get_param"(%{{.*}}) {index = 0 : i64, name = "outer"}
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        %[[INNER:.*]] = "relax.get_param"(%{{.*}}) {index = 1 : i64, name = "inner"}
// CHECK-NEXT:        scf.yield %[[INNER]]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        scf.yield %[[OUTER]]
// CHECK:           %[[LOOP:.*]] = "relax.get_param"(%{{.*}}) {index = 2 : i64, name = "loop"}
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        scf.if
// CHECK-NEXT:          "relax.add"(%{{.*}}, %[[LOOP]])
// CHECK:           "relax.add"(%{{.*}}, %[[OUTER]])
func.func @nested(%x: tensor<4xf32>, %c: i1, %outer: tensor<4xf32> {relax.name = "outer"}, %inner: tensor<4xf32>
    {relax.name = "inner"},
    %loop: tensor<4xf32> {relax.name = "loop"}) -> tensor<4xf32> attributes {relax.num_input = 2 : i64} {
  %0 = scf.if %c -> tensor<4xf32> {
    %1 = scf.if %c -> tensor<4xf32> {
      scf.yield %inner : tensor<4xf32>
    } else {
      scf.yield %outer : tensor<4xf32>
    }
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %2 = scf.for %i = %i0 to %i1 step %i1 iter_args(%k = %1) -> (tensor<4xf32>) {
      %3 = scf.if %c -> tensor<4xf32> {
        %n = "relax.add"(%k, %loop) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        scf.yield %n : tensor<4xf32>
      } else {
        scf.yield %k : tensor<4xf32>
      }
      scf.yield %3 : tensor<4xf32>
    }
    %4 = "relax.add"(%2, %outer) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %4 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// A weight that a branch alone uses is read before it where its symbol is needed outside, if only in the result's type.
// CHECK-LABEL: @symbol_of_a_branch(
// CHECK-NEXT:    %[[W:.*]] = "relax.get_param"(%{{.*}}) {index = 0 : i64, name = "w"}
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      "relax.exp"(%[[W]])
// CHECK:         scf.if
// CHECK-NEXT:      %[[V:.*]] = "relax.get_param"(%{{.*}}) {index = 1 : i64, name = "v"}
// CHECK-NEXT:      "relax.shape_value"() {value = ["k"]}
func.func @symbol_of_a_branch(%c: i1, %w: tensor<?xf32, {sym = ["m"]}> {relax.name = "w"},
    %v: tensor<?xf32, {sym = ["k"]}> {relax.name = "v"})
    -> (tensor<?xf32, {sym = ["m"]}>, tensor<i64>) attributes {relax.num_input = 1 : i64} {
  %0 = scf.if %c -> tensor<?xf32, {sym = ["m"]}> {
    %e = "relax.exp"(%w) : (tensor<?xf32, {sym = ["m"]}>) -> tensor<?xf32, {sym = ["m"]}>
    scf.yield %e : tensor<?xf32, {sym = ["m"]}>
  } else {
    %o = "relax.full"() {value = 1.0 : f64} : () -> tensor<?xf32, {sym = ["m"]}>
    scf.yield %o : tensor<?xf32, {sym = ["m"]}>
  }
  %1 = scf.if %c -> tensor<i64> {
    %k = "relax.shape_value"() {value = ["k"]} : () -> tensor<i64>
    scf.yield %k : tensor<i64>
  } else {
    %k = "relax.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    scf.yield %k : tensor<i64>
  }
  return %0, %1 : tensor<?xf32, {sym = ["m"]}>, tensor<i64>
}

// -----

// A symbol that takes two weights to be known wants both, and only once.
// CHECK-LABEL: @joint(
// CHECK-NEXT:    "relax.get_param"(%{{.*}}) {index = 0 : i64, name = "sum"}
// CHECK-NEXT:    "relax.get_param"(%{{.*}}) {index = 1 : i64, name = "one"}
// CHECK-NEXT:    "relax.shape_value"() {value = ["m"]}
// CHECK-NEXT:    return
func.func @joint(%sum: tensor<?xf32, {sym = ["k + m"]}> {relax.name = "sum"}, %one: tensor<?xf32, {sym = ["k"]}>
    {relax.name = "one"}) -> tensor<i64>
    attributes {relax.num_input = 0 : i64} {
  %0 = "relax.shape_value"() {value = ["m"]} : () -> tensor<i64>
  return %0 : tensor<i64>
}

// -----

// A symbol that an input defines needs no weight; a scalar weight, and one of another dtype, are weights like others.
// CHECK-LABEL: @known_symbol_and_scalars(
// CHECK-NEXT:    "relax.full"()
// CHECK-NEXT:    %[[S:.*]] = "relax.get_param"(%{{.*}}) {index = 1 : i64, name = "s"} : (!relax.param_provider)
// CHECK-SAME:    -> tensor<f32>
// CHECK-NEXT:    %[[M:.*]] = "relax.multiply"(%{{.*}}, %[[S]])
// CHECK-NEXT:    %[[I:.*]] = "relax.get_param"(%{{.*}}) {index = 2 : i64, name = "i"} : (!relax.param_provider)
// CHECK-SAME:    -> tensor<2xi8>
// CHECK-NEXT:    return %[[M]], %[[I]]
func.func @known_symbol_and_scalars(%x: tensor<?xf32, {sym = ["n"]}>, %w: tensor<?xf32, {sym = ["n"]}>
    {relax.name = "w"}, %s: tensor<f32> {relax.name = "s"},
    %i: tensor<2xi8> {relax.name = "i"}) -> (tensor<?xf32, {sym = ["n"]}>, tensor<2xi8>)
        attributes {relax.num_input = 1 : i64} {
  %0 = "relax.full"() {value = 2.0 : f64} : () -> tensor<?xf32, {sym = ["n"]}>
  %1 = "relax.multiply"(%0, %s) : (tensor<?xf32, {sym = ["n"]}>, tensor<f32>) -> tensor<?xf32, {sym = ["n"]}>
  return %1, %i : tensor<?xf32, {sym = ["n"]}>, tensor<2xi8>
}

// -----

// Weights that private functions take are read before the call, and those functions stay as they are.
// CHECK-LABEL: @calls(
// CHECK-NEXT:    %[[A:.*]] = "relax.get_param"(%{{.*}}) {index = 0 : i64, name = "a"}
// CHECK-NEXT:    %[[B:.*]] = "relax.get_param"(%{{.*}}) {index = 1 : i64, name = "b"}
// CHECK-NEXT:    call @pair(%[[A]], %[[B]])
// CHECK:       func.func private @pair(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32>
func.func @calls(%a: tensor<4xf32> {relax.name = "a"}, %b: tensor<4xf32> {relax.name = "b"}) -> tensor<4xf32>
    attributes {relax.num_input = 0 : i64} {
  %0 = call @pair(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @pair(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Who calls a function whose signature changes, itself included, calls a private copy of it from then on.
// CHECK-LABEL: func.func @called(%arg0: i1, %arg1: !relax.param_provider)
// CHECK:         "relax.get_param"
// CHECK:         call @called_called(%arg0, %{{.*}})
// CHECK-LABEL: func.func private @called_called(%arg0: i1, %arg1: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> {
// CHECK:         call @called_called(%arg0, %arg1)
// CHECK-LABEL: func.func @caller(%arg0: i1, %arg1: tensor<4xf32>)
// CHECK-NEXT:    call @called_called(%arg0, %arg1)
func.func @called(%c: i1, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = scf.if %c -> tensor<4xf32> {
    %1 = func.call @called(%c, %w) : (i1, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    scf.yield %w : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
func.func @caller(%c: i1, %w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @called(%c, %w) : (i1, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
