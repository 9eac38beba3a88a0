// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @quantize_integers(%x: tensor<4xi8>, %y: tensor<f32>, %z: tensor<i8>) {
  // expected-error @+1 {{'relax.quantize' op expected a floating-point operand, got i8}}
  %0 = "relax.quantize"(%x, %y, %z) {dtype = i8} : (tensor<4xi8>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  return
}

// -----

func.func @dequantize_floats(%x: tensor<4xf32>, %y: tensor<f32>, %z: tensor<i8>) {
  // expected-error @+1 {{'relax.dequantize' op expected an integer operand, got f32}}
  %0 = "relax.dequantize"(%x, %y, %z) : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xf32>
  return
}

// -----

func.func @dequantize_truth_values(%x: tensor<4xi1>, %y: tensor<f32>, %z: tensor<i8>) {
  // expected-error @+1 {{'relax.dequantize' op expected a number as operand, got i1}}
  %0 = "relax.dequantize"(%x, %y, %z) : (tensor<4xi1>, tensor<f32>, tensor<i8>) -> tensor<4xf32>
  return
}

// -----

func.func @integer_scale(%x: tensor<4xf32>, %y: tensor<i8>, %z: tensor<i8>) {
  // expected-error @+1 {{'relax.quantize' op expected a floating-point scale, got i8}}
  %0 = "relax.quantize"(%x, %y, %z) {dtype = i8} : (tensor<4xf32>, tensor<i8>, tensor<i8>) -> tensor<4xi8>
  return
}

// -----

func.func @float_zero_point(%x: tensor<4xf32>, %y: tensor<f32>, %z: tensor<f32>) {
  // expected-error @+1 {{'relax.quantize' op expected an integer zero point, got f32}}
  %0 = "relax.quantize"(%x, %y, %z) {dtype = i8} : (tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4xi8>
  return
}

// -----

func.func @truth_value_zero_point(%x: tensor<4xi8>, %y: tensor<f32>, %z: tensor<i1>) {
  // expected-error @+1 {{'relax.dequantize' op expected a number as zero point, got i1}}
  %0 = "relax.dequantize"(%x, %y, %z) : (tensor<4xi8>, tensor<f32>, tensor<i1>) -> tensor<4xf32>
  return
}

// -----

func.func @axis(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<i8>) {
  // expected-error @+1 {{'relax.quantize' op expected axis in [-1, 1), got 1}}
  %0 = "relax.quantize"(%x, %y, %z) {axis = 1 : i64, dtype = i8} : (tensor<4xf32>, tensor<4xf32>, tensor<i8>) -> tensor<4xi8>
  return
}

// -----

func.func @scale_per_channel(%x: tensor<4x5xf32>, %y: tensor<4xf32>, %z: tensor<i8>) {
  // expected-error @+1 {{'relax.quantize' op expected a scale of shape [] or [5] or blocks of [4, 5], got [4]}}
  %0 = "relax.quantize"(%x, %y, %z) {dtype = i8} : (tensor<4x5xf32>, tensor<4xf32>, tensor<i8>) -> tensor<4x5xi8>
  return
}

// -----

func.func @zero_point_per_channel(%x: tensor<4x5xi8>, %y: tensor<4xf32>, %z: tensor<4x2xi8>) {
  // expected-error @+1 {{'relax.dequantize' op expected a zero point of shape [] or [4] or blocks of [4, 5], got [4, 2]}}
  %0 = "relax.dequantize"(%x, %y, %z) {axis = 0 : i64} : (tensor<4x5xi8>, tensor<4xf32>, tensor<4x2xi8>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scale_of_a_scalar(%x: tensor<i8>, %y: tensor<1xf32>, %z: tensor<i8>) {
  // expected-error @+1 {{'relax.dequantize' op expected a scale of shape [] or blocks of [], got [1]}}
  %0 = "relax.dequantize"(%x, %y, %z) : (tensor<i8>, tensor<1xf32>, tensor<i8>) -> tensor<f32>
  return
}

// -----

func.func @zero_point_of_a_scalar(%x: tensor<i8>, %y: tensor<f32>, %z: tensor<1xi8>) {
  // expected-error @+1 {{'relax.dequantize' op expected a zero point of shape [] or blocks of [], got [1]}}
  %0 = "relax.dequantize"(%x, %y, %z) : (tensor<i8>, tensor<f32>, tensor<1xi8>) -> tensor<f32>
  return
}

// -----

func.func @float_dtype(%x: tensor<4xf32>, %y: tensor<f32>, %z: tensor<i8>) {
  // expected-error @+1 {{'relax.quantize' op expected an integer dtype, got f16}}
  %0 = "relax.quantize"(%x, %y, %z) {dtype = f16} : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xf16>
  return
}

// -----

func.func @truth_value_dtype(%x: tensor<4xf32>, %y: tensor<f32>, %z: tensor<i8>) {
  // expected-error @+1 {{'relax.quantize' op expected a number as dtype, got i1}}
  %0 = "relax.quantize"(%x, %y, %z) {dtype = i1} : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xi1>
  return
}

// -----

func.func @nibbles_of_bytes(%x: tensor<4xi8>) {
  // expected-error @+1 {{'relax.pack_nibbles' op expected a four-bit integer operand, got i8}}
  %0 = "relax.pack_nibbles"(%x) {dtype = ui8} : (tensor<4xi8>) -> tensor<2xui8>
  return
}

// -----

func.func @nibbles_of_a_scalar(%x: tensor<i4>) {
  // expected-error @+1 {{'relax.pack_nibbles' op expected an operand of rank 1 or more, got a scalar}}
  %0 = "relax.pack_nibbles"(%x) {dtype = ui8} : (tensor<i4>) -> tensor<ui8>
  return
}

// -----

func.func @nibbles_axis(%x: tensor<4xi4>) {
  // expected-error @+1 {{'relax.pack_nibbles' op expected axis in [-1, 1), got 1}}
  %0 = "relax.pack_nibbles"(%x) {axis = 1 : i64, dtype = ui8} : (tensor<4xi4>) -> tensor<2xui8>
  return
}

// -----

func.func @nibbles_in_signed_bytes(%x: tensor<4xi8>) {
  // expected-error @+1 {{'relax.unpack_nibbles' op expected ui8, ui16, ui32 or ui64 as operand, got i8}}
  %0 = "relax.unpack_nibbles"(%x) {dtype = i4, size = 8 : i64} : (tensor<4xi8>) -> tensor<8xi4>
  return
}

// -----

func.func @wide_nibbles(%x: tensor<4xui8>) {
  // expected-error @+1 {{'relax.unpack_nibbles' op expected dtype i4 or ui4, got i8}}
  %0 = "relax.unpack_nibbles"(%x) {dtype = i8, size = 8 : i64} : (tensor<4xui8>) -> tensor<8xi8>
  return
}

// -----

func.func @too_many_nibbles(%x: tensor<4x2xui8>) {
  // expected-error @+1 {{'relax.unpack_nibbles' op expected a size with 2 elements in each word of axis 0, got 9 for [4, 2]}}
  %0 = "relax.unpack_nibbles"(%x) {axis = 0 : i64, dtype = i4, size = 9 : i64} : (tensor<4x2xui8>) -> tensor<9x2xi4>
  return
}

// -----

func.func @nibbles_in_signed_words(%x: tensor<8xi4>) {
  // expected-error @+1 {{'relax.pack_nibbles' op expected ui8, ui16, ui32 or ui64 as dtype, got i32}}
  %0 = "relax.pack_nibbles"(%x) {dtype = i32} : (tensor<8xi4>) -> tensor<1xi32>
  return
}
