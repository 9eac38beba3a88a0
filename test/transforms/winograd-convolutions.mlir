// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-winograd-convolutions)' | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-winograd-convolutions,relax-lift-transform-params)' \
// RUN:   | filecheck %s --check-prefix=LIFTED
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-winograd-convolutions,relax-winograd-convolutions)' \
// RUN:   | filecheck %s
// RUN: relax-opt %s --relax-winograd-convolutions=gainful=true | filecheck %s --check-prefix=GAINFUL

// Filters are transformed and packed, once for both convolutions; and lifted, though they grow.
// CHECK-LABEL: @filters(
// CHECK:         %[[G:.*]] = "relax.constant"() {{.*}} -> tensor<16x9xf32>
// CHECK-NEXT:    %[[M:.*]] = "relax.reshape"(%arg1) : (tensor<3x3x16x24xf32>) -> tensor<9x384xf32>
// CHECK-NEXT:    %[[U:.*]] = "relax.matmul"(%[[G]], %[[M]]) : {{.*}} -> tensor<16x384xf32>
// CHECK-NEXT:    %[[K:.*]] = "relax.reshape"(%[[U]]) : (tensor<16x384xf32>) -> tensor<256x24xf32>
// CHECK-NEXT:    %[[P:.*]] = "relax.pack_weight"(%[[K]]) {layout = "tile 32", relax.lift = "always"}
// CHECK-SAME:      : (tensor<256x24xf32>) -> tensor<1x256x32xf32>
// CHECK-NEXT:    "relax.winograd_conv2d"(%arg0, %[[P]]) {channels = 24 : i64, layout = "tile 32", padding
// CHECK-SAME:      = array<i64: 1, 1, 1, 1>}
// CHECK-NEXT:    "relax.winograd_conv2d"(%arg0, %[[P]]) {channels = 24 : i64, layout = "tile 32"}
// LIFTED-LABEL: @filters_transform_params
// LIFTED:         "relax.matmul"
// LIFTED:         "relax.pack_weight"
func.func @filters(%x: tensor<?x8x?x16xf32, {sym = ["n", "w"]}>, %w: tensor<3x3x16x24xf32> {relax.name = "w"})
    -> (tensor<?x8x?x24xf32, {sym = ["n", "w"]}>, tensor<?x6x?x24xf32, {sym = ["n", "w - 2"]}>)
        attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO", padding = array<i64: 1, 1, 1, 1>}
      : (tensor<?x8x?x16xf32, {sym = ["n", "w"]}>, tensor<3x3x16x24xf32>) -> tensor<?x8x?x24xf32, {sym = ["n", "w"]}>
  %1 = "relax.conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO"}
      : (tensor<?x8x?x16xf32, {sym = ["n", "w"]}>, tensor<3x3x16x24xf32>)
      -> tensor<?x6x?x24xf32, {sym = ["n", "w - 2"]}>
  return %0, %1 : tensor<?x8x?x24xf32, {sym = ["n", "w"]}>, tensor<?x6x?x24xf32, {sym = ["n", "w - 2"]}>
}

// Filters in another order are moved first.
// CHECK-LABEL: @turned(
// CHECK:         %[[T:.*]] = "relax.permute_dims"(%arg1) {axes = array<i64: 2, 3, 1, 0>}
// CHECK:         "relax.reshape"(%[[T]])
// CHECK:         "relax.winograd_conv2d"
func.func @turned(%x: tensor<1x8x8x16xf32>, %w: tensor<24x16x3x3xf32> {relax.name = "w"}) -> tensor<1x6x6x24xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) {data_layout = "NHWC"}
      : (tensor<1x8x8x16xf32>, tensor<24x16x3x3xf32>) -> tensor<1x6x6x24xf32>
  return %0 : tensor<1x6x6x24xf32>
}

// Left alone: other filters, strides and dilation, groups, NCHW, filters that are no weights, of weights alone; few
// channels or many; narrow floats.
// CHECK-LABEL: @leaves(
// CHECK-NOT:     winograd
// CHECK-LABEL: @narrow(
// CHECK-NOT:     winograd
// CHECK-LABEL: @small(
func.func @leaves(%x: tensor<1x8x8x16xf32>, %v: tensor<3x3x16x16xf32>, %c: tensor<1x16x8x8xf32>,
    %f: tensor<1x8x8x15xf32>, %l: tensor<1x8x8x2049xf32>,
    %w: tensor<3x3x16x16xf32> {relax.name = "w"}, %k: tensor<1x3x16x16xf32> {relax.name = "k"},
    %g: tensor<3x3x8x16xf32> {relax.name = "g"}, %s: tensor<3x3x15x16xf32> {relax.name = "s"},
    %m: tensor<3x3x2049x16xf32> {relax.name = "m"}, %i: tensor<1x8x8x16xf32> {relax.name = "i"},
    %o: tensor<3x3x16x8xf32> {relax.name = "o"})
    attributes {relax.num_input = 5 : i64} {
  %0 = "relax.conv2d"(%x, %k) {data_layout = "NHWC", kernel_layout = "HWIO"}
      : (tensor<1x8x8x16xf32>, tensor<1x3x16x16xf32>) -> tensor<1x8x6x16xf32>
  %1 = "relax.conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO", strides = array<i64: 2, 1>}
      : (tensor<1x8x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x3x6x16xf32>
  %2 = "relax.conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO", dilation = array<i64: 1, 2>}
      : (tensor<1x8x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x6x4x16xf32>
  %3 = "relax.conv2d"(%x, %g) {data_layout = "NHWC", kernel_layout = "HWIO", groups = 2 : i64}
      : (tensor<1x8x8x16xf32>, tensor<3x3x8x16xf32>) -> tensor<1x6x6x16xf32>
  %4 = "relax.conv2d"(%c, %w) {kernel_layout = "HWIO"}
      : (tensor<1x16x8x8xf32>, tensor<3x3x16x16xf32>) -> tensor<1x16x6x6xf32>
  %5 = "relax.conv2d"(%x, %v) {data_layout = "NHWC", kernel_layout = "HWIO"}
      : (tensor<1x8x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x6x6x16xf32>
  %6 = "relax.conv2d"(%i, %w) {data_layout = "NHWC", kernel_layout = "HWIO"}
      : (tensor<1x8x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x6x6x16xf32>
  %7 = "relax.conv2d"(%f, %s) {data_layout = "NHWC", kernel_layout = "HWIO"}
      : (tensor<1x8x8x15xf32>, tensor<3x3x15x16xf32>) -> tensor<1x6x6x16xf32>
  %8 = "relax.conv2d"(%l, %m) {data_layout = "NHWC", kernel_layout = "HWIO"}
      : (tensor<1x8x8x2049xf32>, tensor<3x3x2049x16xf32>) -> tensor<1x6x6x16xf32>
  %9 = "relax.conv2d"(%x, %o) {data_layout = "NHWC", kernel_layout = "HWIO"}
      : (tensor<1x8x8x16xf32>, tensor<3x3x16x8xf32>) -> tensor<1x6x6x8xf32>
  return
}

func.func @narrow(%x: tensor<1x8x8x16xbf16>, %y: tensor<1x8x8x16xf32>, %w: tensor<3x3x16x16xbf16> {relax.name = "w"},
    %v: tensor<3x3x16x16xf32> {relax.name = "v"}) -> (tensor<1x6x6x16xbf16>, tensor<1x6x6x16xbf16>)
        attributes {relax.num_input = 2 : i64} {
  %0 = "relax.conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO"}
      : (tensor<1x8x8x16xbf16>, tensor<3x3x16x16xbf16>) -> tensor<1x6x6x16xbf16>
  %1 = "relax.conv2d"(%y, %v) {data_layout = "NHWC", kernel_layout = "HWIO", out_dtype = bf16}
      : (tensor<1x8x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x6x6x16xbf16>
  return %0, %1 : tensor<1x6x6x16xbf16>, tensor<1x6x6x16xbf16>
}

// Where it is to pay: images of at least nine tiles, with more than two results in each.
// GAINFUL-LABEL: @small(
// GAINFUL:         "relax.conv2d"(%arg0
// GAINFUL:         "relax.conv2d"(%arg1
// GAINFUL:         "relax.winograd_conv2d"(%arg2
// GAINFUL:         "relax.winograd_conv2d"(%arg3
func.func @small(%a: tensor<1x4x4x16xf32>, %b: tensor<1x1x90x16xf32>, %c: tensor<1x5x5x16xf32>,
    %d: tensor<?x2x2x16xf32, {sym = ["n"]}>, %w: tensor<3x3x16x16xf32> {relax.name = "w"})
    attributes {relax.num_input = 4 : i64} {
  %0 = "relax.conv2d"(%a, %w) {data_layout = "NHWC", kernel_layout = "HWIO", padding = array<i64: 1, 1, 1, 1>}
      : (tensor<1x4x4x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x4x4x16xf32>
  %1 = "relax.conv2d"(%b, %w) {data_layout = "NHWC", kernel_layout = "HWIO", padding = array<i64: 1, 1, 1, 1>}
      : (tensor<1x1x90x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x1x90x16xf32>
  %2 = "relax.conv2d"(%c, %w) {data_layout = "NHWC", kernel_layout = "HWIO", padding = array<i64: 1, 1, 1, 1>}
      : (tensor<1x5x5x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x5x5x16xf32>
  %3 = "relax.conv2d"(%d, %w) {data_layout = "NHWC", kernel_layout = "HWIO", padding = array<i64: 1, 1, 1, 1>}
      : (tensor<?x2x2x16xf32, {sym = ["n"]}>, tensor<3x3x16x16xf32>) -> tensor<?x2x2x16xf32, {sym = ["n"]}>
  return
}
