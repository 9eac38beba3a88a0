// RUN: relax-opt %s --relax-quantize-convolutions | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-convolutions,relax-convert-layout,\
// RUN:relax-canonicalize,relax-pack-weights{tile=8})' | filecheck %s --check-prefix=PACKED

// Integers as they are, what a zero point adds to sums as a number per channel, and a scale per channel.
// CHECK-LABEL: @layer
// CHECK:         %[[SUMS:.*]] = "relax.quantized_conv2d"(%arg0, %arg1, %{{.*}}) {padding = array<i64: 1, 1, 1, 1>}
// CHECK-NEXT:    %[[WIDE:.*]] = "relax.astype"(%arg1) {dtype = i32}
// CHECK-NEXT:    %[[FILTERS:.*]] = "relax.sum"(%[[WIDE]]) {axis = array<i64: 1, 2, 3>}
// CHECK-NEXT:    %[[ZERO:.*]] = "relax.full"() {value = -3 : i64} : () -> tensor<i32>
// CHECK-NEXT:    %[[MORE:.*]] = "relax.multiply"(%[[FILTERS]], %[[ZERO]])
// CHECK-NEXT:    %[[COLUMN:.*]] = "relax.reshape"(%[[MORE]]) : (tensor<16xi32>) -> tensor<16x1x1xi32>
// CHECK-NEXT:    %[[EXACT:.*]] = "relax.add"(%[[SUMS]], %[[COLUMN]])
// CHECK-NEXT:    %[[SCALE:.*]] = "relax.multiply"(%arg2, %{{.*}}) : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
// CHECK-NEXT:    %[[SCALES:.*]] = "relax.reshape"(%[[SCALE]]) : (tensor<16xf32>) -> tensor<16x1x1xf32>
// CHECK-NEXT:    %[[FLOAT:.*]] = "relax.astype"(%[[EXACT]]) {dtype = f32}
// CHECK-NEXT:    %[[REAL:.*]] = "relax.multiply"(%[[FLOAT]], %[[SCALES]])
// CHECK-NEXT:    "relax.quantize"(%[[REAL]]
// PACKED-LABEL: @layer
// PACKED:        "relax.pad"(%{{\w+}}) {after = array<i64: 0, 0, 1, 0>, before = array<i64: 0, 0, 0, 0>, value
// PACKED-SAME:      : (tensor<3x3x3x16xi8>) -> tensor<3x3x4x16xi8>
// PACKED:        "relax.pack_weight"(%{{\w+}}) {layout = "tile 8, rows 4"} : (tensor<36x16xi8>) -> tensor<2x9x8x4xi8>
// PACKED-NEXT:   "relax.packed_quantized_conv2d"(%{{\w+}}, %{{\w+}}, %{{\w+}})
// PACKED-SAME:      {channels = 16 : i64, kernel_size = array<i64: 3, 3>, layout = "tile 8, rows 4",
// PACKED-SAME:      padding = array<i64: 1, 1, 1, 1>} : (tensor<1x9x9x3xui8>, tensor<2x9x8x4xi8>, tensor<ui8>)
// PACKED-SAME:      -> tensor<1x9x9x16xi32>
// PACKED:        "relax.quantize"(%{{\w+}}, %{{\w+}}, %{{\w+}}) {{.*}} -> tensor<1x9x9x16xui8>
func.func @layer(%x: tensor<1x3x9x9xui8>, %q: tensor<16x3x3x3xi8> {relax.name = "w"}, %t: tensor<16xf32>
    {relax.name = "s"}) -> tensor<1x16x9x9xui8> attributes {relax.num_input = 1 : i64} {
  %s = "relax.constant"() {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
  %z = "relax.constant"() {value = dense<3> : tensor<ui8>} : () -> tensor<ui8>
  %none = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
  %0 = "relax.dequantize"(%x, %s, %z) : (tensor<1x3x9x9xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x3x9x9xf32>
  %1 = "relax.dequantize"(%q, %t, %none) {axis = 0 : i64} : (tensor<16x3x3x3xi8>, tensor<16xf32>, tensor<i8>)
      -> tensor<16x3x3x3xf32>
  %2 = "relax.conv2d"(%0, %1) {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x3x9x9xf32>, tensor<16x3x3x3xf32>)
      -> tensor<1x16x9x9xf32>
  %3 = "relax.quantize"(%2, %s, %z) {dtype = ui8} : (tensor<1x16x9x9xf32>, tensor<f32>, tensor<ui8>)
      -> tensor<1x16x9x9xui8>
  return %3 : tensor<1x16x9x9xui8>
}

// A signed image gets the sign that the instruction takes, once for both that read it; so do unsigned filters. One
// scale
// of all filters, in NHWC.
// CHECK-LABEL: @signs
// CHECK:         %[[BYTES:.*]] = "relax.astype"(%arg0) {dtype = ui8}
// CHECK-NEXT:    %[[HALF:.*]] = "relax.full"() {value = 128 : i64} : () -> tensor<ui8>
// CHECK-NEXT:    %[[X:.*]] = "relax.bitwise_xor"(%[[BYTES]], %[[HALF]])
// CHECK:         %[[ZERO:.*]] = "relax.full"() {value = 123 : i64} : () -> tensor<ui8>
// CHECK:         %[[TURNED:.*]] = "relax.bitwise_xor"(%arg1, %{{.*}}) : (tensor<1x1x4x8xui8>, tensor<ui8>)
// CHECK-NEXT:    %[[W:.*]] = "relax.astype"(%[[TURNED]]) {dtype = i8}
// CHECK-NEXT:    "relax.quantized_conv2d"(%[[X]], %[[W]], %[[ZERO]]) {data_layout = "NHWC", kernel_layout = "HWIO"}
// CHECK:         "relax.quantized_conv2d"(%[[X]], %{{.*}}, %{{.*}}) {data_layout = "NHWC", kernel_layout = "HWIO",
// CHECK-SAME:      strides = array<i64: 2, 2>}
// CHECK-NOT:     relax.conv2d
func.func @signs(%x: tensor<1x5x6x4xi8>, %q: tensor<1x1x4x8xui8> {relax.name = "uw"}, %t: tensor<f32> {relax.name =
    "us"})
    -> (tensor<1x5x6x8xf32>, tensor<1x3x3x8xf32>) attributes {relax.num_input = 1 : i64} {
  %s = "relax.constant"() {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
  %z = "relax.constant"() {value = dense<-5> : tensor<i8>} : () -> tensor<i8>
  %half = "relax.full"() {value = 128 : i64} : () -> tensor<ui8>
  %0 = "relax.dequantize"(%x, %s, %z) : (tensor<1x5x6x4xi8>, tensor<f32>, tensor<i8>) -> tensor<1x5x6x4xf32>
  %1 = "relax.dequantize"(%q, %t, %half) : (tensor<1x1x4x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x1x4x8xf32>
  %2 = "relax.conv2d"(%0, %1) {data_layout = "NHWC", kernel_layout = "HWIO"}
      : (tensor<1x5x6x4xf32>, tensor<1x1x4x8xf32>) -> tensor<1x5x6x8xf32>
  %3 = "relax.conv2d"(%0, %1) {data_layout = "NHWC", kernel_layout = "HWIO", strides = array<i64: 2, 2>}
      : (tensor<1x5x6x4xf32>, tensor<1x1x4x8xf32>) -> tensor<1x3x3x8xf32>
  return %2, %3 : tensor<1x5x6x8xf32>, tensor<1x3x3x8xf32>
}

// A zero point that is a weight.
// CHECK-LABEL: @unknown
// CHECK:         "relax.quantized_conv2d"(%arg0, %arg1, %arg3)
// CHECK:         %[[WIDE:.*]] = "relax.astype"(%arg3) {dtype = i32} : (tensor<ui8>) -> tensor<i32>
// CHECK-NEXT:    %[[LESS:.*]] = "relax.negative"(%[[WIDE]])
// CHECK-NEXT:    "relax.multiply"(%{{.*}}, %[[LESS]]) : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
func.func @unknown(%x: tensor<1x4x5x5xui8>, %q: tensor<4x4x1x1xi8> {relax.name = "nw"}, %s: tensor<f32>
    {relax.name = "ns"}, %z: tensor<ui8> {relax.name = "nz"}) -> tensor<1x4x5x5xf32>
    attributes {relax.num_input = 1 : i64} {
  %none = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
  %0 = "relax.dequantize"(%x, %s, %z) : (tensor<1x4x5x5xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x4x5x5xf32>
  %1 = "relax.dequantize"(%q, %s, %none) : (tensor<4x4x1x1xi8>, tensor<f32>, tensor<i8>) -> tensor<4x4x1x1xf32>
  %2 = "relax.conv2d"(%0, %1) : (tensor<1x4x5x5xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x5x5xf32>
  return %2 : tensor<1x4x5x5xf32>
}

// Those that stay: filters with zero points that are not known, computed when the model runs, with a scale per input
// channel; an image with a scale per channel; computed in f64.
// CHECK-LABEL: @kept
// CHECK-NOT:     quantized_conv2d
// CHECK:         return
func.func @kept(%x: tensor<1x4x5x5xui8>, %f: tensor<4x4x1x1xi8>, %q: tensor<4x4x1x1xi8> {relax.name = "kw"},
    %t: tensor<4xf32> {relax.name = "ks"}, %u: tensor<4xi8> {relax.name = "kz"}, %d: tensor<f64> {relax.name = "kd"})
    -> (tensor<1x4x5x5xf32>, tensor<1x4x5x5xf32>, tensor<1x4x5x5xf32>, tensor<1x4x5x5xf32>, tensor<1x4x5x5xf64>)
    attributes {relax.num_input = 2 : i64} {
  %s = "relax.constant"() {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
  %z = "relax.constant"() {value = dense<3> : tensor<ui8>} : () -> tensor<ui8>
  %none = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
  %0 = "relax.dequantize"(%x, %s, %z) : (tensor<1x4x5x5xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x4x5x5xf32>
  %1 = "relax.dequantize"(%q, %t, %u) {axis = 0 : i64} : (tensor<4x4x1x1xi8>, tensor<4xf32>, tensor<4xi8>)
      -> tensor<4x4x1x1xf32>
  %2 = "relax.conv2d"(%0, %1) : (tensor<1x4x5x5xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x5x5xf32>
  %3 = "relax.dequantize"(%f, %t, %none) {axis = 0 : i64} : (tensor<4x4x1x1xi8>, tensor<4xf32>, tensor<i8>)
      -> tensor<4x4x1x1xf32>
  %4 = "relax.conv2d"(%0, %3) : (tensor<1x4x5x5xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x5x5xf32>
  %5 = "relax.dequantize"(%q, %t, %none) {axis = 1 : i64} : (tensor<4x4x1x1xi8>, tensor<4xf32>, tensor<i8>)
      -> tensor<4x4x1x1xf32>
  %6 = "relax.conv2d"(%0, %5) : (tensor<1x4x5x5xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x5x5xf32>
  %7 = "relax.dequantize"(%x, %t, %z) {axis = 1 : i64} : (tensor<1x4x5x5xui8>, tensor<4xf32>, tensor<ui8>)
      -> tensor<1x4x5x5xf32>
  %8 = "relax.dequantize"(%q, %t, %none) {axis = 0 : i64} : (tensor<4x4x1x1xi8>, tensor<4xf32>, tensor<i8>)
      -> tensor<4x4x1x1xf32>
  %9 = "relax.conv2d"(%7, %8) : (tensor<1x4x5x5xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x5x5xf32>
  %10 = "relax.dequantize"(%x, %d, %z) : (tensor<1x4x5x5xui8>, tensor<f64>, tensor<ui8>) -> tensor<1x4x5x5xf64>
  %11 = "relax.dequantize"(%q, %d, %none) : (tensor<4x4x1x1xi8>, tensor<f64>, tensor<i8>) -> tensor<4x4x1x1xf64>
  %12 = "relax.conv2d"(%10, %11) : (tensor<1x4x5x5xf64>, tensor<4x4x1x1xf64>) -> tensor<1x4x5x5xf64>
  return %2, %4, %6, %9, %12 : tensor<1x4x5x5xf32>, tensor<1x4x5x5xf32>, tensor<1x4x5x5xf32>, tensor<1x4x5x5xf32>,
      tensor<1x4x5x5xf64>
}
