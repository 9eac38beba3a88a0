// RUN: relax-opt %s | relax-opt | filecheck %s

// CHECK-LABEL: func.func @constant(
// CHECK: "relax.constant"() {value = dense<{{\[\[}}1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]>
// CHECK-SAME: : tensor<2x2xf32>} : () -> tensor<2x2xf32>
func.func @constant() {
  %0 = "relax.constant"() {value = dense<[[1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]>
      : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  return
}

// CHECK-LABEL: func.func @constant_2(
// CHECK: "relax.constant"() {value = dense<5.000000e-01> : tensor<3xbf16>} : () -> tensor<3xbf16>
func.func @constant_2() {
  %0 = "relax.constant"() {value = dense<5.000000e-01> : tensor<3xbf16>} : () -> tensor<3xbf16>
  return
}

// CHECK-LABEL: func.func @full(
// CHECK: "relax.full"() {value = 0.000000e+00 : f64} : () -> tensor<?x4xf32, {sym = ["n"]}>
func.func @full() {
  %0 = "relax.full"() {value = 0.000000e+00 : f64} : () -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @full_2(
// CHECK: "relax.full"() {value = true} : () -> tensor<4xi1>
func.func @full_2() {
  %0 = "relax.full"() {value = true} : () -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @arange(
// CHECK: "relax.arange"() {end = ["n"], start = [0], step = [1]} : () -> tensor<?xi64, {sym = ["n"]}>
func.func @arange() {
  %0 = "relax.arange"() {end = ["n"], start = [0], step = [1]} : () -> tensor<?xi64, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @arange_2(
// CHECK: "relax.arange"() {end = [-1], start = [5], step = [-2]} : () -> tensor<3xf32>
func.func @arange_2() {
  %0 = "relax.arange"() {end = [-1], start = [5], step = [-2]} : () -> tensor<3xf32>
  return
}

// CHECK-LABEL: func.func @shape_value(
// CHECK: "relax.shape_value"() {value = ["n * 2"]} : () -> tensor<i64>
func.func @shape_value() {
  %0 = "relax.shape_value"() {value = ["n * 2"]} : () -> tensor<i64>
  return
}

// CHECK-LABEL: func.func @tril(
// CHECK: "relax.tril"(%{{.*}}) : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
func.func @tril(%x: tensor<2x4x4xf32>) {
  %0 = "relax.tril"(%x) : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return
}

// CHECK-LABEL: func.func @triu(
// CHECK: "relax.triu"(%{{.*}}) {k = 1 : i64} : (tensor<4x5xi8>) -> tensor<4x5xi8>
func.func @triu(%x: tensor<4x5xi8>) {
  %0 = "relax.triu"(%x) {k = 1 : i64} : (tensor<4x5xi8>) -> tensor<4x5xi8>
  return
}
