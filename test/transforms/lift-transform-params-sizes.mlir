// RUN: relax-opt %s --split-input-file --relax-lift-transform-params | filecheck %s

// A weight that only tells a size stays an argument of the transform function; one that tells what another tells does
// not.
// CHECK-LABEL: @main_transform_params(%arg0: tensor<?xf32, {sym = ["n"]}> {relax.name = "w"}, %arg1: tensor<f32>
// CHECK-SAME: {relax.name = "s"})
// CHECK-NEXT:    "relax.full"
// CHECK-NEXT:    "relax.multiply"
// CHECK-NEXT:    return
// CHECK-LABEL: @main(%arg0: tensor<?xf32, {sym = ["n"]}>, %arg1: tensor<?xf32, {sym = ["n"]}>
// CHECK-SAME: {relax.name = "s.multiply"})
func.func @main(%x: tensor<?xf32, {sym = ["n"]}>, %w: tensor<?xf32, {sym = ["n"]}> {relax.name = "w"},
    %v: tensor<?xf32, {sym = ["n"]}> {relax.name = "v"},
    %s: tensor<f32> {relax.name = "s"}) -> tensor<?xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.full"() {value = 2.0 : f64} : () -> tensor<?xf32, {sym = ["n"]}>
  %1 = "relax.multiply"(%0, %s) : (tensor<?xf32, {sym = ["n"]}>, tensor<f32>) -> tensor<?xf32, {sym = ["n"]}>
  return %1 : tensor<?xf32, {sym = ["n"]}>
}

// -----

// Where it takes two weights to tell a size, both are kept.
// CHECK-LABEL: @main(%arg0: tensor<?xf32, {sym = ["k + m"]}> {relax.name = "sum"}, %arg1: tensor<?xf32, {sym = ["k"]}>
// CHECK-SAME: {relax.name = "one"})
// CHECK-NEXT:    "relax.shape_value"() {value = ["m"]}
func.func @main(%sum: tensor<?xf32, {sym = ["k + m"]}> {relax.name = "sum"}, %one: tensor<?xf32, {sym = ["k"]}>
    {relax.name = "one"}) -> tensor<i64>
    attributes {relax.num_input = 0 : i64} {
  %0 = "relax.shape_value"() {value = ["m"]} : () -> tensor<i64>
  return %0 : tensor<i64>
}

// -----

// What defines a size that lifted ops mention is lifted with them, though none of them reads it.
// CHECK-LABEL: @main_transform_params(%arg0: tensor<?xf32> {relax.name = "w"}, %arg1: tensor<f32> {relax.name = "s"})
// CHECK-NEXT:    "relax.match_cast"(%arg0)
// CHECK-NEXT:    %[[F:.*]] = "relax.full"
// CHECK-NEXT:    %[[M:.*]] = "relax.multiply"(%[[F]], %arg1)
// CHECK-NEXT:    return %[[M]]
// CHECK-LABEL: @main(%arg0: tensor<?xf32, {sym = ["m"]}> {relax.name = "s.multiply"})
func.func @main(%w: tensor<?xf32> {relax.name = "w"}, %s: tensor<f32> {relax.name = "s"})
    -> tensor<?xf32, {sym = ["m"]}> attributes {relax.num_input = 0 : i64} {
  %c = "relax.match_cast"(%w) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["m"]}>
  %0 = "relax.full"() {value = 2.0 : f64} : () -> tensor<?xf32, {sym = ["m"]}>
  %1 = "relax.multiply"(%0, %s) : (tensor<?xf32, {sym = ["m"]}>, tensor<f32>) -> tensor<?xf32, {sym = ["m"]}>
  return %1 : tensor<?xf32, {sym = ["m"]}>
}
