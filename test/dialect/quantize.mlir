// RUN: relax-opt %s | relax-opt | filecheck %s

// CHECK-LABEL: func.func @quantize(
// CHECK: "relax.quantize"(%{{\w+}}, %{{\w+}}, %{{\w+}}) {dtype = i4} : (tensor<4x5xf32>, tensor<5xf32>, tensor<i8>)
// CHECK-SAME: -> tensor<4x5xi4>
func.func @quantize(%x: tensor<4x5xf32>, %y: tensor<5xf32>, %z: tensor<i8>) {
  %0 = "relax.quantize"(%x, %y, %z) {dtype = i4} : (tensor<4x5xf32>, tensor<5xf32>, tensor<i8>) -> tensor<4x5xi4>
  return
}

// CHECK-LABEL: func.func @quantize_2(
// CHECK: "relax.quantize"(%{{\w+}}, %{{\w+}}, %{{\w+}}) {axis = 0 : i64, dtype = i8}
// CHECK-SAME: : (tensor<?x4xf32, {sym = ["n"]}>, tensor<f32>, tensor<i32>) -> tensor<?x4xi8, {sym = ["n"]}>
func.func @quantize_2(%x: tensor<?x4xf32, {sym = ["n"]}>, %y: tensor<f32>, %z: tensor<i32>) {
  %0 = "relax.quantize"(%x, %y, %z) {axis = 0 : i64, dtype = i8}
      : (tensor<?x4xf32, {sym = ["n"]}>, tensor<f32>, tensor<i32>) -> tensor<?x4xi8, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @dequantize(
// CHECK: "relax.dequantize"(%{{\w+}}, %{{\w+}}, %{{\w+}}) {axis = 0 : i64}
// CHECK-SAME: : (tensor<4x5xui8>, tensor<4xf16>, tensor<4xui8>) -> tensor<4x5xf16>
func.func @dequantize(%x: tensor<4x5xui8>, %y: tensor<4xf16>, %z: tensor<4xui8>) {
  %0 = "relax.dequantize"(%x, %y, %z) {axis = 0 : i64} : (tensor<4x5xui8>, tensor<4xf16>, tensor<4xui8>)
      -> tensor<4x5xf16>
  return
}

// One scale per group of two rows, one zero point per row.
// CHECK-LABEL: func.func @dequantize_blocks(
// CHECK: "relax.dequantize"(%{{\w+}}, %{{\w+}}, %{{\w+}}) : (tensor<4x5xi4>, tensor<2x5xf32>, tensor<4x1xi4>)
// CHECK-SAME: -> tensor<4x5xf32>
func.func @dequantize_blocks(%x: tensor<4x5xi4>, %y: tensor<2x5xf32>, %z: tensor<4x1xi4>) {
  %0 = "relax.dequantize"(%x, %y, %z) : (tensor<4x5xi4>, tensor<2x5xf32>, tensor<4x1xi4>) -> tensor<4x5xf32>
  return
}

// Blocks of two with a minimum each; the result is rounded to bf16.
// CHECK-LABEL: func.func @dequantize_floats(
// CHECK: "relax.dequantize"(%{{\w+}}, %{{\w+}}, %{{\w+}}) {out_dtype = bf16} : (tensor<4x6xf8E4M3FN>, tensor<4x3xf32>
// CHECK-SAME: tensor<1x3xf16>) -> tensor<4x6xbf16>
func.func @dequantize_floats(%x: tensor<4x6xf8E4M3FN>, %y: tensor<4x3xf32>, %z: tensor<1x3xf16>) {
  %0 = "relax.dequantize"(%x, %y, %z) {out_dtype = bf16} : (tensor<4x6xf8E4M3FN>, tensor<4x3xf32>, tensor<1x3xf16>)
      -> tensor<4x6xbf16>
  return
}

// CHECK-LABEL: func.func @look_up(
// CHECK: "relax.look_up"(%{{\w+}}, %{{\w+}}) : (tensor<?x4xui4, {sym = ["n"]}>, tensor<16xf32>)
// CHECK-SAME: -> tensor<?x4xf32, {sym = ["n"]}>
func.func @look_up(%x: tensor<?x4xui4, {sym = ["n"]}>, %y: tensor<16xf32>) {
  %0 = "relax.look_up"(%x, %y) : (tensor<?x4xui4, {sym = ["n"]}>, tensor<16xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @pack_nibbles(
// CHECK: "relax.pack_nibbles"(%{{.*}}) {axis = 0 : i64, dtype = ui8} : (tensor<5x3xi4>) -> tensor<3x3xui8>
func.func @pack_nibbles(%x: tensor<5x3xi4>) {
  %0 = "relax.pack_nibbles"(%x) {axis = 0 : i64, dtype = ui8} : (tensor<5x3xi4>) -> tensor<3x3xui8>
  return
}

// CHECK-LABEL: func.func @pack_nibbles_2(
// CHECK: "relax.pack_nibbles"(%{{\w+}}) {dtype = ui32} : (tensor<?x9xui4, {sym = ["n"]}>)
// CHECK-SAME: -> tensor<?x2xui32, {sym = ["n"]}>
func.func @pack_nibbles_2(%x: tensor<?x9xui4, {sym = ["n"]}>) {
  %0 = "relax.pack_nibbles"(%x) {dtype = ui32} : (tensor<?x9xui4, {sym = ["n"]}>) -> tensor<?x2xui32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @unpack_nibbles(
// CHECK: "relax.unpack_nibbles"(%{{\w+}}) {axis = 1 : i64, dtype = i4, size = 7 : i64} : (tensor<2x4x3xui8>)
// CHECK-SAME: -> tensor<2x7x3xi4>
func.func @unpack_nibbles(%x: tensor<2x4x3xui8>) {
  %0 = "relax.unpack_nibbles"(%x) {axis = 1 : i64, dtype = i4, size = 7 : i64} : (tensor<2x4x3xui8>) -> tensor<2x7x3xi4>
  return
}

// CHECK-LABEL: func.func @unpack_nibbles_2(
// CHECK: "relax.unpack_nibbles"(%{{\w+}}) {dtype = ui4, size = 12 : i64} : (tensor<?x3xui16, {sym = ["n"]}>)
// CHECK-SAME: -> tensor<?x12xui4, {sym = ["n"]}>
func.func @unpack_nibbles_2(%x: tensor<?x3xui16, {sym = ["n"]}>) {
  %0 = "relax.unpack_nibbles"(%x) {dtype = ui4, size = 12 : i64} : (tensor<?x3xui16, {sym = ["n"]}>)
      -> tensor<?x12xui4, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @pack_high_bits(
// CHECK: "relax.pack_nibbles"(%{{\w+}}) {axis = 1 : i64, dtype = ui32, layout = "tile 8, rows 8, u1x32"}
// CHECK-SAME: : (tensor<2x40x8xui4>) -> tensor<2x2x8xui32>
func.func @pack_high_bits(%x: tensor<2x40x8xui4>) {
  %0 = "relax.pack_nibbles"(%x) {axis = 1 : i64, dtype = ui32, layout = "tile 8, rows 8, u1x32"}
      : (tensor<2x40x8xui4>) -> tensor<2x2x8xui32>
  return
}

// CHECK-LABEL: func.func @unpack_planes(
// CHECK: "relax.unpack_planes"(%{{\w+}}, %{{\w+}}) {layout = "tile 8, rows 8, u2x16", size = 40 : i64}
// CHECK-SAME: : (tensor<2x5x8xui32>, tensor<2x3x8xui32>) -> tensor<2x40x8xui8>
func.func @unpack_planes(%low: tensor<2x5x8xui32>, %high: tensor<2x3x8xui32>) {
  %0 = "relax.unpack_planes"(%low, %high) {layout = "tile 8, rows 8, u2x16", size = 40 : i64}
      : (tensor<2x5x8xui32>, tensor<2x3x8xui32>) -> tensor<2x40x8xui8>
  return
}

// CHECK-LABEL: func.func @quantized_matmul(
// CHECK: "relax.quantized_matmul"(%{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK-SAME: {layout = "tile 8, rows 4", n = 12 : i64, out_dtype = bf16}
// CHECK-SAME: : (tensor<?x16xi8, {sym = ["m"]}>, tensor<?x2xf32, {sym = ["m"]}>, tensor<?x2xi32, {sym = ["m"]}>,
// CHECK-SAME: tensor<2x4x8x4xui8>, tensor<2x2x8xf32>, tensor<i32>) -> tensor<?x12xbf16, {sym = ["m"]}>
func.func @quantized_matmul(%x: tensor<?x16xi8, {sym = ["m"]}>, %s: tensor<?x2xf32, {sym = ["m"]}>,
    %t: tensor<?x2xi32, {sym = ["m"]}>, %w: tensor<2x4x8x4xui8>, %v: tensor<2x2x8xf32>, %z: tensor<i32>) {
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4", n = 12 : i64, out_dtype = bf16}
      : (tensor<?x16xi8, {sym = ["m"]}>, tensor<?x2xf32, {sym = ["m"]}>, tensor<?x2xi32, {sym = ["m"]}>,
      tensor<2x4x8x4xui8>, tensor<2x2x8xf32>, tensor<i32>) -> tensor<?x12xbf16, {sym = ["m"]}>
  return
}

// CHECK-LABEL: func.func @quantized_matmul_of_words(
// CHECK: "relax.quantized_matmul"(%{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK-SAME: {layout = "tile 8, rows 2, u4x8", n = 12 : i64}
// CHECK-SAME: : (tensor<16xi8>, tensor<2xf32>, tensor<2xi32>, tensor<2x2x8xui32>, tensor<2x2x8xf32>, tensor<2x2x8xi8>)
// CHECK-SAME: -> tensor<12xf32>
func.func @quantized_matmul_of_words(%x: tensor<16xi8>, %s: tensor<2xf32>, %t: tensor<2xi32>, %w: tensor<2x2x8xui32>,
    %v: tensor<2x2x8xf32>, %z: tensor<2x2x8xi8>) {
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 2, u4x8", n = 12 : i64}
      : (tensor<16xi8>, tensor<2xf32>, tensor<2xi32>, tensor<2x2x8xui32>, tensor<2x2x8xf32>, tensor<2x2x8xi8>)
      -> tensor<12xf32>
  return
}

// CHECK-LABEL: func.func @quantized_matmul_of_parts(
// CHECK: "relax.quantized_matmul"(%{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK-SAME: {layout = "tile 8, rows 4", n = 12 : i64, parts = true}
// CHECK-SAME: : (tensor<3x?x16xi8, {sym = ["m"]}>, tensor<3x?x1xf32, {sym = ["m"]}>, tensor<3x?x2xi32, {sym = ["m"]}>,
// CHECK-SAME: tensor<2x4x8x4xui8>, tensor<2x2x8xf32>, tensor<i32>) -> tensor<?x12xf32, {sym = ["m"]}>
// CHECK: "relax.quantized_grouped_matmul"(%{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK-SAME: {layout = "tile 8, rows 4", n = 12 : i64, parts = true}
// CHECK-SAME: -> tensor<?x4xf32, {sym = ["m"]}>
func.func @quantized_matmul_of_parts(%x: tensor<3x?x16xi8, {sym = ["m"]}>, %s: tensor<3x?x1xf32, {sym = ["m"]}>,
    %t: tensor<3x?x2xi32, {sym = ["m"]}>, %w: tensor<2x4x8x4xui8>, %v: tensor<2x2x8xf32>, %z: tensor<i32>,
    %ends: tensor<3xi64>) {
  %0 = "relax.quantized_matmul"(%x, %s, %t, %w, %v, %z) {layout = "tile 8, rows 4", n = 12 : i64, parts = true}
      : (tensor<3x?x16xi8, {sym = ["m"]}>, tensor<3x?x1xf32, {sym = ["m"]}>, tensor<3x?x2xi32, {sym = ["m"]}>,
      tensor<2x4x8x4xui8>, tensor<2x2x8xf32>, tensor<i32>) -> tensor<?x12xf32, {sym = ["m"]}>
  %1 = "relax.quantized_grouped_matmul"(%x, %s, %t, %w, %v, %z, %ends)
      {layout = "tile 8, rows 4", n = 12 : i64, parts = true}
      : (tensor<3x?x16xi8, {sym = ["m"]}>, tensor<3x?x1xf32, {sym = ["m"]}>, tensor<3x?x2xi32, {sym = ["m"]}>,
      tensor<2x4x8x4xui8>, tensor<2x2x8xf32>, tensor<i32>, tensor<3xi64>) -> tensor<?x4xf32, {sym = ["m"]}>
  return
}

// CHECK-LABEL: func.func @quantized_grouped_matmul(
// CHECK: "relax.quantized_grouped_matmul"(%{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK-SAME: {layout = "tile 8, rows 4", n = 16 : i64} : (tensor<?x16xi8, {sym = ["m"]}>,
// CHECK-SAME: tensor<?x2xf32, {sym = ["m"]}>, tensor<?x2xi32, {sym = ["m"]}>, tensor<2x4x8x4xui8>, tensor<2x2x8xf32>,
// CHECK-SAME: tensor<i32>, tensor<4xi64>) -> tensor<?x4xf32, {sym = ["m"]}>
func.func @quantized_grouped_matmul(%x: tensor<?x16xi8, {sym = ["m"]}>, %s: tensor<?x2xf32, {sym = ["m"]}>,
    %t: tensor<?x2xi32, {sym = ["m"]}>, %w: tensor<2x4x8x4xui8>, %v: tensor<2x2x8xf32>, %z: tensor<i32>,
    %ends: tensor<4xi64>) {
  %0 = "relax.quantized_grouped_matmul"(%x, %s, %t, %w, %v, %z, %ends) {layout = "tile 8, rows 4", n = 16 : i64}
      : (tensor<?x16xi8, {sym = ["m"]}>, tensor<?x2xf32, {sym = ["m"]}>, tensor<?x2xi32, {sym = ["m"]}>,
      tensor<2x4x8x4xui8>, tensor<2x2x8xf32>, tensor<i32>, tensor<4xi64>) -> tensor<?x4xf32, {sym = ["m"]}>
  return
}

// CHECK-LABEL: func.func @quantized_conv2d(
// CHECK: "relax.quantized_conv2d"(%{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK-SAME: {dilation = array<i64: 1, 2>, groups = 2 : i64, padding = array<i64: 1, 0, 2, 1>,
// CHECK-SAME: strides = array<i64: 2, 1>} : (tensor<?x4x8x9xui8, {sym = ["n"]}>, tensor<6x2x3x2xi8>, tensor<ui8>)
// CHECK-SAME: -> tensor<?x6x5x8xi32, {sym = ["n"]}>
func.func @quantized_conv2d(%x: tensor<?x4x8x9xui8, {sym = ["n"]}>, %w: tensor<6x2x3x2xi8>, %z: tensor<ui8>) {
  %0 = "relax.quantized_conv2d"(%x, %w, %z) {dilation = array<i64: 1, 2>, groups = 2 : i64,
      padding = array<i64: 1, 0, 2, 1>, strides = array<i64: 2, 1>} : (tensor<?x4x8x9xui8, {sym = ["n"]}>,
      tensor<6x2x3x2xi8>, tensor<ui8>) -> tensor<?x6x5x8xi32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @quantized_conv2d_in_nhwc(
// CHECK: "relax.quantized_conv2d"(%{{\w+}}, %{{\w+}}, %{{\w+}}) {data_layout = "NHWC", kernel_layout = "HWIO"}
func.func @quantized_conv2d_in_nhwc(%x: tensor<1x5x6x3xi8>, %w: tensor<3x3x3x4xui8>, %z: tensor<i8>) {
  %0 = "relax.quantized_conv2d"(%x, %w, %z) {data_layout = "NHWC", kernel_layout = "HWIO"}
      : (tensor<1x5x6x3xi8>, tensor<3x3x3x4xui8>, tensor<i8>) -> tensor<1x3x4x4xi32>
  return
}

// CHECK-LABEL: func.func @packed_quantized_conv2d(
// CHECK: "relax.packed_quantized_conv2d"(%{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK-SAME: {channels = 12 : i64, kernel_size = array<i64: 3, 3>, layout = "tile 8, rows 4",
// CHECK-SAME: padding = array<i64: 1, 1, 1, 1>} : (tensor<1x5x6x3xui8>, tensor<2x9x8x4xi8>, tensor<ui8>)
func.func @packed_quantized_conv2d(%x: tensor<1x5x6x3xui8>, %w: tensor<2x9x8x4xi8>, %z: tensor<ui8>) {
  %0 = "relax.packed_quantized_conv2d"(%x, %w, %z) {channels = 12 : i64, kernel_size = array<i64: 3, 3>,
      layout = "tile 8, rows 4", padding = array<i64: 1, 1, 1, 1>}
      : (tensor<1x5x6x3xui8>, tensor<2x9x8x4xi8>, tensor<ui8>) -> tensor<1x5x6x12xi32>
  return
}

// CHECK-LABEL: func.func @packed_quantized_conv2d_groups(
// CHECK: "relax.packed_quantized_conv2d"(%{{\w+}}, %{{\w+}}, %{{\w+}})
func.func @packed_quantized_conv2d_groups(%x: tensor<2x4x5x8xi8>, %w: tensor<2x2x8x2xi8>, %z: tensor<i8>) {
  %0 = "relax.packed_quantized_conv2d"(%x, %w, %z) {channels = 16 : i64, groups = 2 : i64,
      kernel_size = array<i64: 1, 1>, layout = "tile 8, rows 2"}
      : (tensor<2x4x5x8xi8>, tensor<2x2x8x2xi8>, tensor<i8>) -> tensor<2x4x5x16xi32>
  return
}
