// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @relu_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.relu' op expected a floating-point operand, got i32}}
  %0 = "relax.relu"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @gelu_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.gelu' op expected a floating-point operand, got i32}}
  %0 = "relax.gelu"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @gelu_tanh_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.gelu_tanh' op expected a floating-point operand, got i32}}
  %0 = "relax.gelu_tanh"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @silu_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.silu' op expected a floating-point operand, got i32}}
  %0 = "relax.silu"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @hardswish_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.hardswish' op expected a floating-point operand, got i32}}
  %0 = "relax.hardswish"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @softplus_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.softplus' op expected a floating-point operand, got i32}}
  %0 = "relax.softplus"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @leaky_relu_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.leaky_relu' op expected a floating-point operand, got i32}}
  %0 = "relax.leaky_relu"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @softmax_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.softmax' op expected a floating-point operand, got i32}}
  %0 = "relax.softmax"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @softmax_axis(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.softmax' op expected axis in [-1, 1), got 1}}
  %0 = "relax.softmax"(%x) {axis = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @log_softmax_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.log_softmax' op expected a floating-point operand, got i32}}
  %0 = "relax.log_softmax"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @log_softmax_axis(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.log_softmax' op expected axis in [-1, 1), got 1}}
  %0 = "relax.log_softmax"(%x) {axis = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @layer_norm_of_integers(%x: tensor<4xi32>, %y: tensor<4xi32>, %z: tensor<4xi32>) {
  // expected-error @+1 {{'relax.layer_norm' op expected a floating-point operand, got i32}}
  %0 = "relax.layer_norm"(%x, %y, %z) : (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @layer_norm_axes(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) {
  // expected-error @+1 {{'relax.layer_norm' op expected axes in [-1, 1), got 1}}
  %0 = "relax.layer_norm"(%x, %y, %z) {axes = array<i64: 1>} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> tensor<4xf32>
  return
}

// -----

func.func @layer_norm_axes_twice(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) {
  // expected-error @+1 {{'relax.layer_norm' op expected distinct axes, got [0, -1]}}
  %0 = "relax.layer_norm"(%x, %y, %z) {axes = array<i64: 0, -1>} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> tensor<4xf32>
  return
}

// -----

func.func @layer_norm_dtype(%x: tensor<4xf16>, %y: tensor<4xf16>, %z: tensor<4xf32>) {
  // expected-error @+1 {{'relax.layer_norm' op expected operands of one dtype, got f16 and f32}}
  %0 = "relax.layer_norm"(%x, %y, %z) : (tensor<4xf16>, tensor<4xf16>, tensor<4xf32>) -> tensor<4xf16>
  return
}

// -----

func.func @layer_norm_parameters(%x: tensor<4x5xf32>, %y: tensor<4xf32>, %z: tensor<5xf32>) {
  // expected-error @+1 {{'relax.layer_norm' op expected parameters of shape [5], got [4]}}
  %0 = "relax.layer_norm"(%x, %y, %z) : (tensor<4x5xf32>, tensor<4xf32>, tensor<5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @rms_norm_parameters(%x: tensor<4x5xf32>, %y: tensor<5xf32>) {
  // expected-error @+1 {{'relax.rms_norm' op expected parameters of shape [4, 5], got [5]}}
  %0 = "relax.rms_norm"(%x, %y) {axes = array<i64: 0, 1>} : (tensor<4x5xf32>, tensor<5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @batch_norm_parameters(%x: tensor<2x3x4xf32>, %y: tensor<3xf32>, %z: tensor<3xf32>, %a: tensor<3xf32>,
    %b: tensor<4xf32>) {
  // expected-error @+1 {{'relax.batch_norm' op expected parameters of shape [3], got [4]}}
  %0 = "relax.batch_norm"(%x, %y, %z, %a, %b)
      : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @batch_norm_axis(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>, %a: tensor<4xf32>,
    %b: tensor<4xf32>) {
  // expected-error @+1 {{'relax.batch_norm' op expected axis in [-1, 1), got 1}}
  %0 = "relax.batch_norm"(%x, %y, %z, %a, %b)
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @attention_of_integers(%x: tensor<1x2x3xi32>, %y: tensor<1x2x3xi32>, %z: tensor<1x2x3xi32>) {
  // expected-error @+1 {{'relax.attention' op expected a floating-point operand, got i32}}
  %0 = "relax.attention"(%x, %y, %z) : (tensor<1x2x3xi32>, tensor<1x2x3xi32>, tensor<1x2x3xi32>) -> tensor<1x2x3xi32>
  return
}

// -----

func.func @attention_dtypes(%x: tensor<1x2x3xf32>, %y: tensor<1x2x3xf32>, %z: tensor<1x2x3xf16>) {
  // expected-error @+1 {{'relax.attention' op expected operands of one dtype, got f32 and f16}}
  %0 = "relax.attention"(%x, %y, %z) : (tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf16>) -> tensor<1x2x3xf32>
  return
}

// -----

func.func @attention_rank(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %z: tensor<2x3xf32>) {
  // expected-error @+1 {{'relax.attention' op expected query, key and value of one rank of 3 or more, got 2, 2 and 2}}
  %0 = "relax.attention"(%x, %y, %z) : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @attention_sizes(%x: tensor<1x2x3xf32>, %y: tensor<1x2x4xf32>, %z: tensor<1x2x3xf32>) {
  // expected-error @+1 {{'relax.attention' op expected query, key and value that fit together, got [1, 2, 3], [1, 2, 4] and [1, 2, 3]}}
  %0 = "relax.attention"(%x, %y, %z) : (tensor<1x2x3xf32>, tensor<1x2x4xf32>, tensor<1x2x3xf32>) -> tensor<1x2x3xf32>
  return
}

// -----

func.func @attention_heads(%x: tensor<3x2x4xf32>, %y: tensor<2x2x4xf32>, %z: tensor<2x2x4xf32>) {
  // expected-error @+1 {{'relax.attention' op expected a number of query heads that is a multiple of the key heads, got 3 and 2}}
  %0 = "relax.attention"(%x, %y, %z) : (tensor<3x2x4xf32>, tensor<2x2x4xf32>, tensor<2x2x4xf32>) -> tensor<3x2x4xf32>
  return
}

// -----

func.func @attention_batch(%x: tensor<2x1x2x4xf32>, %y: tensor<3x1x2x4xf32>, %z: tensor<3x1x2x4xf32>) {
  // expected-error @+1 {{'relax.attention' op expected broadcastable shapes, got [2] and [3] and [3]}}
  %0 = "relax.attention"(%x, %y, %z) : (tensor<2x1x2x4xf32>, tensor<3x1x2x4xf32>, tensor<3x1x2x4xf32>)
      -> tensor<2x1x2x4xf32>
  return
}

// -----

func.func @attention_mask_dtype(%x: tensor<1x2x3xf32>, %y: tensor<1x2x3xf32>, %z: tensor<1x2x3xf32>,
    %a: tensor<2x2xf16>) {
  // expected-error @+1 {{'relax.attention' op expected operands of one dtype, got f32 and f16}}
  %0 = "relax.attention"(%x, %y, %z, %a) : (tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<2x2xf16>)
      -> tensor<1x2x3xf32>
  return
}

// -----

func.func @attention_mask_shape(%x: tensor<1x2x3xf32>, %y: tensor<1x2x3xf32>, %z: tensor<1x2x3xf32>, %a: tensor<2x5xi1>)
    {
  // expected-error @+1 {{'relax.attention' op expected broadcastable shapes, got [2, 5] and [1, 2, 2]}}
  %0 = "relax.attention"(%x, %y, %z, %a) : (tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<2x5xi1>)
      -> tensor<1x2x3xf32>
  return
}

// -----

func.func @attention_mask_rank(%x: tensor<1x2x3xf32>, %y: tensor<1x2x3xf32>, %z: tensor<1x2x3xf32>,
    %a: tensor<2x1x2x2xi1>) {
  // expected-error @+1 {{'relax.attention' op expected a mask that broadcasts to [1, 2, 2], got [2, 1, 2, 2]}}
  %0 = "relax.attention"(%x, %y, %z, %a) : (tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<2x1x2x2xi1>)
      -> tensor<1x2x3xf32>
  return
}

// -----

func.func @conv2d_of_integers(%x: tensor<1x4x8x8xi32>, %y: tensor<2x4x3x3xi32>) {
  // expected-error @+1 {{'relax.conv2d' op expected a floating-point operand, got i32}}
  %0 = "relax.conv2d"(%x, %y) : (tensor<1x4x8x8xi32>, tensor<2x4x3x3xi32>) -> tensor<1x2x6x6xi32>
  return
}

// -----

func.func @conv2d_dtypes(%x: tensor<1x4x8x8xf32>, %y: tensor<2x4x3x3xf16>) {
  // expected-error @+1 {{'relax.conv2d' op expected operands of one dtype, got f32 and f16}}
  %0 = "relax.conv2d"(%x, %y) : (tensor<1x4x8x8xf32>, tensor<2x4x3x3xf16>) -> tensor<1x2x6x6xf32>
  return
}

// -----

func.func @conv2d_rank(%x: tensor<4x8x8xf32>, %y: tensor<2x4x3x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected operand of rank 4, got 3}}
  %0 = "relax.conv2d"(%x, %y) : (tensor<4x8x8xf32>, tensor<2x4x3x3xf32>) -> tensor<2x6x6xf32>
  return
}

// -----

func.func @conv2d_weight_rank(%x: tensor<1x4x8x8xf32>, %y: tensor<2x4x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected weight of rank 4, got 3}}
  %0 = "relax.conv2d"(%x, %y) : (tensor<1x4x8x8xf32>, tensor<2x4x3xf32>) -> tensor<1x2x6x6xf32>
  return
}

// -----

func.func @conv2d_channels(%x: tensor<1x4x8x8xf32>, %y: tensor<2x3x3x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected channels that fit 1 groups, got [1, 4, 8, 8] and [2, 3, 3, 3]}}
  %0 = "relax.conv2d"(%x, %y) : (tensor<1x4x8x8xf32>, tensor<2x3x3x3xf32>) -> tensor<1x2x6x6xf32>
  return
}

// -----

func.func @conv2d_groups(%x: tensor<1x4x8x8xf32>, %y: tensor<3x2x3x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected channels that fit 2 groups, got [1, 4, 8, 8] and [3, 2, 3, 3]}}
  %0 = "relax.conv2d"(%x, %y) {groups = 2 : i64} : (tensor<1x4x8x8xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x6x6xf32>
  return
}

// -----

func.func @conv2d_no_groups(%x: tensor<1x4x8x8xf32>, %y: tensor<2x4x3x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected channels that fit 0 groups, got [1, 4, 8, 8] and [2, 4, 3, 3]}}
  %0 = "relax.conv2d"(%x, %y) {groups = 0 : i64} : (tensor<1x4x8x8xf32>, tensor<2x4x3x3xf32>) -> tensor<1x2x6x6xf32>
  return
}

// -----

func.func @conv2d_stride(%x: tensor<1x4x8x8xf32>, %y: tensor<2x4x3x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected positive strides and dilation and no negative padding}}
  %0 = "relax.conv2d"(%x, %y) {strides = array<i64: 0, 1>} : (tensor<1x4x8x8xf32>, tensor<2x4x3x3xf32>)
      -> tensor<1x2x6x6xf32>
  return
}

// -----

func.func @conv2d_padding(%x: tensor<1x4x8x8xf32>, %y: tensor<2x4x3x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected positive strides and dilation and no negative padding}}
  %0 = "relax.conv2d"(%x, %y) {padding = array<i64: -1, 0, 0, 0>} : (tensor<1x4x8x8xf32>, tensor<2x4x3x3xf32>)
      -> tensor<1x2x6x6xf32>
  return
}

// -----

func.func @conv2d_strides_beyond(%x: tensor<1x4x8x8xf32>, %y: tensor<2x4x3x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected strides, dilation and padding of less than 2**31}}
  %0 = "relax.conv2d"(%x, %y) {strides = array<i64: 2147483648, 1>} : (tensor<1x4x8x8xf32>, tensor<2x4x3x3xf32>)
      -> tensor<1x2x1x6xf32>
  return
}

// -----

func.func @conv2d_dilation_beyond(%x: tensor<1x4x?x?xf32>, %y: tensor<2x4x3x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected strides, dilation and padding of less than 2**31}}
  %0 = "relax.conv2d"(%x, %y) {dilation = array<i64: 0x7FF0000000000000, 1>}
      : (tensor<1x4x?x?xf32>, tensor<2x4x3x3xf32>) -> tensor<1x2x?x?xf32>
  return
}

// -----

func.func @max_pool2d_window_beyond(%x: tensor<1x4x?x?xf32>) {
  // expected-error @+1 {{'relax.max_pool2d' op expected a window of less than 2**62, got 4611686018427387904}}
  %0 = "relax.max_pool2d"(%x) {pool_size = array<i64: 4611686018427387904, 1>} : (tensor<1x4x?x?xf32>)
      -> tensor<1x4x?x?xf32>
  return
}

// -----

func.func @conv2d_dilation_of_unknown_size(%x: tensor<1x4x?x?xf32>, %y: tensor<2x4x3x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected positive strides and dilation and no negative padding}}
  %0 = "relax.conv2d"(%x, %y) {dilation = array<i64: 0, 1>} : (tensor<1x4x?x?xf32>, tensor<2x4x3x3xf32>)
      -> tensor<1x2x?x?xf32>
  return
}

// -----

func.func @conv2d_window(%x: tensor<1x4x8x8xf32>, %y: tensor<2x4x9x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected a window of at most 8, got 9}}
  %0 = "relax.conv2d"(%x, %y) : (tensor<1x4x8x8xf32>, tensor<2x4x9x3xf32>) -> tensor<1x2x1x6xf32>
  return
}

// -----

func.func @conv2d_empty_window(%x: tensor<1x4x8x8xf32>, %y: tensor<2x4x0x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected a window of 1 or more, got 0}}
  %0 = "relax.conv2d"(%x, %y) : (tensor<1x4x8x8xf32>, tensor<2x4x0x3xf32>) -> tensor<1x2x8x6xf32>
  return
}

// -----

func.func @max_pool2d_of_truth_values(%x: tensor<1x4x8x8xi1>) {
  // expected-error @+1 {{'relax.max_pool2d' op expected a number as operand, got i1}}
  %0 = "relax.max_pool2d"(%x) {pool_size = array<i64: 2, 2>} : (tensor<1x4x8x8xi1>) -> tensor<1x4x7x7xi1>
  return
}

// -----

func.func @max_pool2d_rank(%x: tensor<8x8xf32>) {
  // expected-error @+1 {{'relax.max_pool2d' op expected operand of rank 4, got 2}}
  %0 = "relax.max_pool2d"(%x) {pool_size = array<i64: 2, 2>} : (tensor<8x8xf32>) -> tensor<7x7xf32>
  return
}

// -----

func.func @max_pool2d_window(%x: tensor<1x4x8x8xf32>) {
  // expected-error @+1 {{'relax.max_pool2d' op expected a window of at most 8, got 9}}
  %0 = "relax.max_pool2d"(%x) {pool_size = array<i64: 9, 2>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return
}

// -----

func.func @max_pool2d_empty_window(%x: tensor<1x4x8x8xf32>) {
  // expected-error @+1 {{'relax.max_pool2d' op expected a window of 1 or more, got 0}}
  %0 = "relax.max_pool2d"(%x) {pool_size = array<i64: 0, 2>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return
}

// -----

func.func @max_pool2d_padding(%x: tensor<1x4x8x8xf32>) {
  // expected-error @+1 {{'relax.max_pool2d' op expected positive strides and dilation and no negative padding}}
  %0 = "relax.max_pool2d"(%x) {pool_size = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, -1>} : (tensor<1x4x8x8xf32>)
      -> tensor<1x4x8x8xf32>
  return
}

// -----

func.func @avg_pool2d_of_integers(%x: tensor<1x4x8x8xi32>) {
  // expected-error @+1 {{'relax.avg_pool2d' op expected a floating-point operand, got i32}}
  %0 = "relax.avg_pool2d"(%x) {pool_size = array<i64: 2, 2>} : (tensor<1x4x8x8xi32>) -> tensor<1x4x7x7xi32>
  return
}

// -----

func.func @avg_pool2d_rank(%x: tensor<8x8xf32>) {
  // expected-error @+1 {{'relax.avg_pool2d' op expected operand of rank 4, got 2}}
  %0 = "relax.avg_pool2d"(%x) {pool_size = array<i64: 2, 2>} : (tensor<8x8xf32>) -> tensor<7x7xf32>
  return
}

// -----

func.func @avg_pool2d_window(%x: tensor<1x4x8x8xf32>) {
  // expected-error @+1 {{'relax.avg_pool2d' op expected a window of at most 8, got 9}}
  %0 = "relax.avg_pool2d"(%x) {pool_size = array<i64: 9, 2>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return
}

// -----

func.func @avg_pool2d_empty_window(%x: tensor<1x4x8x8xf32>) {
  // expected-error @+1 {{'relax.avg_pool2d' op expected a window of 1 or more, got 0}}
  %0 = "relax.avg_pool2d"(%x) {pool_size = array<i64: 0, 2>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return
}

// -----

func.func @avg_pool2d_padding(%x: tensor<1x4x8x8xf32>) {
  // expected-error @+1 {{'relax.avg_pool2d' op expected positive strides and dilation and no negative padding}}
  %0 = "relax.avg_pool2d"(%x) {pool_size = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, -1>} : (tensor<1x4x8x8xf32>)
      -> tensor<1x4x8x8xf32>
  return
}

// -----

func.func @adaptive_of_integers(%x: tensor<1x4x8x8xi32>) {
  // expected-error @+1 {{'relax.adaptive_avg_pool2d' op expected a floating-point operand, got i32}}
  %0 = "relax.adaptive_avg_pool2d"(%x) {output_size = array<i64: 1, 1>} : (tensor<1x4x8x8xi32>) -> tensor<1x4x1x1xi32>
  return
}

// -----

func.func @adaptive_rank(%x: tensor<8x8xf32>) {
  // expected-error @+1 {{'relax.adaptive_avg_pool2d' op expected operand of rank 4, got 2}}
  %0 = "relax.adaptive_avg_pool2d"(%x) {output_size = array<i64: 1, 1>} : (tensor<8x8xf32>) -> tensor<1x1xf32>
  return
}

// -----

func.func @adaptive_size(%x: tensor<1x4x8x8xf32>) {
  // expected-error @+1 {{'relax.adaptive_avg_pool2d' op expected a positive output_size, got [0, 1]}}
  %0 = "relax.adaptive_avg_pool2d"(%x) {output_size = array<i64: 0, 1>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x0x1xf32>
  return
}

// -----

func.func @adaptive_of_nothing(%x: tensor<1x4x0x8xf32>) {
// expected-error@+1 {{'relax.adaptive_avg_pool2d' op expected an image of 1 row and column or more, got [1, 4, 0, 8]}}
  %0 = "relax.adaptive_avg_pool2d"(%x) {output_size = array<i64: 1, 1>} : (tensor<1x4x0x8xf32>) -> tensor<1x4x1x1xf32>
  return
}

// -----

func.func @pad_rank(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'relax.pad' op expected 2 amounts of 0 or more before and after, got [1] and [1]}}
  %0 = "relax.pad"(%x) {before = array<i64: 1>, after = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @pad_negative(%x: tensor<2xf32>) {
  // expected-error @+1 {{'relax.pad' op expected 1 amounts of 0 or more before and after, got [-1] and [0]}}
  %0 = "relax.pad"(%x) {before = array<i64: -1>, after = array<i64: 0>} : (tensor<2xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @pad_value(%x: tensor<2xi8>) {
  // expected-error @+1 {{'relax.pad' op expected a value that i8 can hold, got 1000}}
  %0 = "relax.pad"(%x) {before = array<i64: 1>, after = array<i64: 0>, value = 1000 : i64} : (tensor<2xi8>)
      -> tensor<3xi8>
  return
}

// -----

func.func @conv2d_data_layout(%x: tensor<1x8x8x4xf32>, %y: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected one of 'NCHW', 'NHWC' for attribute 'data_layout', got "HWCN"}}
  %0 = "relax.conv2d"(%x, %y) {data_layout = "HWCN"} : (tensor<1x8x8x4xf32>, tensor<6x4x3x3xf32>) -> tensor<1x8x8x4xf32>
  return
}

// -----

func.func @conv2d_kernel_layout(%x: tensor<1x8x8x4xf32>, %y: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected one of 'OIHW', 'HWIO' for attribute 'kernel_layout', got "OHWI"}}
  %0 = "relax.conv2d"(%x, %y) {kernel_layout = "OHWI"} : (tensor<1x8x8x4xf32>, tensor<6x4x3x3xf32>)
      -> tensor<1x8x8x4xf32>
  return
}

// -----

func.func @conv2d_channels_of_layout(%x: tensor<1x8x8x4xf32>, %y: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected channels that fit 1 groups, got [1, 8, 8, 4] and [6, 4, 3, 3]}}
  %0 = "relax.conv2d"(%x, %y) {data_layout = "NHWC", kernel_layout = "HWIO"}
      : (tensor<1x8x8x4xf32>, tensor<6x4x3x3xf32>) -> tensor<1x8x8x4xf32>
  return
}

// -----

func.func @conv2d_out_dtype(%x: tensor<1x8x8x4xf32>, %y: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{'relax.conv2d' op expected a floating-point out_dtype, got i32}}
  %0 = "relax.conv2d"(%x, %y) {data_layout = "NHWC", out_dtype = i32} : (tensor<1x8x8x4xf32>, tensor<6x4x3x3xf32>)
      -> tensor<1x6x6x6xi32>
  return
}

// -----

func.func @max_pool2d_layout(%x: tensor<1x8x8x4xf32>) {
  // expected-error @+1 {{'relax.max_pool2d' op expected one of 'NCHW', 'NHWC' for attribute 'layout', got "NCWH"}}
  %0 = "relax.max_pool2d"(%x) {layout = "NCWH", pool_size = array<i64: 2, 2>} : (tensor<1x8x8x4xf32>)
      -> tensor<1x8x8x4xf32>
  return
}

// -----

func.func @packed_conv2d_weight_rank(%x: tensor<1x8x8x4xf32>, %y: tensor<36x8xf32>) {
  // expected-error @+1 {{'relax.packed_conv2d' op expected a weight of layout 'tile 8', got [36, 8]}}
  %0 = "relax.packed_conv2d"(%x, %y) {channels = 8 : i64, kernel_size = array<i64: 3, 3>, layout = "tile 8"}
      : (tensor<1x8x8x4xf32>, tensor<36x8xf32>) -> tensor<1x6x6x8xf32>
  return
}

// -----

func.func @packed_conv2d_panels(%x: tensor<1x8x8x4xf32>, %y: tensor<?x36x8xf32>) {
  // expected-error @+1 {{'relax.packed_conv2d' op expected a packed weight of static panels, got [?, 36, 8]}}
  %0 = "relax.packed_conv2d"(%x, %y) {channels = 8 : i64, kernel_size = array<i64: 3, 3>, layout = "tile 8"}
      : (tensor<1x8x8x4xf32>, tensor<?x36x8xf32>) -> tensor<1x6x6x8xf32>
  return
}

// -----

func.func @packed_conv2d_channels(%x: tensor<1x8x8x4xf32>, %y: tensor<2x36x8xf32>) {
  // expected-error @+1 {{'relax.packed_conv2d' op expected channels in (8, 16] for 2 panels of 8, got 8}}
  %0 = "relax.packed_conv2d"(%x, %y) {channels = 8 : i64, kernel_size = array<i64: 3, 3>, layout = "tile 8"}
      : (tensor<1x8x8x4xf32>, tensor<2x36x8xf32>) -> tensor<1x6x6x8xf32>
  return
}

// -----

func.func @packed_conv2d_filters(%x: tensor<1x8x8x4xf32>, %y: tensor<1x38x8xf32>) {
  // expected-error @+1 {{'relax.packed_conv2d' op expected filters of 3 by 3 elements, got [1, 38, 8]}}
  %0 = "relax.packed_conv2d"(%x, %y) {channels = 8 : i64, kernel_size = array<i64: 3, 3>, layout = "tile 8"}
      : (tensor<1x8x8x4xf32>, tensor<1x38x8xf32>) -> tensor<1x6x6x8xf32>
  return
}

// -----

func.func @packed_conv2d_no_filters(%x: tensor<1x8x8x4xf32>, %y: tensor<1x36x8xf32>) {
  // expected-error @+1 {{'relax.packed_conv2d' op expected filters of 0 by 3 elements, got [1, 36, 8]}}
  %0 = "relax.packed_conv2d"(%x, %y) {channels = 8 : i64, kernel_size = array<i64: 0, 3>, layout = "tile 8"}
      : (tensor<1x8x8x4xf32>, tensor<1x36x8xf32>) -> tensor<1x9x6x8xf32>
  return
}

// -----

func.func @packed_conv2d_groups_in_panels(%x: tensor<1x8x8x4xf32>, %y: tensor<2x18x8xf32>) {
  // expected-error @+1 {{'relax.packed_conv2d' op expected groups of whole panels, got 12 channels in 2 groups, panels of 8}}
  %0 = "relax.packed_conv2d"(%x, %y) {channels = 12 : i64, groups = 2
      : i64, kernel_size = array<i64: 3, 3>, layout = "tile 8"} : (tensor<1x8x8x4xf32>, tensor<2x18x8xf32>)
      -> tensor<1x6x6x12xf32>
  return
}

// -----

func.func @packed_conv2d_input_channels(%x: tensor<1x8x8x3xf32>, %y: tensor<1x36x8xf32>) {
// expected-error@+1 {{'relax.packed_conv2d' op expected channels that fit 1 groups, got [1, 8, 8, 3] and [3, 3, 4, 8]}}
  %0 = "relax.packed_conv2d"(%x, %y) {channels = 8 : i64, kernel_size = array<i64: 3, 3>, layout = "tile 8"}
      : (tensor<1x8x8x3xf32>, tensor<1x36x8xf32>) -> tensor<1x6x6x8xf32>
  return
}

// -----

func.func @packed_conv2d_dynamic_filters(%x: tensor<1x8x8x4xf32>, %y: tensor<1x?x8xf32>) {
  // expected-error @+1 {{'relax.packed_conv2d' op expected filters of 3 by 3 elements, got [1, ?, 8]}}
  %0 = "relax.packed_conv2d"(%x, %y) {channels = 8 : i64, kernel_size = array<i64: 3, 3>, layout = "tile 8"}
      : (tensor<1x8x8x4xf32>, tensor<1x?x8xf32>) -> tensor<1x6x6x8xf32>
  return
}
