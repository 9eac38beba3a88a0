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
  %0 = "relax.quantize"(%x, %y, %z) {axis = 1 : i64, dtype = i8} : (tensor<4xf32>, tensor<4xf32>, tensor<i8>)
      -> tensor<4xi8>
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
// expected-error@+1 {{'relax.dequantize' op expected a zero point of shape [] or [4] or blocks of [4, 5], got [4, 2]}}
  %0 = "relax.dequantize"(%x, %y, %z) {axis = 0 : i64} : (tensor<4x5xi8>, tensor<4xf32>, tensor<4x2xi8>)
      -> tensor<4x5xf32>
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

func.func @nibbles_in_other_words(%x: tensor<2x16x8xi4>) {
  // expected-error @+1 {{'relax.pack_nibbles' op expected a layout of words u4x2, got 'tile 8, u4x8'}}
  %0 = "relax.pack_nibbles"(%x) {axis = 1 : i64, dtype = ui8, layout = "tile 8, u4x8"} : (tensor<2x16x8xi4>)
      -> tensor<2x8x8xui8>
  return
}

// -----

func.func @nibbles_of_columns(%x: tensor<2x16x8xi4>) {
  // expected-error @+1 {{'relax.pack_nibbles' op expected rows, axis 1, of a weight packed as 'tile 8, u4x8', got axis 2 of [2, 16, 8]}}
  %0 = "relax.pack_nibbles"(%x) {dtype = ui32, layout = "tile 8, u4x8"} : (tensor<2x16x8xi4>) -> tensor<2x16x1xui32>
  return
}

// -----

func.func @nibbles_in_signed_words(%x: tensor<8xi4>) {
  // expected-error @+1 {{'relax.pack_nibbles' op expected ui8, ui16, ui32 or ui64 as dtype, got i32}}
  %0 = "relax.pack_nibbles"(%x) {dtype = i32} : (tensor<8xi4>) -> tensor<1xi32>
  return
}

// -----

func.func @planes_of_nibbles(%low: tensor<2x5x8xui32>, %high: tensor<2x5x8xui32>) {
  // expected-error @+1 {{'relax.unpack_planes' op expected a layout such as 'tile 16, rows 8, u2x16', got 'tile 8, u4x8'}}
  %0 = "relax.unpack_planes"(%low, %high) {layout = "tile 8, u4x8", size = 40 : i64}
      : (tensor<2x5x8xui32>, tensor<2x5x8xui32>) -> tensor<2x40x8xui8>
  return
}

// -----

func.func @planes_of_bytes(%low: tensor<2x20x8xui8>, %high: tensor<2x3x8xui32>) {
  // expected-error @+1 {{'relax.unpack_planes' op expected low of ui32, got ui8}}
  %0 = "relax.unpack_planes"(%low, %high) {layout = "tile 8, rows 8, u2x16", size = 40 : i64}
      : (tensor<2x20x8xui8>, tensor<2x3x8xui32>) -> tensor<2x40x8xui8>
  return
}

// -----

func.func @planes_of_a_matrix(%low: tensor<2x5x8xui32>, %high: tensor<3x8xui32>) {
  // expected-error @+1 {{'relax.unpack_planes' op expected high of rank 3, got 2}}
  %0 = "relax.unpack_planes"(%low, %high) {layout = "tile 8, rows 8, u2x16", size = 40 : i64}
      : (tensor<2x5x8xui32>, tensor<3x8xui32>) -> tensor<2x40x8xui8>
  return
}

// -----

func.func @planes_of_other_sizes(%low: tensor<2x5x8xui32>, %high: tensor<2x2x8xui32>) {
  // expected-error @+1 {{'relax.unpack_planes' op expected high of shape [2, 3, 8], got [2, 2, 8]}}
  %0 = "relax.unpack_planes"(%low, %high) {layout = "tile 8, rows 8, u2x16", size = 40 : i64}
      : (tensor<2x5x8xui32>, tensor<2x2x8xui32>) -> tensor<2x40x8xui8>
  return
}

// -----

func.func @product_of_groups_that_share_no_columns(%x: tensor<3x16xi8>, %s: tensor<3x2xf32>, %t: tensor<3x2xi32>,
    %w: tensor<2x4x8x4xui8>, %v: tensor<2x2x8xf32>, %z: tensor<i32>, %ends: tensor<5xi64>) {
  // expected-error @+1 {{'relax.quantized_grouped_matmul' op expected columns that 5 groups share equally, got 12}}
  %0 = "relax.quantized_grouped_matmul"(%x, %s, %t, %w, %v, %z, %ends) {layout = "tile 8, rows 4", n = 12 : i64}
      : (tensor<3x16xi8>, tensor<3x2xf32>, tensor<3x2xi32>, tensor<2x4x8x4xui8>, tensor<2x2x8xf32>, tensor<i32>,
      tensor<5xi64>) -> tensor<3x2xf32>
  return
}

// -----

func.func @product_of_parts_of_no_rows(%x: tensor<16xi8>, %s: tensor<2xf32>, %t: tensor<2xi32>, %w: tensor<2x4x8x4xui8>,
    %v: tensor<2x2x8xf32>, %z: tensor<i32>) {
  // expected-error @+1 {{'relax.quantized_matmul' op expected x of at least 2 dimensions, got 1}}
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4", n = 12 : i64, parts = true}
      : (tensor<16xi8>, tensor<2xf32>, tensor<2xi32>, tensor<2x4x8x4xui8>, tensor<2x2x8xf32>, tensor<i32>)
      -> tensor<12xf32>
  return
}

// -----

func.func @product_of_parts_of_groups(%x: tensor<3x16xi8>, %s: tensor<3x2xf32>, %t: tensor<3x2xi32>,
    %w: tensor<2x4x8x4xui8>, %v: tensor<2x2x8xf32>, %z: tensor<i32>, %ends: tensor<3xi64>) {
  // expected-error @+1 {{'relax.quantized_grouped_matmul' op expected operand of rank 3, got 2}}
  %0 = "relax.quantized_grouped_matmul"(%x, %s, %t, %w, %v, %z, %ends)
      {layout = "tile 8, rows 4", n = 12 : i64, parts = true}
      : (tensor<3x16xi8>, tensor<3x2xf32>, tensor<3x2xi32>, tensor<2x4x8x4xui8>, tensor<2x2x8xf32>, tensor<i32>,
      tensor<3xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @product_of_unsigned_rows(%x: tensor<16xui8>, %s: tensor<2xf32>, %t: tensor<2xi32>, %w: tensor<2x4x8x4xui8>,
    %v: tensor<2x2x8xf32>, %z: tensor<i32>) {
  // expected-error @+1 {{'relax.quantized_matmul' op expected x of i8, got ui8}}
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4", n = 12 : i64}
      : (tensor<16xui8>, tensor<2xf32>, tensor<2xi32>, tensor<2x4x8x4xui8>, tensor<2x2x8xf32>, tensor<i32>)
      -> tensor<12xf32>
  return
}

// -----

func.func @product_with_wide_scales(%x: tensor<16xi8>, %s: tensor<2xf32>, %t: tensor<2xi32>, %w: tensor<2x4x8x4xui8>,
    %v: tensor<2x2x8xf64>, %z: tensor<i32>) {
  // expected-error @+1 {{'relax.quantized_matmul' op expected scale of f32, f16 or bf16, got f64}}
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4", n = 12 : i64}
      : (tensor<16xi8>, tensor<2xf32>, tensor<2xi32>, tensor<2x4x8x4xui8>, tensor<2x2x8xf64>, tensor<i32>)
      -> tensor<12xf32>
  return
}

// -----

func.func @product_with_float_zeros(%x: tensor<16xi8>, %s: tensor<2xf32>, %t: tensor<2xi32>, %w: tensor<2x4x8x4xui8>,
    %v: tensor<2x2x8xf32>, %z: tensor<f32>) {
  // expected-error @+1 {{'relax.quantized_matmul' op expected an integer zero, got f32}}
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4", n = 12 : i64}
      : (tensor<16xi8>, tensor<2xf32>, tensor<2xi32>, tensor<2x4x8x4xui8>, tensor<2x2x8xf32>, tensor<f32>)
      -> tensor<12xf32>
  return
}

// -----

func.func @product_of_uneven_groups(%x: tensor<16xi8>, %s: tensor<2xf32>, %t: tensor<2xi32>, %w: tensor<2x4x8x4xui8>,
    %v: tensor<2x3x8xf32>, %z: tensor<i32>) {
  // expected-error @+1 {{'relax.quantized_matmul' op expected groups of at most 65536 of k, got [3] for [16]}}
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4", n = 12 : i64}
      : (tensor<16xi8>, tensor<2xf32>, tensor<2xi32>, tensor<2x4x8x4xui8>, tensor<2x3x8xf32>, tensor<i32>)
      -> tensor<12xf32>
  return
}

// -----

func.func @product_of_long_groups(%x: tensor<65540xi8>, %s: tensor<1xf32>, %t: tensor<1xi32>,
    %w: tensor<2x16385x8x4xui8>, %v: tensor<2x1x8xf32>, %z: tensor<i32>) {
  // expected-error @+1 {{'relax.quantized_matmul' op expected groups of at most 65536 of k, got [1] for [65540]}}
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4", n = 12 : i64}
      : (tensor<65540xi8>, tensor<1xf32>, tensor<1xi32>, tensor<2x16385x8x4xui8>, tensor<2x1x8xf32>, tensor<i32>)
      -> tensor<12xf32>
  return
}

// -----

func.func @product_of_panels_of_unknown_number(%x: tensor<16xi8>, %s: tensor<2xf32>, %t: tensor<2xi32>,
    %w: tensor<2x4x8x4xui8>, %v: tensor<?x2x8xf32>, %z: tensor<i32>) {
  // expected-error @+1 {{'relax.quantized_matmul' op expected a packed weight of static panels, got a dynamic number of them}}
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4", n = 12 : i64}
      : (tensor<16xi8>, tensor<2xf32>, tensor<2xi32>, tensor<2x4x8x4xui8>, tensor<?x2x8xf32>, tensor<i32>)
      -> tensor<12xf32>
  return
}

// -----

func.func @product_without_sums(%x: tensor<16xi8>, %s: tensor<2xf32>, %t: tensor<1xi32>, %w: tensor<2x4x8x4xui8>,
    %v: tensor<2x2x8xf32>, %z: tensor<i32>) {
  // expected-error @+1 {{'relax.quantized_matmul' op expected x_sum of shape [2], got [1]}}
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4", n = 12 : i64}
      : (tensor<16xi8>, tensor<2xf32>, tensor<1xi32>, tensor<2x4x8x4xui8>, tensor<2x2x8xf32>, tensor<i32>)
      -> tensor<12xf32>
  return
}

// -----

func.func @product_of_signed_words(%x: tensor<16xi8>, %s: tensor<2xf32>, %t: tensor<2xi32>, %w: tensor<2x2x8xi32>,
    %v: tensor<2x2x8xf32>, %z: tensor<i32>) {
  // expected-error @+1 {{'relax.quantized_matmul' op expected a weight of ui32 for layout 'tile 8, rows 4, u4x8', got i32}}
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4, u4x8", n = 12 : i64}
      : (tensor<16xi8>, tensor<2xf32>, tensor<2xi32>, tensor<2x2x8xi32>, tensor<2x2x8xf32>, tensor<i32>)
      -> tensor<12xf32>
  return
}

// -----

func.func @product_of_wide_weights(%x: tensor<16xi8>, %s: tensor<2xf32>, %t: tensor<2xi32>, %w: tensor<2x4x8x4xi16>,
    %v: tensor<2x2x8xf32>, %z: tensor<i32>) {
// expected-error@+1 {{'relax.quantized_matmul' op expected a weight of i8 or ui8 for layout 'tile 8, rows 4', got i16}}
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4", n = 12 : i64}
      : (tensor<16xi8>, tensor<2xf32>, tensor<2xi32>, tensor<2x4x8x4xi16>, tensor<2x2x8xf32>, tensor<i32>)
      -> tensor<12xf32>
  return
}

// -----

func.func @product_of_three_rows(%x: tensor<16xi8>, %s: tensor<2xf32>, %t: tensor<2xi32>, %w: tensor<2x4x8x4xui8>,
    %v: tensor<2x2x8xf32>, %z: tensor<i32>) {
  // expected-error @+1 {{'relax.quantized_matmul' op expected a layout of 2 or 4 rows, got 'tile 8, rows 3'}}
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 3", n = 12 : i64}
      : (tensor<16xi8>, tensor<2xf32>, tensor<2xi32>, tensor<2x4x8x4xui8>, tensor<2x2x8xf32>, tensor<i32>)
      -> tensor<12xf32>
  return
}

// -----

func.func @product_of_short_groups(%x: tensor<16xi8>, %s: tensor<4xf32>, %t: tensor<4xi32>, %w: tensor<2x2x8xui32>,
    %v: tensor<2x4x8xf32>, %z: tensor<i32>) {
  // expected-error @+1 {{'relax.quantized_matmul' op expected groups of a multiple of 8 rows, got 4}}
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4, u4x8", n = 12 : i64}
      : (tensor<16xi8>, tensor<4xf32>, tensor<4xi32>, tensor<2x2x8xui32>, tensor<2x4x8xf32>, tensor<i32>)
      -> tensor<12xf32>
  return
}

// -----

func.func @product_of_other_weights(%x: tensor<16xi8>, %s: tensor<2xf32>, %t: tensor<2xi32>, %w: tensor<2x3x8x4xui8>,
    %v: tensor<2x2x8xf32>, %z: tensor<i32>) {
  // expected-error @+1 {{'relax.quantized_matmul' op expected weight of shape [2, 4, 8, 4], got [2, 3, 8, 4]}}
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4", n = 12 : i64}
      : (tensor<16xi8>, tensor<2xf32>, tensor<2xi32>, tensor<2x3x8x4xui8>, tensor<2x2x8xf32>, tensor<i32>)
      -> tensor<12xf32>
  return
}

// -----

func.func @product_of_too_many_columns(%x: tensor<16xi8>, %s: tensor<2xf32>, %t: tensor<2xi32>, %w: tensor<2x4x8x4xui8>,
    %v: tensor<2x2x8xf32>, %z: tensor<i32>) {
  // expected-error @+1 {{'relax.quantized_matmul' op expected n in (8, 16] for 2 panels of 8, got 17}}
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4", n = 17 : i64}
      : (tensor<16xi8>, tensor<2xf32>, tensor<2xi32>, tensor<2x4x8x4xui8>, tensor<2x2x8xf32>, tensor<i32>)
      -> tensor<17xf32>
  return
}

// -----

func.func @product_of_integer_results(%x: tensor<16xi8>, %s: tensor<2xf32>, %t: tensor<2xi32>, %w: tensor<2x4x8x4xui8>,
    %v: tensor<2x2x8xf32>, %z: tensor<i32>) {
  // expected-error @+1 {{'relax.quantized_matmul' op expected a floating-point out_dtype, got i8}}
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4", n = 12 : i64, out_dtype = i8}
      : (tensor<16xi8>, tensor<2xf32>, tensor<2xi32>, tensor<2x4x8x4xui8>, tensor<2x2x8xf32>, tensor<i32>)
      -> tensor<12xi8>
  return
}

// -----

func.func @rounded_to_integers(%x: tensor<4xi8>, %y: tensor<f32>, %z: tensor<i8>) {
  // expected-error @+1 {{'relax.dequantize' op expected a floating-point out_dtype, got i8}}
  %0 = "relax.dequantize"(%x, %y, %z) {out_dtype = i8} : (tensor<4xi8>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  return
}

// -----

func.func @signed_codes(%x: tensor<4xi4>, %y: tensor<16xf32>) {
  // expected-error @+1 {{'relax.look_up' op expected codes of ui4 or ui8, got i4}}
  %0 = "relax.look_up"(%x, %y) : (tensor<4xi4>, tensor<16xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @table_of_another_size(%x: tensor<4xui8>, %y: tensor<16xf32>) {
  // expected-error @+1 {{'relax.look_up' op expected a table of shape [256], got [16]}}
  %0 = "relax.look_up"(%x, %y) : (tensor<4xui8>, tensor<16xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @table_of_integers(%x: tensor<4xui4>, %y: tensor<16xi8>) {
  // expected-error @+1 {{'relax.look_up' op expected a floating-point table, got i8}}
  %0 = "relax.look_up"(%x, %y) : (tensor<4xui4>, tensor<16xi8>) -> tensor<4xi8>
  return
}

// -----

func.func @convolution_of_words(%x: tensor<1x4x8x8xi16>, %w: tensor<6x4x3x3xi8>, %z: tensor<i16>) {
  // expected-error @+1 {{'relax.quantized_conv2d' op expected x of i8 or ui8, got i16}}
  %0 = "relax.quantized_conv2d"(%x, %w, %z) {}
      : (tensor<1x4x8x8xi16>, tensor<6x4x3x3xi8>, tensor<i16>) -> tensor<1x6x6x6xi32>
  return
}

// -----

func.func @convolution_with_words(%x: tensor<1x4x8x8xi8>, %w: tensor<6x4x3x3xi32>, %z: tensor<i8>) {
  // expected-error @+1 {{'relax.quantized_conv2d' op expected a weight of i8 or ui8, got i32}}
  %0 = "relax.quantized_conv2d"(%x, %w, %z) {}
      : (tensor<1x4x8x8xi8>, tensor<6x4x3x3xi32>, tensor<i8>) -> tensor<1x6x6x6xi32>
  return
}

// -----

func.func @padding_of_another_type(%x: tensor<1x4x8x8xi8>, %w: tensor<6x4x3x3xi8>, %z: tensor<4xi8>) {
  // expected-error @+1 {{'relax.quantized_conv2d' op expected a scalar i8 as zero, got 4xi8}}
  %0 = "relax.quantized_conv2d"(%x, %w, %z) {}
      : (tensor<1x4x8x8xi8>, tensor<6x4x3x3xi8>, tensor<4xi8>) -> tensor<1x6x6x6xi32>
  return
}

// -----

func.func @long_filters(%x: tensor<1x4096x8x8xi8>, %w: tensor<6x4096x5x5xi8>, %z: tensor<i8>) {
  // expected-error @+1 {{'relax.quantized_conv2d' op expected filters of at most 65536 elements, got [4096, 5, 5]}}
  %0 = "relax.quantized_conv2d"(%x, %w, %z) {}
      : (tensor<1x4096x8x8xi8>, tensor<6x4096x5x5xi8>, tensor<i8>) -> tensor<1x6x4x4xi32>
  return
}

// -----

func.func @packed_filters_of_another_size(%x: tensor<1x5x6x4xui8>, %w: tensor<2x8x8x4xi8>, %z: tensor<ui8>) {
  // expected-error @+1 {{'relax.packed_quantized_conv2d' op expected filters of 3 by 3 elements, got [2, 8, 8, 4]}}
  %0 = "relax.packed_quantized_conv2d"(%x, %w, %z) {channels = 12 : i64, kernel_size = array<i64: 3, 3>,
      layout = "tile 8, rows 4"}
      : (tensor<1x5x6x4xui8>, tensor<2x8x8x4xi8>, tensor<ui8>) -> tensor<1x3x4x12xi32>
  return
}

// -----

func.func @groups_of_parts_of_panels(%x: tensor<1x5x6x12xui8>, %w: tensor<2x9x8x4xi8>, %z: tensor<ui8>) {
  // expected-error @+1 {{'relax.packed_quantized_conv2d' op expected groups of whole panels, got 12 channels in 3 groups, panels of 8}}
  %0 = "relax.packed_quantized_conv2d"(%x, %w, %z) {channels = 12 : i64, groups = 3 : i64,
      kernel_size = array<i64: 3, 3>, layout = "tile 8, rows 4"}
      : (tensor<1x5x6x12xui8>, tensor<2x9x8x4xi8>, tensor<ui8>) -> tensor<1x3x4x12xi32>
  return
}

// -----

func.func @image_of_fewer_channels(%x: tensor<1x5x6x4xui8>, %w: tensor<2x18x8x4xi8>, %z: tensor<ui8>) {
  // expected-error @+1 {{'relax.packed_quantized_conv2d' op expected at most 3 channels less than the 8 of the filters, got [1, 5, 6, 4]}}
  %0 = "relax.packed_quantized_conv2d"(%x, %w, %z) {channels = 12 : i64, kernel_size = array<i64: 3, 3>,
      layout = "tile 8, rows 4"}
      : (tensor<1x5x6x4xui8>, tensor<2x18x8x4xi8>, tensor<ui8>) -> tensor<1x3x4x12xi32>
  return
}

// -----

func.func @packed_in_words(%x: tensor<1x5x6x4xui8>, %w: tensor<2x9x8xui32>, %z: tensor<ui8>) {
  // expected-error @+1 {{'relax.packed_quantized_conv2d' op expected a layout of a tile and rows alone, got 'tile 8, rows 4, u4x8'}}
  %0 = "relax.packed_quantized_conv2d"(%x, %w, %z) {channels = 12 : i64, kernel_size = array<i64: 3, 3>,
      layout = "tile 8, rows 4, u4x8"}
      : (tensor<1x5x6x4xui8>, tensor<2x9x8xui32>, tensor<ui8>) -> tensor<1x3x4x12xi32>
  return
}
