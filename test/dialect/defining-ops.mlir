// RUN: relax-opt %s --split-input-file --pass-pipeline='builtin.module(canonicalize,cse,func.func(relax-canonicalize),remove-dead-values)' | filecheck %s

// An op whose result type defines a symbol stays, used or not: no operand shows who needs the symbol.
// CHECK-LABEL: @cast
// CHECK-NEXT:    "relax.match_cast"
// CHECK-NEXT:    "relax.shape_value"
func.func @cast(%x: tensor<?xf32>) -> tensor<i64> {
  %0 = "relax.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["m"]}>
  %1 = "relax.shape_value"() {value = ["m"]} : () -> tensor<i64>
  return %1 : tensor<i64>
}

// -----

// CHECK-LABEL: @read
// CHECK-NEXT:    "relax.get_param"
// CHECK-NEXT:    "relax.shape_value"
func.func @read(%p: !relax.param_provider) -> tensor<i64> {
  %0 = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<?xf32, {sym = ["m"]}>
  %1 = "relax.shape_value"() {value = ["m"]} : () -> tensor<i64>
  return %1 : tensor<i64>
}

// -----

// One that defines none goes when it is unused, and is there once.
// CHECK-LABEL: @pure
// CHECK-NEXT:    %[[A:.*]] = "relax.get_param"(%arg1) {index = 1 : i64}
// CHECK-NEXT:    return %arg0, %[[A]], %[[A]]
func.func @pure(%x: tensor<?xf32, {sym = ["n"]}>, %p: !relax.param_provider) -> (tensor<?xf32, {sym = ["n"]}>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "relax.match_cast"(%x) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}>
  %1 = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<4xf32>
  %2 = "relax.get_param"(%p) {index = 1 : i64} : (!relax.param_provider) -> tensor<4xf32>
  %3 = "relax.get_param"(%p) {index = 1 : i64} : (!relax.param_provider) -> tensor<4xf32>
  return %0, %2, %3 : tensor<?xf32, {sym = ["n"]}>, tensor<4xf32>, tensor<4xf32>
}
