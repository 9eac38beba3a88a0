// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-pack-weights{tile=8})' | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-pack-weights{tile=8},relax-lift-transform-params)' \
// RUN:   | filecheck %s --check-prefix=LIFTED
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-pack-weights{tile=0})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=TILE
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-pack-weights{tile=1})' | filecheck %s --check-prefix=COLUMNS

// In panels of one column, a matrix that is transposed is as it was; nothing is left that would be prepared, too.
// COLUMNS-LABEL: @packs
// COLUMNS-NEXT:    %[[P:.*]] = "relax.reshape"(%arg1) : (tensor<12x4xf32>) -> tensor<12x4x1xf32>
// COLUMNS:         "relax.packed_matmul"(%arg0, %[[P]]) {layout = "tile 1", n = 12 : i64}

// A weight, or what comes from weights, is packed once for all its products; the written result type stays.
// CHECK-LABEL: @packs
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg1)
// CHECK-NEXT:    %1 = "relax.pack_weight"(%0) {layout = "tile 8"} : (tensor<4x12xf32>) -> tensor<2x4x8xf32>
// CHECK-NEXT:    %2 = "relax.packed_matmul"(%arg0, %1) {layout = "tile 8", n = 12 : i64} : ({{.*}}) -> tensor<?x12xf32>
// CHECK-NEXT:    %3 = "relax.packed_matmul"(%arg0, %1)
// LIFTED-LABEL: @packs_transform_params
// LIFTED-SAME:   -> (tensor<2x4x8xf32> {relax.name = "w.permute_dims.pack_weight"})
// TILE: error: expected a positive tile, got 0
func.func @packs(%x: tensor<?x4xf32, {sym = ["n"]}>, %w: tensor<12x4xf32> {relax.name = "w"})
    -> (tensor<?x12xf32>, tensor<?x12xf32, {sym = ["n"]}>) attributes {relax.num_input = 1 : i64} {
  %t = "relax.permute_dims"(%w) : (tensor<12x4xf32>) -> tensor<4x12xf32>
  %0 = "relax.matmul"(%x, %t) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x12xf32>) -> tensor<?x12xf32>
  %1 = "relax.matmul"(%x, %t) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x12xf32>) -> tensor<?x12xf32, {sym = ["n"]}>
  return %0, %1 : tensor<?x12xf32>, tensor<?x12xf32, {sym = ["n"]}>
}

// Left alone: a product of run-time values, of weights alone, with a batch of matrices, of integers, behind a barrier.
// CHECK-LABEL: @leaves
// CHECK-NOT:     pack
func.func @leaves(%x: tensor<4x4xf32>, %i: tensor<4x4xi8>, %w: tensor<4x4xf32> {relax.name = "w"}, %b: tensor<2x4x4xf32>
    {relax.name = "b"}, %q: tensor<4x4xi8> {relax.name = "q"})
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x4x4xf32>, tensor<4x4xi8>, tensor<4x4xf32>)
        attributes {relax.num_input = 2 : i64} {
  %0 = "relax.matmul"(%x, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relax.matmul"(%w, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "relax.matmul"(%x, %b) : (tensor<4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %3 = "relax.matmul"(%i, %q) : (tensor<4x4xi8>, tensor<4x4xi8>) -> tensor<4x4xi8>
  %s = "relax.stop_lift_params"(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = "relax.matmul"(%x, %s) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %2, %3, %4 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x4x4xf32>, tensor<4x4xi8>, tensor<4x4xf32>
}

// What a product in a loop reads is packed before the loop, once; a constant zero point does not hide a weight.
// CHECK-LABEL: @loops
// CHECK:         %[[W:.*]] = "relax.dequantize"
// CHECK:         %[[P:.*]] = "relax.pack_weight"(%[[W]]) {layout = "tile 8"} : (tensor<4x4xf32>) -> tensor<1x4x8xf32>
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      "relax.packed_matmul"(%{{.*}}, %[[P]])
// CHECK-NEXT:      "relax.packed_matmul"(%{{.*}}, %[[P]])
func.func @loops(%x: tensor<2x4xf32>, %q: tensor<4x4xi8> {relax.name = "lq"}, %s: tensor<f32> {relax.name = "ls"})
    -> tensor<2x4xf32> attributes {relax.num_input = 1 : i64} {
  %z = "relax.full"() {value = 1 : i64} : () -> tensor<i8>
  %w = "relax.dequantize"(%q, %s, %z) : (tensor<4x4xi8>, tensor<f32>, tensor<i8>) -> tensor<4x4xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> (tensor<2x4xf32>) {
    %0 = "relax.matmul"(%a, %w) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = "relax.matmul"(%0, %w) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    scf.yield %1 : tensor<2x4xf32>
  }
  return %r : tensor<2x4xf32>
}

// A convolution in NHWC reads its filters as a matrix of one column per channel of the result.
// CHECK-LABEL: @convolution
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg1) {axes = array<i64: 2, 3, 1, 0>} : (tensor<12x4x3x2xf32>)
// CHECK-SAME:    -> tensor<3x2x4x12xf32>
// CHECK-NEXT:    %1 = "relax.reshape"(%0) : (tensor<3x2x4x12xf32>) -> tensor<24x12xf32>
// CHECK-NEXT:    %2 = "relax.pack_weight"(%1) {layout = "tile 8"} : (tensor<24x12xf32>) -> tensor<2x24x8xf32>
// CHECK-NEXT:    %3 = "relax.packed_conv2d"(%arg0, %2)
// CHECK-SAME:    {channels = 12 : i64, dilation = array<i64: 1, 2>, kernel_size = array<i64: 3, 2>, layout = "tile 8",
// CHECK-SAME:    padding = array<i64: 1, 0, 1, 2>, strides = array<i64: 2, 1>}
// CHECK-SAME:    : (tensor<?x5x6x4xf32, {sym = ["n"]}>, tensor<2x24x8xf32>) -> tensor<?x3x6x12xf32, {sym = ["n"]}>
// CHECK-NEXT:    return %3
// LIFTED-LABEL: @convolution_transform_params
// LIFTED-SAME:   -> (tensor<2x24x8xf32>
func.func @convolution(%x: tensor<?x5x6x4xf32, {sym = ["n"]}>, %w: tensor<12x4x3x2xf32> {relax.name = "pw"})
    -> tensor<?x3x6x12xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) {data_layout = "NHWC", strides = array<i64: 2, 1>, padding = array<i64: 1, 0, 1, 2>,
      dilation = array<i64: 1, 2>} : (tensor<?x5x6x4xf32, {sym = ["n"]}>, tensor<12x4x3x2xf32>)
      -> tensor<?x3x6x12xf32, {sym = ["n"]}>
  return %0 : tensor<?x3x6x12xf32, {sym = ["n"]}>
}

// Filters that two convolutions read are packed once; laid out as the matrix, they are not moved. Groups of whole
// panels.
// CHECK-LABEL: @shared_filters
// CHECK-NEXT:    %0 = "relax.reshape"(%arg1) : (tensor<1x1x4x16xbf16>) -> tensor<4x16xbf16>
// CHECK-NEXT:    %1 = "relax.pack_weight"(%0)
// CHECK-NEXT:    %2 = "relax.packed_conv2d"(%arg0, %1)
// CHECK-SAME:    {channels = 16 : i64, groups = 2 : i64, kernel_size = array<i64: 1, 1>, layout = "tile 8", out_dtype
// CHECK-SAME:    = f32} : (tensor<2x5x6x8xbf16>, tensor<2x4x8xbf16>) -> tensor<2x5x6x16xf32>
// CHECK-NEXT:    %3 = "relax.packed_conv2d"(%arg0, %1)
// CHECK-SAME:    {channels = 16 : i64, groups = 2 : i64, kernel_size = array<i64: 1, 1>, layout = "tile 8", strides
// CHECK-SAME:    = array<i64: 2, 2>}
func.func @shared_filters(%x: tensor<2x5x6x8xbf16>, %w: tensor<1x1x4x16xbf16> {relax.name = "sw"})
    -> (tensor<2x5x6x16xf32>, tensor<2x3x3x16xbf16>) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO", groups = 2 : i64, out_dtype = f32}
      : (tensor<2x5x6x8xbf16>, tensor<1x1x4x16xbf16>) -> tensor<2x5x6x16xf32>
  %1 = "relax.conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO", groups = 2
      : i64, strides = array<i64: 2, 2>} : (tensor<2x5x6x8xbf16>, tensor<1x1x4x16xbf16>) -> tensor<2x3x3x16xbf16>
  return %0, %1 : tensor<2x5x6x16xf32>, tensor<2x3x3x16xbf16>
}

// Convolutions that stay: in NCHW, in groups of two filters, of filters that are no weights.
// CHECK-LABEL: @convolutions
// CHECK-NOT:     pack
func.func @convolutions(%x: tensor<2x4x4x4xf32>, %f: tensor<4x4x1x1xf32>, %w: tensor<4x4x1x1xf32> {relax.name = "cw"},
    %g: tensor<4x2x1x1xf32> {relax.name = "cg"}) -> (tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>)
    attributes {relax.num_input = 2 : i64} {
  %0 = "relax.conv2d"(%x, %w) : (tensor<2x4x4x4xf32>, tensor<4x4x1x1xf32>) -> tensor<2x4x4x4xf32>
  %1 = "relax.conv2d"(%x, %g) {data_layout = "NHWC", groups = 2 : i64} : (tensor<2x4x4x4xf32>, tensor<4x2x1x1xf32>)
      -> tensor<2x4x4x4xf32>
  %2 = "relax.conv2d"(%x, %f) {data_layout = "NHWC"} : (tensor<2x4x4x4xf32>, tensor<4x4x1x1xf32>) -> tensor<2x4x4x4xf32>
  return %0, %1, %2 : tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>
}

// Panels that the filters of a group fill, half as wide or a quarter; not those of groups of one channel.
// CHECK-LABEL: @groups
// CHECK:         "relax.packed_conv2d"({{.*}}) {channels = 12 : i64, groups = 3 : i64, {{.*}}layout = "tile 4"}
// CHECK:         "relax.packed_conv2d"({{.*}}) {channels = 36 : i64, groups = 3 : i64, {{.*}}layout = "tile 4"}
// CHECK:         "relax.conv2d"({{.*}}groups = 6
func.func @groups(%x: tensor<2x4x4x6xf32>, %a: tensor<12x2x1x1xf32> {relax.name = "ga"},
    %b: tensor<36x2x1x1xf32> {relax.name = "gb"}, %c: tensor<24x1x1x1xf32> {relax.name = "gc"})
    -> (tensor<2x4x4x12xf32>, tensor<2x4x4x36xf32>, tensor<2x4x4x24xf32>) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %a) {data_layout = "NHWC", groups = 3 : i64}
      : (tensor<2x4x4x6xf32>, tensor<12x2x1x1xf32>) -> tensor<2x4x4x12xf32>
  %1 = "relax.conv2d"(%x, %b) {data_layout = "NHWC", groups = 3 : i64}
      : (tensor<2x4x4x6xf32>, tensor<36x2x1x1xf32>) -> tensor<2x4x4x36xf32>
  %2 = "relax.conv2d"(%x, %c) {data_layout = "NHWC", groups = 6 : i64}
      : (tensor<2x4x4x6xf32>, tensor<24x1x1x1xf32>) -> tensor<2x4x4x24xf32>
  return %0, %1, %2 : tensor<2x4x4x12xf32>, tensor<2x4x4x36xf32>, tensor<2x4x4x24xf32>
}

// Columns in groups are in panels that those of one group fill; of fewer than four of these matrices stay.
// CHECK-LABEL: @columns_in_groups
// CHECK:         %[[PACKED:.*]] = "relax.pack_weight"(%arg2) {layout = "tile 4"}
// CHECK-SAME:      : (tensor<5x36xf32>) -> tensor<9x5x4xf32>
// CHECK:         "relax.packed_grouped_matmul"(%arg0, %[[PACKED]], %arg1) {layout = "tile 4", n = 36 : i64}
// CHECK:         "relax.grouped_matmul"(%arg0, %arg3, %arg1)
func.func @columns_in_groups(%x: tensor<4x5xf32>, %ends: tensor<3xi64>, %w: tensor<5x36xf32> {relax.name = "w"},
    %v: tensor<5x18xf32> {relax.name = "v"}) -> (tensor<4x12xf32>, tensor<4x6xf32>)
    attributes {relax.num_input = 2 : i64} {
  %0 = "relax.grouped_matmul"(%x, %w, %ends) : (tensor<4x5xf32>, tensor<5x36xf32>, tensor<3xi64>) -> tensor<4x12xf32>
  %1 = "relax.grouped_matmul"(%x, %v, %ends) : (tensor<4x5xf32>, tensor<5x18xf32>, tensor<3xi64>) -> tensor<4x6xf32>
  return %0, %1 : tensor<4x12xf32>, tensor<4x6xf32>
}
