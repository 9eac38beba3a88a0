// RUN: relax-opt %s --split-input-file --relax-lazy-get-input | filecheck %s

// Each weight is read once, before its first use, under its index and name (by position without one); an unused one never; inputs stay arguments.
// CHECK-LABEL: @reads(%arg0: tensor<4xf32> {relax.name = "x"}, %arg1: !relax.param_provider) -> tensor<4xf32>
// CHECK-SAME:    relax.num_input = 2 : i64
// CHECK-NEXT:    %0 = "relax.exp"(%arg0)
// CHECK-NEXT:    %1 = "relax.get_param"(%arg1) {index = 2 : i64, name = "b"}
// CHECK-NEXT:    %2 = "relax.add"(%0, %1)
// CHECK-NEXT:    %3 = "relax.get_param"(%arg1) {index = 0 : i64, name = "weight1"}
// CHECK-NEXT:    %4 = "relax.multiply"(%2, %3)
// CHECK-NEXT:    %5 = "relax.multiply"(%4, %1)
// CHECK-NEXT:    return %5
func.func @reads(%x: tensor<4xf32> {relax.name = "x"}, %a: tensor<4xf32>, %u: tensor<4xf32> {relax.name = "u"}, %b: tensor<4xf32> {relax.name = "b"})
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
func.func @returned(%w: tensor<4xf32> {relax.name = "w"}) -> (tensor<4xf32>, tensor<4xf32>) attributes {relax.num_input = 0 : i64} {
  return %w, %w : tensor<4xf32>, tensor<4xf32>
}

// -----

// A weight used in a branch or a loop is read once, before it.
// CHECK-LABEL: @region
// CHECK:         %[[W:.*]] = "relax.get_param"
// CHECK-NEXT:    scf.for
// CHECK:           "relax.add"(%{{.*}}, %[[W]])
func.func @region(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
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
// CHECK-NEXT:    %1 = "relax.get_param"(%arg1) {index = 0 : i64, name = "w"} : (!relax.param_provider) -> tensor<?xf32, {sym = ["m"]}>
// CHECK-NEXT:    "relax.shape_value"() {value = ["m"]}
func.func @symbol(%x: tensor<?xf32, {sym = ["n"]}>, %w: tensor<?xf32, {sym = ["m"]}> {relax.name = "w"}, %v: tensor<?xf32, {sym = ["n"]}>) -> tensor<i64> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.exp"(%x) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}>
  %1 = "relax.shape_value"() {value = ["m"]} : () -> tensor<i64>
  return %1 : tensor<i64>
}

// -----

// Private functions, functions without weights or relax.num_input, and inference that has a transform function stay as they are.
// CHECK:     @main_transform_params(%arg0: !relax.param_provider)
// CHECK:     @main(%arg0: tensor<4xf32> {relax.name = "w"})
// CHECK:     @plain(%arg0: tensor<4xf32>)
// CHECK:     @input(%arg0: tensor<4xf32>)
// CHECK:     @helper(%arg0: tensor<4xf32>)
func.func @main_transform_params(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
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
