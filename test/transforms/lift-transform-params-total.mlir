// RUN: relax-opt %s --split-input-file --relax-lift-transform-params='growth-slack=0 max-total-growth=1.5' \
// RUN:   | filecheck %s
// RUN: relax-opt %s --split-input-file --relax-lift-transform-params='growth-slack=0 max-total-growth=1.5' \
// RUN:     --relax-lift-transform-params='growth-slack=0 max-total-growth=1.5' | filecheck %s

// A weight that is used as it is and transformed is kept twice, as long as all together stays within the limit: here
// the small one.
// CHECK-LABEL: @raw_and_transformed_transform_params
// CHECK-SAME:    "small.exp"
// CHECK-NOT:     "large.exp"
// CHECK:       @raw_and_transformed(
// CHECK:         "relax.exp"
// CHECK-NOT:     "relax.exp"
func.func @raw_and_transformed(%x: tensor<8xf32>, %w: tensor<8xf32> {relax.name = "large"}, %v: tensor<4xf32>
    {relax.name = "small"})
    -> (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.add"(%x, %w) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = "relax.exp"(%w) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = "relax.exp"(%v) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2, %v : tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Three layouts of one weight are three times its size; inference makes them. What is equal counts once.
// CHECK-LABEL: @layouts_transform_params
// CHECK-SAME:    -> (tensor<2x8xf32> {relax.name = "w"})
// CHECK:       @layouts(
// CHECK-COUNT-3: relax.reshape
func.func @layouts(%w: tensor<2x8xf32> {relax.name = "w"}) -> (tensor<16xf32>, tensor<8x2xf32>, tensor<4x4xf32>)
    attributes {relax.num_input = 0 : i64} {
  %0 = "relax.reshape"(%w) : (tensor<2x8xf32>) -> tensor<16xf32>
  %1 = "relax.reshape"(%w) : (tensor<2x8xf32>) -> tensor<8x2xf32>
  %2 = "relax.reshape"(%w) : (tensor<2x8xf32>) -> tensor<4x4xf32>
  return %0, %1, %2 : tensor<16xf32>, tensor<8x2xf32>, tensor<4x4xf32>
}

// -----

// CHECK-LABEL: @equal_transform_params
// CHECK-SAME:    -> (tensor<16xf32> {relax.name = "w.reshape"})
func.func @equal(%w: tensor<2x8xf32> {relax.name = "w"}) -> (tensor<16xf32>, tensor<16xf32>)
    attributes {relax.num_input = 0 : i64} {
  %0 = "relax.reshape"(%w) : (tensor<2x8xf32>) -> tensor<16xf32>
  %1 = "relax.reshape"(%w) : (tensor<2x8xf32>) -> tensor<16xf32>
  return %0, %1 : tensor<16xf32>, tensor<16xf32>
}

// -----

// A weight that nothing reads, and what is not lifted anyway, make no room.
// CHECK-LABEL: @unused_transform_params
// CHECK-SAME:    -> (tensor<4xf32> {relax.name = "w"})
func.func @unused(%w: tensor<4xf32> {relax.name = "w"}, %u: tensor<100xf32> {relax.name = "u"})
    -> (tensor<4xf32>, tensor<4xf32>) attributes {relax.num_input = 0 : i64} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %w : tensor<4xf32>, tensor<4xf32>
}

// -----

// What nothing reads inside of a loop does not make the loop one of weight math.
// CHECK-LABEL: @dead_inside_transform_params
// CHECK-SAME:    -> (tensor<4xf32> {relax.name = "w.exp"})
// CHECK:       @dead_inside(
// CHECK:         scf.for
// CHECK-NOT:       "relax.abs"
func.func @dead_inside(%w: tensor<4xf32> {relax.name = "w"}) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {relax.num_input = 0 : i64} {
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %c = "relax.full"() {value = 1.0 : f64} : () -> tensor<4xf32>
  %0 = scf.for %i = %i0 to %i1 step %i1 iter_args(%a = %c) -> (tensor<4xf32>) {
    %dead = "relax.abs"(%w) : (tensor<4xf32>) -> tensor<4xf32>
    %n = "relax.negative"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  %1 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// What nothing reads in a function that is inlined does not count either, nor what only that reads.
// CHECK-LABEL: @dead_inlined_transform_params
// CHECK-SAME:    -> (tensor<4xf32> {relax.name = "w.if"})
func.func @dead_inlined(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %true = arith.constant true
  %0 = scf.if %true -> tensor<4xf32> {
    %n = "relax.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %c = func.call @ignores(%n, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %c : tensor<4xf32>
  } else {
    scf.yield %w : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
func.func private @ignores(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %dead = "relax.abs"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A cast that nothing reads may define a size: it stays.
// CHECK-LABEL: @dead_cast_transform_params
// CHECK:       @dead_cast(
// CHECK:         scf.if
// CHECK-NEXT:      "relax.match_cast"
// CHECK-NEXT:      "relax.shape_value"
func.func @dead_cast(%x: tensor<?xf32>, %flag: i1, %w: tensor<i64> {relax.name = "w"}) -> tensor<i64>
    attributes {relax.num_input = 2 : i64} {
  %0 = scf.if %flag -> tensor<i64> {
    %c = "relax.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k"]}>
    %s = "relax.shape_value"() {value = ["k"]} : () -> tensor<i64>
    scf.yield %s : tensor<i64>
  } else {
    scf.yield %w : tensor<i64>
  }
  return %0 : tensor<i64>
}
