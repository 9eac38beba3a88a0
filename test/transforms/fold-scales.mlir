// RUN: relax-opt %s --relax-fold-scales --split-input-file | filecheck %s

// The scale of the sums and the bias are divided, in place of each element.
// CHECK-LABEL: @sums
// CHECK:         %[[I:.*]] = "relax.astype"(%arg0)
// CHECK-NEXT:    %[[M:.*]] = "relax.divide"(%arg1, %arg3) : (tensor<16x1x1xf32>, tensor<f32>) -> tensor<16x1x1xf32>
// CHECK-NEXT:    %[[P:.*]] = "relax.multiply"(%[[I]], %[[M]])
// CHECK-NEXT:    %[[B:.*]] = "relax.divide"(%arg2, %arg3)
// CHECK-NEXT:    %[[Y:.*]] = "relax.add"(%[[P]], %[[B]])
// CHECK-NEXT:    %[[ONE:.*]] = "relax.full"() {value = 1.{{0*}}e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT:    %[[Q:.*]] = "relax.quantize"(%[[Y]], %[[ONE]], %arg4) {axis = 1 : i64, dtype = ui8}
// CHECK-NEXT:    return %[[Q]]
func.func @sums(%x: tensor<1x16x4x4xi32>, %m: tensor<16x1x1xf32> {relax.name = "m"},
    %b: tensor<16x1x1xf32> {relax.name = "b"}, %s: tensor<f32> {relax.name = "s"},
    %z: tensor<ui8> {relax.name = "z"}) -> tensor<1x16x4x4xui8> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.astype"(%x) {dtype = f32} : (tensor<1x16x4x4xi32>) -> tensor<1x16x4x4xf32>
  %1 = "relax.multiply"(%0, %m) : (tensor<1x16x4x4xf32>, tensor<16x1x1xf32>) -> tensor<1x16x4x4xf32>
  %2 = "relax.add"(%1, %b) : (tensor<1x16x4x4xf32>, tensor<16x1x1xf32>) -> tensor<1x16x4x4xf32>
  %3 = "relax.quantize"(%2, %s, %z) {axis = 1 : i64, dtype = ui8}
      : (tensor<1x16x4x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x16x4x4xui8>
  return %3 : tensor<1x16x4x4xui8>
}

// -----

// A residual: what else reads a dequantized operand reads the old one; a scale of 16 bits is widened.
// CHECK-LABEL: @residual
// CHECK:         %[[OLD:.*]] = "relax.dequantize"(%arg0, %arg2, %arg4) {axis = 0 : i64, out_dtype = f32}
// CHECK:         %[[W:.*]] = "relax.astype"(%arg2) {dtype = f32} : (tensor<bf16>) -> tensor<f32>
// CHECK-NEXT:    %[[S:.*]] = "relax.divide"(%[[W]], %arg3)
// CHECK-NEXT:    %[[A:.*]] = "relax.dequantize"(%arg0, %[[S]], %arg4) {axis = 0 : i64}
// CHECK-NEXT:    %[[M:.*]] = "relax.divide"(%arg5, %arg3)
// CHECK-NEXT:    %[[P:.*]] = "relax.multiply"(%{{\w+}}, %[[M]])
// CHECK-NEXT:    %[[Y:.*]] = "relax.subtract"(%[[A]], %[[P]])
// CHECK:         %[[Q:.*]] = "relax.quantize"(%[[Y]],
// CHECK:         return %[[Q]], %[[OLD]]
func.func @residual(%q: tensor<2x8xi8>, %x: tensor<2x8xi32>, %t: tensor<bf16> {relax.name = "t"},
    %s: tensor<f32> {relax.name = "s"}, %z: tensor<i8> {relax.name = "z"}, %m: tensor<8xf32> {relax.name = "m"})
    -> (tensor<2x8xi8>, tensor<2x8xf32>) attributes {relax.num_input = 2 : i64} {
  %0 = "relax.dequantize"(%q, %t, %z) {axis = 0 : i64, out_dtype = f32}
      : (tensor<2x8xi8>, tensor<bf16>, tensor<i8>) -> tensor<2x8xf32>
  %1 = "relax.astype"(%x) {dtype = f32} : (tensor<2x8xi32>) -> tensor<2x8xf32>
  %2 = "relax.multiply"(%m, %1) : (tensor<8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %3 = "relax.subtract"(%0, %2) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %4 = "relax.quantize"(%3, %s, %z) {dtype = i8} : (tensor<2x8xf32>, tensor<f32>, tensor<i8>) -> tensor<2x8xi8>
  return %4, %0 : tensor<2x8xi8>, tensor<2x8xf32>
}

// -----

// Left alone: a scale that is an input, one per channel, a sum that is read twice, products of floats, a factor that is
// an input, a function without weights.
// CHECK-LABEL: @leaves
// CHECK-NOT:     relax.divide
// CHECK:         return
// CHECK-LABEL: @without
// CHECK-NOT:     relax.divide
// CHECK:         return
func.func @leaves(%x: tensor<2x8xi32>, %f: tensor<2x8xf32>, %i: tensor<f32>, %s: tensor<f32> {relax.name = "s"},
    %c: tensor<8xf32> {relax.name = "c"}) -> (tensor<2x8xi8>, tensor<2x8xi8>, tensor<2x8xi8>, tensor<2x8xf32>,
    tensor<2x8xi8>, tensor<2x8xi8>) attributes {relax.num_input = 3 : i64} {
  %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
  %0 = "relax.astype"(%x) {dtype = f32} : (tensor<2x8xi32>) -> tensor<2x8xf32>
  %1 = "relax.multiply"(%0, %c) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %2 = "relax.quantize"(%1, %i, %z) {dtype = i8} : (tensor<2x8xf32>, tensor<f32>, tensor<i8>) -> tensor<2x8xi8>
  %3 = "relax.multiply"(%0, %c) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %4 = "relax.quantize"(%3, %c, %z) {dtype = i8} : (tensor<2x8xf32>, tensor<8xf32>, tensor<i8>) -> tensor<2x8xi8>
  %5 = "relax.add"(%0, %c) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %6 = "relax.multiply"(%0, %s) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %7 = "relax.quantize"(%6, %s, %z) {dtype = i8} : (tensor<2x8xf32>, tensor<f32>, tensor<i8>) -> tensor<2x8xi8>
  %8 = "relax.multiply"(%f, %c) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %9 = "relax.quantize"(%8, %s, %z) {dtype = i8} : (tensor<2x8xf32>, tensor<f32>, tensor<i8>) -> tensor<2x8xi8>
  %10 = "relax.multiply"(%0, %i) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %11 = "relax.quantize"(%10, %s, %z) {dtype = i8} : (tensor<2x8xf32>, tensor<f32>, tensor<i8>) -> tensor<2x8xi8>
  return %2, %4, %7, %6, %9, %11 : tensor<2x8xi8>, tensor<2x8xi8>, tensor<2x8xi8>, tensor<2x8xf32>, tensor<2x8xi8>,
      tensor<2x8xi8>
}

func.func @without(%x: tensor<2x8xi32>, %m: tensor<8xf32>, %s: tensor<f32>, %z: tensor<i8>) -> tensor<2x8xi8> {
  %0 = "relax.astype"(%x) {dtype = f32} : (tensor<2x8xi32>) -> tensor<2x8xf32>
  %1 = "relax.multiply"(%0, %m) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %2 = "relax.quantize"(%1, %s, %z) {dtype = i8} : (tensor<2x8xf32>, tensor<f32>, tensor<i8>) -> tensor<2x8xi8>
  return %2 : tensor<2x8xi8>
}
