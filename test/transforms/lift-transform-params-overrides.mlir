// RUN: relax-opt %s --split-input-file --relax-lift-transform-params='growth-slack=0' | filecheck %s
// RUN: relax-opt %s --split-input-file --relax-lift-transform-params='growth-slack=0' \
// RUN:     --relax-lift-transform-params='growth-slack=0' | filecheck %s

// relax.lift on an op: "always" lifts what is too large, "never" keeps the op and what reads it.
// CHECK-LABEL: @ops_transform_params
// CHECK-SAME:    -> (tensor<4xf32> {relax.name = "v"}, tensor<4xf64> {relax.name = "w.astype"})
// CHECK:       @ops(
// CHECK-NEXT:    "relax.exp"(%arg0) {relax.lift = "never"}
// CHECK-NEXT:    "relax.abs"
func.func @ops(%w: tensor<4xf32> {relax.name = "w"}, %v: tensor<4xf32> {relax.name = "v"})
    -> (tensor<4xf64>, tensor<4xf32>) attributes {relax.num_input = 0 : i64} {
  %0 = "relax.astype"(%w) {dtype = f64, relax.lift = "always"} : (tensor<4xf32>) -> tensor<4xf64>
  %1 = "relax.exp"(%v) {relax.lift = "never"} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relax.abs"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %2 : tensor<4xf64>, tensor<4xf32>
}

// -----

// relax.lift on a weight speaks for all that comes from it, and goes on with it as a prepared weight.
// CHECK-LABEL: @weights_transform_params
// CHECK:       @weights(%arg0: tensor<4xf32> {relax.lift = "never", relax.name = "v"}, %arg1: tensor<4xf64>
// CHECK-SAME:       {relax.lift = "always", relax.name = "w.astype"})
// CHECK-NEXT:    "relax.exp"(%arg0)
func.func @weights(%w: tensor<4xf32> {relax.lift = "always", relax.name = "w"}, %v: tensor<4xf32>
    {relax.lift = "never", relax.name = "v"}) -> (tensor<4xf64>, tensor<4xf32>) attributes {relax.num_input = 0 : i64} {
  %0 = "relax.astype"(%w) {dtype = f64} : (tensor<4xf32>) -> tensor<4xf64>
  %1 = "relax.exp"(%v) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf64>, tensor<4xf32>
}

// -----

// Where they disagree: an op decides over its weights, and of several weights one that says "never".
// CHECK-LABEL: @conflicts_transform_params
// CHECK-SAME:    -> (tensor<4xf32> {relax.name = "v"}, tensor<4xf32> {relax.name = "w"}, tensor<4xf32>
// CHECK-SAME:    {relax.name = "v.exp"})
// CHECK:       @conflicts(%arg0: tensor<4xf32> {relax.lift = "never", relax.name = "v"}, %arg1: tensor<4xf32>
// CHECK-SAME:       {relax.lift = "always", relax.name = "w"}, %arg2: tensor<4xf32>
// CHECK-SAME:       {relax.lift = "never", relax.name = "v.exp"})
// CHECK-NEXT:    "relax.abs"(%arg1) {relax.lift = "never"}
// CHECK-NEXT:    "relax.add"(%arg1, %arg0)
func.func @conflicts(%v: tensor<4xf32> {relax.lift = "never", relax.name = "v"}, %w: tensor<4xf32>
    {relax.lift = "always", relax.name = "w"}) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    attributes {relax.num_input = 0 : i64} {
  %0 = "relax.exp"(%v) {relax.lift = "always"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.abs"(%w) {relax.lift = "never"} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relax.add"(%w, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A branch, or a call, with such an op inside is not lifted as a whole; "always" does not lift what cannot be.
// CHECK-LABEL: @inside_transform_params
// CHECK-SAME:    -> (tensor<4xf32> {relax.name = "w"})
// CHECK:       @inside(
// CHECK:         "relax.add"(%arg0, %arg1) {relax.lift = "always"}
// CHECK:         scf.if
// CHECK-NEXT:      "relax.exp"
// CHECK:         call @never
func.func @inside(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "w"})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {relax.num_input = 1 : i64} {
  %true = arith.constant true
  %0 = "relax.add"(%x, %w) {relax.lift = "always"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = scf.if %true -> tensor<4xf32> {
    %e = "relax.exp"(%w) {relax.lift = "never"} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  } else {
    scf.yield %w : tensor<4xf32>
  }
  %2 = call @never(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
func.func private @never(%w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.exp"(%w) {relax.lift = "never"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A function that another one calls is copied for it. The copy takes no weights, so that nothing is said of them.
// CHECK-LABEL: func.func @called(
// CHECK-SAME:    {relax.lift = "never", relax.name = "w"}
// CHECK:       func.func private @called_called(%arg0: tensor<4xf32> {relax.name = "x"}, %arg1: tensor<4xf32>
// CHECK-SAME:       {relax.name = "w"})
// CHECK:       func.func @caller
// CHECK:         call @called_called
func.func @called(%x: tensor<4xf32> {relax.name = "x"}, %w: tensor<4xf32> {relax.lift = "never", relax.name = "w"})
    -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.add"(%x, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func @caller(%x: tensor<4xf32> {relax.name = "x"}, %v: tensor<4xf32> {relax.name = "v"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = call @called(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.add"(%0, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
