// RUN: relax-opt %s | relax-opt | filecheck %s

// CHECK-LABEL: func.func @match_cast(
// CHECK: "relax.match_cast"(%{{.*}}) : (tensor<?x4xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @match_cast(%x: tensor<?x4xf32>) {
  %0 = "relax.match_cast"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @match_cast_2(
// CHECK: "relax.match_cast"(%{{.*}}) : (tensor<?x?xf32>) -> tensor<2x4xf32>
func.func @match_cast_2(%x: tensor<?x?xf32>) {
  %0 = "relax.match_cast"(%x) : (tensor<?x?xf32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @keep(
// CHECK: "relax.keep"(%{{.*}}) : (tensor<4xf32>) -> ()
func.func @keep(%x: tensor<4xf32>) {
  "relax.keep"(%x) : (tensor<4xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @stop_lift_params(
// CHECK: "relax.stop_lift_params"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @stop_lift_params(%x: tensor<4xf32>) {
  %0 = "relax.stop_lift_params"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @prim_value(
// CHECK: "relax.prim_value"() {value = ["n * 2 + 1"]} : () -> index
func.func @prim_value() {
  %0 = "relax.prim_value"() {value = ["n * 2 + 1"]} : () -> index
  return
}
