// RUN: relax-opt %s --relax-round-exact-products | filecheck %s

// The sums become f32: so are the factors, which are integers, and the casts go. A convolution keeps its attributes.
// CHECK-LABEL: @products
// CHECK:         %[[A:.*]] = "relax.dequantize"(%arg0, %{{\w+}}, %arg2) {axis = 0 : i64}
// CHECK-SAME:      : (tensor<3x16xui8>, tensor<f32>, tensor<ui8>) -> tensor<3x16xf32>
// CHECK:         %[[B:.*]] = "relax.dequantize"(%arg1, {{.*}} : (tensor<16x8xi8>, tensor<f32>, tensor<8xi8>) ->
// CHECK-SAME:      tensor<16x8xf32>
// CHECK-NEXT:    %[[Y:.*]] = "relax.matmul"(%[[A]], %[[B]]) : (tensor<3x16xf32>, tensor<16x8xf32>) -> tensor<3x8xf32>
// CHECK:         %[[C:.*]] = "relax.conv2d"({{[^)]*}}) {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x2x4x4xf32>,
// CHECK-SAME:      tensor<3x2x3x3xf32>)
// CHECK-NEXT:    return %[[Y]], %[[C]]
func.func @products(%a: tensor<3x16xui8>, %b: tensor<16x8xi8>, %za: tensor<ui8>, %zb: tensor<8xi8>,
    %x: tensor<1x2x4x4xui8>, %w: tensor<3x2x3x3xui8>) -> (tensor<3x8xf32>, tensor<1x3x4x4xf32>) {
  %one = "relax.full"() {value = 1.0 : f64} : () -> tensor<f64>
  %0 = "relax.dequantize"(%a, %one, %za) {axis = 0 : i64}
      : (tensor<3x16xui8>, tensor<f64>, tensor<ui8>) -> tensor<3x16xf64>
  %1 = "relax.dequantize"(%b, %one, %zb) : (tensor<16x8xi8>, tensor<f64>, tensor<8xi8>) -> tensor<16x8xf64>
  %2 = "relax.matmul"(%0, %1) : (tensor<3x16xf64>, tensor<16x8xf64>) -> tensor<3x8xf64>
  %3 = "relax.astype"(%2) {dtype = i32} : (tensor<3x8xf64>) -> tensor<3x8xi32>
  %4 = "relax.astype"(%3) {dtype = f32} : (tensor<3x8xi32>) -> tensor<3x8xf32>
  %5 = "relax.dequantize"(%x, %one, %za) : (tensor<1x2x4x4xui8>, tensor<f64>, tensor<ui8>) -> tensor<1x2x4x4xf64>
  %6 = "relax.dequantize"(%w, %one, %za) : (tensor<3x2x3x3xui8>, tensor<f64>, tensor<ui8>) -> tensor<3x2x3x3xf64>
  %7 = "relax.conv2d"(%5, %6) {padding = array<i64: 1, 1, 1, 1>}
      : (tensor<1x2x4x4xf64>, tensor<3x2x3x3xf64>) -> tensor<1x3x4x4xf64>
  %8 = "relax.astype"(%7) {dtype = i32} : (tensor<1x3x4x4xf64>) -> tensor<1x3x4x4xi32>
  %9 = "relax.astype"(%8) {dtype = f32} : (tensor<1x3x4x4xi32>) -> tensor<1x3x4x4xf32>
  return %4, %9 : tensor<3x8xf32>, tensor<1x3x4x4xf32>
}

// Left alone: integers that are the result, another scale, integers of 16 bits, factors that are no integers.
// CHECK-LABEL: @leaves
// CHECK-NOT:     -> tensor<16x8xf32>
// CHECK:         return
func.func @leaves(%a: tensor<3x16xui8>, %b: tensor<16x8xi8>, %w: tensor<16x8xi16>, %d: tensor<16x8xf64>)
    -> (tensor<3x8xi32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) {
  %one = "relax.full"() {value = 1.0 : f64} : () -> tensor<f64>
  %half = "relax.full"() {value = 0.5 : f64} : () -> tensor<f64>
  %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
  %0 = "relax.dequantize"(%a, %one, %z) : (tensor<3x16xui8>, tensor<f64>, tensor<i8>) -> tensor<3x16xf64>
  %1 = "relax.dequantize"(%b, %one, %z) : (tensor<16x8xi8>, tensor<f64>, tensor<i8>) -> tensor<16x8xf64>
  %2 = "relax.matmul"(%0, %1) : (tensor<3x16xf64>, tensor<16x8xf64>) -> tensor<3x8xf64>
  %3 = "relax.astype"(%2) {dtype = i32} : (tensor<3x8xf64>) -> tensor<3x8xi32>
  %4 = "relax.dequantize"(%b, %half, %z) : (tensor<16x8xi8>, tensor<f64>, tensor<i8>) -> tensor<16x8xf64>
  %5 = "relax.matmul"(%0, %4) : (tensor<3x16xf64>, tensor<16x8xf64>) -> tensor<3x8xf64>
  %6 = "relax.astype"(%5) {dtype = i32} : (tensor<3x8xf64>) -> tensor<3x8xi32>
  %7 = "relax.astype"(%6) {dtype = f32} : (tensor<3x8xi32>) -> tensor<3x8xf32>
  %8 = "relax.dequantize"(%w, %one, %z) : (tensor<16x8xi16>, tensor<f64>, tensor<i8>) -> tensor<16x8xf64>
  %9 = "relax.matmul"(%0, %8) : (tensor<3x16xf64>, tensor<16x8xf64>) -> tensor<3x8xf64>
  %10 = "relax.astype"(%9) {dtype = i32} : (tensor<3x8xf64>) -> tensor<3x8xi32>
  %11 = "relax.astype"(%10) {dtype = f32} : (tensor<3x8xi32>) -> tensor<3x8xf32>
  %12 = "relax.matmul"(%0, %d) : (tensor<3x16xf64>, tensor<16x8xf64>) -> tensor<3x8xf64>
  %13 = "relax.astype"(%12) {dtype = i32} : (tensor<3x8xf64>) -> tensor<3x8xi32>
  %14 = "relax.astype"(%13) {dtype = f32} : (tensor<3x8xi32>) -> tensor<3x8xf32>
  return %3, %7, %11, %14 : tensor<3x8xi32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>
}
