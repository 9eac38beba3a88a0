// RUN: relax-opt %s | relax-opt | filecheck %s

// CHECK-LABEL: func.func @relu(
// CHECK: "relax.relu"(%{{.*}}) : (tensor<4xf16>) -> tensor<4xf16>
func.func @relu(%x: tensor<4xf16>) {
  %0 = "relax.relu"(%x) : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// CHECK-LABEL: func.func @gelu(
// CHECK: "relax.gelu"(%{{.*}}) : (tensor<4xf16>) -> tensor<4xf16>
func.func @gelu(%x: tensor<4xf16>) {
  %0 = "relax.gelu"(%x) : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// CHECK-LABEL: func.func @gelu_tanh(
// CHECK: "relax.gelu_tanh"(%{{.*}}) : (tensor<4xf16>) -> tensor<4xf16>
func.func @gelu_tanh(%x: tensor<4xf16>) {
  %0 = "relax.gelu_tanh"(%x) : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// CHECK-LABEL: func.func @silu(
// CHECK: "relax.silu"(%{{.*}}) : (tensor<4xf16>) -> tensor<4xf16>
func.func @silu(%x: tensor<4xf16>) {
  %0 = "relax.silu"(%x) : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// CHECK-LABEL: func.func @hardswish(
// CHECK: "relax.hardswish"(%{{.*}}) : (tensor<4xf16>) -> tensor<4xf16>
func.func @hardswish(%x: tensor<4xf16>) {
  %0 = "relax.hardswish"(%x) : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// CHECK-LABEL: func.func @softplus(
// CHECK: "relax.softplus"(%{{.*}}) : (tensor<4xf16>) -> tensor<4xf16>
func.func @softplus(%x: tensor<4xf16>) {
  %0 = "relax.softplus"(%x) : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// CHECK-LABEL: func.func @softplus_attributes(
// CHECK: "relax.softplus"(%{{\w+}}) {beta = 2.000000e+00 : f64, threshold = 5.000000e-01 : f64} : (tensor<4xf16>)
// CHECK-SAME: -> tensor<4xf16>
func.func @softplus_attributes(%x: tensor<4xf16>) {
  %0 = "relax.softplus"(%x) {beta = 2.0 : f64, threshold = 0.5 : f64} : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// CHECK-LABEL: func.func @leaky_relu(
// CHECK: "relax.leaky_relu"(%{{.*}}) : (tensor<4xf16>) -> tensor<4xf16>
func.func @leaky_relu(%x: tensor<4xf16>) {
  %0 = "relax.leaky_relu"(%x) : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// CHECK-LABEL: func.func @leaky_relu_2(
// CHECK: "relax.leaky_relu"(%{{\w+}}) {alpha = 2.000000e-01 : f64} : (tensor<?x4xf32, {sym = ["n"]}>)
// CHECK-SAME: -> tensor<?x4xf32, {sym = ["n"]}>
func.func @leaky_relu_2(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.leaky_relu"(%x) {alpha = 2.000000e-01 : f64} : (tensor<?x4xf32, {sym = ["n"]}>)
      -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @softmax(
// CHECK: "relax.softmax"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @softmax(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.softmax"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @softmax_2(
// CHECK: "relax.softmax"(%{{.*}}) {axis = 0 : i64} : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @softmax_2(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.softmax"(%x) {axis = 0 : i64} : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @log_softmax(
// CHECK: "relax.log_softmax"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @log_softmax(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.log_softmax"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @log_softmax_2(
// CHECK: "relax.log_softmax"(%{{\w+}}) {axis = 0 : i64} : (tensor<?x4xf32, {sym = ["n"]}>)
// CHECK-SAME: -> tensor<?x4xf32, {sym = ["n"]}>
func.func @log_softmax_2(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.log_softmax"(%x) {axis = 0 : i64} : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @layer_norm(
// CHECK: "relax.layer_norm"(%{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK-SAME: : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4xf32>, tensor<4xf32>)
// CHECK-SAME: -> tensor<?x4xf32, {sym = ["n"]}>
func.func @layer_norm(%x: tensor<?x4xf32, {sym = ["n"]}>, %y: tensor<4xf32>, %z: tensor<4xf32>) {
  %0 = "relax.layer_norm"(%x, %y, %z) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4xf32>, tensor<4xf32>)
      -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @layer_norm_2(
// CHECK: "relax.layer_norm"(%{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK-SAME: {axes = array<i64: 1, 2>, epsilon = 9.9999999999999995E-7 : f64}
// CHECK-SAME: : (tensor<2x3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
func.func @layer_norm_2(%x: tensor<2x3x4xf32>, %y: tensor<3x4xf32>, %z: tensor<3x4xf32>) {
  %0 = "relax.layer_norm"(%x, %y, %z) {axes = array<i64: 1, 2>, epsilon = 9.9999999999999995E-7 : f64}
      : (tensor<2x3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: func.func @rms_norm(
// CHECK: "relax.rms_norm"(%{{\w+}}, %{{\w+}}) {epsilon = 9.9999999999999995E-7 : f64}
// CHECK-SAME: : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @rms_norm(%x: tensor<?x4xf32, {sym = ["n"]}>, %y: tensor<4xf32>) {
  %0 = "relax.rms_norm"(%x, %y) {epsilon = 9.9999999999999995E-7 : f64}
      : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @batch_norm(
// CHECK: "relax.batch_norm"(%{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK-SAME: : (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
// CHECK-SAME: -> tensor<2x3x8x8xf32>
func.func @batch_norm(%x: tensor<2x3x8x8xf32>, %y: tensor<3xf32>, %z: tensor<3xf32>, %a: tensor<3xf32>,
    %b: tensor<3xf32>) {
  %0 = "relax.batch_norm"(%x, %y, %z, %a, %b)
      : (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x8x8xf32>
  return
}

// CHECK-LABEL: func.func @attention(
// CHECK: "relax.attention"(%{{\w+}}, %{{\w+}}, %{{\w+}}) {causal = true, scale = 1.250000e-01 : f64}
// CHECK-SAME: : (tensor<?x8x?x16xf32, {sym = ["b", "s"]}>, tensor<?x2x?x16xf32, {sym = ["b", "t"]}>,
// CHECK-SAME: tensor<?x2x?x24xf32, {sym = ["b", "t"]}>) -> tensor<?x8x?x24xf32, {sym = ["b", "s"]}>
func.func @attention(%x: tensor<?x8x?x16xf32, {sym = ["b", "s"]}>, %y: tensor<?x2x?x16xf32, {sym = ["b", "t"]}>,
    %z: tensor<?x2x?x24xf32, {sym = ["b", "t"]}>) {
  %0 = "relax.attention"(%x, %y, %z) {causal = true, scale = 1.250000e-01 : f64}
      : (tensor<?x8x?x16xf32, {sym = ["b", "s"]}>, tensor<?x2x?x16xf32, {sym = ["b", "t"]}>,
      tensor<?x2x?x24xf32, {sym = ["b", "t"]}>) -> tensor<?x8x?x24xf32, {sym = ["b", "s"]}>
  return
}

// CHECK-LABEL: func.func @attention_2(
// CHECK: "relax.attention"(%{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK-SAME: : (tensor<4x5x8xf32>, tensor<4x6x8xf32>, tensor<4x6x8xf32>, tensor<5x6xi1>) -> tensor<4x5x8xf32>
func.func @attention_2(%x: tensor<4x5x8xf32>, %y: tensor<4x6x8xf32>, %z: tensor<4x6x8xf32>, %a: tensor<5x6xi1>) {
  %0 = "relax.attention"(%x, %y, %z, %a) : (tensor<4x5x8xf32>, tensor<4x6x8xf32>, tensor<4x6x8xf32>, tensor<5x6xi1>)
      -> tensor<4x5x8xf32>
  return
}

// CHECK-LABEL: func.func @conv2d(
// CHECK: "relax.conv2d"(%{{\w+}}, %{{\w+}}) {padding = array<i64: 1, 1, 1, 1>}
// CHECK-SAME: : (tensor<?x4x?x?xf32, {sym = ["b", "h", "w"]}>, tensor<8x4x3x3xf32>)
// CHECK-SAME: -> tensor<?x8x?x?xf32, {sym = ["b", "h", "w"]}>
func.func @conv2d(%x: tensor<?x4x?x?xf32, {sym = ["b", "h", "w"]}>, %y: tensor<8x4x3x3xf32>) {
  %0 = "relax.conv2d"(%x, %y) {padding = array<i64: 1, 1, 1, 1>}
      : (tensor<?x4x?x?xf32, {sym = ["b", "h", "w"]}>, tensor<8x4x3x3xf32>)
      -> tensor<?x8x?x?xf32, {sym = ["b", "h", "w"]}>
  return
}

// CHECK-LABEL: func.func @conv2d_2(
// CHECK: "relax.conv2d"(%{{\w+}}, %{{\w+}}) {dilation = array<i64: 2, 2>, groups = 2 : i64, strides = array<i64: 2, 2>}
// CHECK-SAME: : (tensor<1x4x8x8xf32>, tensor<8x2x3x3xf32>) -> tensor<1x8x2x2xf32>
func.func @conv2d_2(%x: tensor<1x4x8x8xf32>, %y: tensor<8x2x3x3xf32>) {
  %0 = "relax.conv2d"(%x, %y) {dilation = array<i64: 2, 2>, groups = 2 : i64, strides = array<i64: 2, 2>}
      : (tensor<1x4x8x8xf32>, tensor<8x2x3x3xf32>) -> tensor<1x8x2x2xf32>
  return
}

// CHECK-LABEL: func.func @max_pool2d(
// CHECK: "relax.max_pool2d"(%{{\w+}}) {padding = array<i64: 1, 1, 1, 1>, pool_size = array<i64: 3, 3>, strides
// CHECK-SAME: = array<i64: 2, 2>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
func.func @max_pool2d(%x: tensor<1x4x8x8xf32>) {
  %0 = "relax.max_pool2d"(%x) {padding = array<i64: 1, 1, 1, 1>, pool_size = array<i64: 3, 3>, strides
      = array<i64: 2, 2>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  return
}

// CHECK-LABEL: func.func @max_pool2d_2(
// CHECK: "relax.max_pool2d"(%{{\w+}}) {ceil_mode = true, pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>}
// CHECK-SAME: : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
func.func @max_pool2d_2(%x: tensor<1x4x8x8xf32>) {
  %0 = "relax.max_pool2d"(%x) {ceil_mode = true, pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>}
      : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  return
}

// CHECK-LABEL: func.func @avg_pool2d(
// CHECK: "relax.avg_pool2d"(%{{\w+}}) {count_include_pad = true, pool_size = array<i64: 2, 2>} : (tensor<1x4x8x8xf32>)
// CHECK-SAME: -> tensor<1x4x7x7xf32>
func.func @avg_pool2d(%x: tensor<1x4x8x8xf32>) {
  %0 = "relax.avg_pool2d"(%x) {count_include_pad = true, pool_size = array<i64: 2, 2>} : (tensor<1x4x8x8xf32>)
      -> tensor<1x4x7x7xf32>
  return
}

// CHECK-LABEL: func.func @avg_pool2d_2(
// CHECK: "relax.avg_pool2d"(%{{\w+}}) {ceil_mode = true, pool_size = array<i64: 1, 1>, strides = array<i64: 3, 3>}
// CHECK-SAME: : (tensor<1x4x?x8xf32, {sym = ["h"]}>) -> tensor<1x4x?x3xf32, {sym = ["((h - 1) // 3) + 1"]}>
func.func @avg_pool2d_2(%x: tensor<1x4x?x8xf32, {sym = ["h"]}>) {
  %0 = "relax.avg_pool2d"(%x) {ceil_mode = true, pool_size = array<i64: 1, 1>, strides = array<i64: 3, 3>}
      : (tensor<1x4x?x8xf32, {sym = ["h"]}>) -> tensor<1x4x?x3xf32, {sym = ["((h - 1) // 3) + 1"]}>
  return
}

// CHECK-LABEL: func.func @adaptive_avg_pool2d(
// CHECK: "relax.adaptive_avg_pool2d"(%{{\w+}}) {output_size = array<i64: 1, 3>} : (tensor<1x4x?x8xf32, {sym = ["h"]}>)
// CHECK-SAME: -> tensor<1x4x1x3xf32>
func.func @adaptive_avg_pool2d(%x: tensor<1x4x?x8xf32, {sym = ["h"]}>) {
  %0 = "relax.adaptive_avg_pool2d"(%x) {output_size = array<i64: 1, 3>} : (tensor<1x4x?x8xf32, {sym = ["h"]}>)
      -> tensor<1x4x1x3xf32>
  return
}

// CHECK-LABEL: func.func @pad(
// CHECK: "relax.pad"(%{{\w+}}) {after = array<i64: 2, 0>, before = array<i64: 1, 1>, value = 0xFFF0000000000000 : f64}
// CHECK-SAME: : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x5xf32, {sym = ["n + 3"]}>
func.func @pad(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.pad"(%x) {after = array<i64: 2, 0>, before = array<i64: 1, 1>, value = 0xFFF0000000000000 : f64}
      : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x5xf32, {sym = ["n + 3"]}>
  return
}

// CHECK-LABEL: func.func @pad_2(
// CHECK: "relax.pad"(%{{.*}}) {after = array<i64: 1>, before = array<i64: 1>} : (tensor<4xi8>) -> tensor<6xi8>
func.func @pad_2(%x: tensor<4xi8>) {
  %0 = "relax.pad"(%x) {after = array<i64: 1>, before = array<i64: 1>} : (tensor<4xi8>) -> tensor<6xi8>
  return
}

// CHECK-LABEL: func.func @conv2d_nhwc(
// CHECK: "relax.conv2d"(%{{\w+}}, %{{\w+}}) {data_layout = "NHWC", kernel_layout = "HWIO"}
// CHECK-SAME: : (tensor<?x8x8x4xf32, {sym = ["n"]}>, tensor<3x3x4x6xf32>) -> tensor<?x6x6x6xf32, {sym = ["n"]}>
func.func @conv2d_nhwc(%x: tensor<?x8x8x4xf32, {sym = ["n"]}>, %y: tensor<3x3x4x6xf32>) {
  %0 = "relax.conv2d"(%x, %y) {data_layout = "NHWC", kernel_layout = "HWIO"}
      : (tensor<?x8x8x4xf32, {sym = ["n"]}>, tensor<3x3x4x6xf32>) -> tensor<?x6x6x6xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @conv2d_out_dtype(
// CHECK: "relax.conv2d"(%{{\w+}}, %{{\w+}}) {out_dtype = f32} : (tensor<1x4x8x8xbf16>, tensor<6x4x3x3xbf16>)
// CHECK-SAME: -> tensor<1x6x6x6xf32>
func.func @conv2d_out_dtype(%x: tensor<1x4x8x8xbf16>, %y: tensor<6x4x3x3xbf16>) {
  %0 = "relax.conv2d"(%x, %y) {out_dtype = f32} : (tensor<1x4x8x8xbf16>, tensor<6x4x3x3xbf16>) -> tensor<1x6x6x6xf32>
  return
}

// CHECK-LABEL: func.func @conv2d_mixed_layouts(
// CHECK: "relax.conv2d"(%{{\w+}}, %{{\w+}}) {groups = 2 : i64, kernel_layout = "HWIO"}
// CHECK-SAME: : (tensor<1x4x8x8xf32>, tensor<3x3x2x6xf32>) -> tensor<1x6x6x6xf32>
func.func @conv2d_mixed_layouts(%x: tensor<1x4x8x8xf32>, %y: tensor<3x3x2x6xf32>) {
  %0 = "relax.conv2d"(%x, %y) {groups = 2 : i64, kernel_layout = "HWIO"} : (tensor<1x4x8x8xf32>, tensor<3x3x2x6xf32>)
      -> tensor<1x6x6x6xf32>
  return
}

// CHECK-LABEL: func.func @max_pool2d_nhwc(
// CHECK: "relax.max_pool2d"(%{{\w+}}) {layout = "NHWC", pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>}
// CHECK-SAME: : (tensor<?x8x8x4xf32, {sym = ["n"]}>) -> tensor<?x4x4x4xf32, {sym = ["n"]}>
func.func @max_pool2d_nhwc(%x: tensor<?x8x8x4xf32, {sym = ["n"]}>) {
  %0 = "relax.max_pool2d"(%x) {layout = "NHWC", pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>}
      : (tensor<?x8x8x4xf32, {sym = ["n"]}>) -> tensor<?x4x4x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @avg_pool2d_nhwc(
// CHECK: "relax.avg_pool2d"(%{{\w+}}) {layout = "NHWC", padding = array<i64: 1, 0, 1, 0>, pool_size = array<i64: 3, 2>}
// CHECK-SAME: : (tensor<?x8x8x4xf32, {sym = ["n"]}>) -> tensor<?x8x7x4xf32, {sym = ["n"]}>
func.func @avg_pool2d_nhwc(%x: tensor<?x8x8x4xf32, {sym = ["n"]}>) {
  %0 = "relax.avg_pool2d"(%x) {layout = "NHWC", padding = array<i64: 1, 0, 1, 0>, pool_size = array<i64: 3, 2>}
      : (tensor<?x8x8x4xf32, {sym = ["n"]}>) -> tensor<?x8x7x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @adaptive_avg_pool2d_nhwc(
// CHECK: "relax.adaptive_avg_pool2d"(%{{\w+}}) {layout = "NHWC", output_size = array<i64: 3, 2>}
// CHECK-SAME: : (tensor<?x8x8x4xf32, {sym = ["n"]}>) -> tensor<?x3x2x4xf32, {sym = ["n"]}>
func.func @adaptive_avg_pool2d_nhwc(%x: tensor<?x8x8x4xf32, {sym = ["n"]}>) {
  %0 = "relax.adaptive_avg_pool2d"(%x) {layout = "NHWC", output_size = array<i64: 3, 2>}
      : (tensor<?x8x8x4xf32, {sym = ["n"]}>) -> tensor<?x3x2x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @attention_wide_mask(
// CHECK: "relax.attention"(%{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK-SAME: : (tensor<4x5x8xbf16>, tensor<4x6x8xbf16>, tensor<4x6x8xbf16>, tensor<5x6xf32>) -> tensor<4x5x8xbf16>
func.func @attention_wide_mask(%x: tensor<4x5x8xbf16>, %y: tensor<4x6x8xbf16>, %z: tensor<4x6x8xbf16>,
    %a: tensor<5x6xf32>) {
  %0 = "relax.attention"(%x, %y, %z, %a) : (tensor<4x5x8xbf16>, tensor<4x6x8xbf16>, tensor<4x6x8xbf16>, tensor<5x6xf32>)
      -> tensor<4x5x8xbf16>
  return
}

// CHECK-LABEL: func.func @packed_conv2d(
// CHECK: "relax.packed_conv2d"(%{{\w+}}, %{{\w+}})
// CHECK-SAME: {channels = 20 : i64, kernel_size = array<i64: 3, 2>, layout = "tile 8", padding
// CHECK-SAME: = array<i64: 1, 0, 1, 1>} : (tensor<?x?x8x4xf32, {sym = ["n", "h"]}>, tensor<3x24x8xf32>)
// CHECK-SAME: -> tensor<?x?x8x20xf32, {sym = ["n", "h"]}>
func.func @packed_conv2d(%x: tensor<?x?x8x4xf32, {sym = ["n", "h"]}>, %y: tensor<3x24x8xf32>) {
  %0 = "relax.packed_conv2d"(%x, %y) {channels = 20 : i64, kernel_size = array<i64: 3, 2>, layout = "tile 8", padding
      = array<i64: 1, 0, 1, 1>} : (tensor<?x?x8x4xf32, {sym = ["n", "h"]}>, tensor<3x24x8xf32>)
      -> tensor<?x?x8x20xf32, {sym = ["n", "h"]}>
  return
}

// CHECK-LABEL: func.func @packed_conv2d_groups(
// CHECK: "relax.packed_conv2d"(%{{\w+}}, %{{\w+}})
// CHECK-SAME: {channels = 16 : i64, dilation = array<i64: 2, 1>, groups = 2
// CHECK-SAME: : i64, kernel_size = array<i64: 3, 3>, layout = "tile 8", out_dtype = f32, strides = array<i64: 1, 2>}
// CHECK-SAME: : (tensor<1x8x8x4xbf16>, tensor<2x18x8xbf16>) -> tensor<1x4x3x16xf32>
func.func @packed_conv2d_groups(%x: tensor<1x8x8x4xbf16>, %y: tensor<2x18x8xbf16>) {
  %0 = "relax.packed_conv2d"(%x, %y) {channels = 16 : i64, dilation = array<i64: 2, 1>, groups = 2
      : i64, kernel_size = array<i64: 3, 3>, layout = "tile 8", out_dtype = f32, strides = array<i64: 1, 2>}
      : (tensor<1x8x8x4xbf16>, tensor<2x18x8xbf16>) -> tensor<1x4x3x16xf32>
  return
}
