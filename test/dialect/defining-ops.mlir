// RUN: relax-opt %s --split-input-file --pass-pipeline='builtin.module(canonicalize,cse,func.func(relax-canonicalize,\
// RUN:loop-invariant-code-motion),remove-dead-values)' | filecheck %s

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
func.func @pure(%x: tensor<?xf32, {sym = ["n"]}>, %p: !relax.param_provider)
    -> (tensor<?xf32, {sym = ["n"]}>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "relax.match_cast"(%x) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}>
  %1 = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<4xf32>
  %2 = "relax.get_param"(%p) {index = 1 : i64} : (!relax.param_provider) -> tensor<4xf32>
  %3 = "relax.get_param"(%p) {index = 1 : i64} : (!relax.param_provider) -> tensor<4xf32>
  return %0, %2, %3 : tensor<?xf32, {sym = ["n"]}>, tensor<4xf32>, tensor<4xf32>
}

// -----

// What names a symbol that no operand brings stays behind the op that defines it, in a loop, too; others leave the
// loop.
// CHECK-LABEL: @loop
// CHECK:         "relax.reshape"
// CHECK:         scf.for
// CHECK-NEXT:      "relax.match_cast"
// CHECK-NEXT:      "relax.full"
// CHECK-NEXT:      "relax.broadcast_to"
// CHECK-NEXT:      "relax.strided_slice"
// CHECK-NEXT:      "relax.shape_value"
func.func @loop(%x: tensor<?x3xf32>, %y: tensor<3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<?x3xf32>, tensor<3xf32>) {
    %1 = "relax.match_cast"(%a) : (tensor<?x3xf32>) -> tensor<?x3xf32, {sym = ["k"]}>
    %2 = "relax.full"() {value = 1.0 : f64} : () -> tensor<?x3xf32, {sym = ["k"]}>
    %3 = "relax.broadcast_to"(%y) : (tensor<3xf32>) -> tensor<?x3xf32, {sym = ["k"]}>
    %4 = "relax.strided_slice"(%y) {axes = array<i64: 0>, begin = ["k - 1"], end = ["k"]} : (tensor<3xf32>)
        -> tensor<1xf32>
    %5 = "relax.shape_value"() {value = ["k"]} : () -> tensor<f32>
    %6 = "relax.add"(%1, %2) : (tensor<?x3xf32, {sym = ["k"]}>, tensor<?x3xf32, {sym = ["k"]}>)
        -> tensor<?x3xf32, {sym = ["k"]}>
    %7 = "relax.add"(%6, %3) : (tensor<?x3xf32, {sym = ["k"]}>, tensor<?x3xf32, {sym = ["k"]}>)
        -> tensor<?x3xf32, {sym = ["k"]}>
    %8 = "relax.concat"(%7, %7) : (tensor<?x3xf32, {sym = ["k"]}>, tensor<?x3xf32, {sym = ["k"]}>)
        -> tensor<?x3xf32, {sym = ["k * 2"]}>
    %9 = "relax.match_cast"(%8) : (tensor<?x3xf32, {sym = ["k * 2"]}>) -> tensor<?x3xf32>
    %12 = "relax.reshape"(%y) : (tensor<3xf32>) -> tensor<3x1xf32>
    %13 = "relax.sum"(%12) {axis = array<i64: 1>} : (tensor<3x1xf32>) -> tensor<3xf32>
    %14 = "relax.add"(%b, %13) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %10 = "relax.add"(%14, %4) : (tensor<3xf32>, tensor<1xf32>) -> tensor<3xf32>
    %11 = "relax.add"(%10, %5) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    scf.yield %9, %11 : tensor<?x3xf32>, tensor<3xf32>
  }
  return %0#0, %0#1 : tensor<?x3xf32>, tensor<3xf32>
}
