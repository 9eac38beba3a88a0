// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @integers(%x: tensor<1x8x8x4xi8>, %y: tensor<1x64x8xi8>) {
  // expected-error @+1 {{'relax.winograd_conv2d' op expected a floating-point operand, got i8}}
  %0 = "relax.winograd_conv2d"(%x, %y) {channels = 8 : i64, layout = "tile 8"}
      : (tensor<1x8x8x4xi8>, tensor<1x64x8xi8>) -> tensor<1x6x6x8xi8>
  return
}

// -----

func.func @filters(%x: tensor<1x8x8x4xf32>, %y: tensor<1x63x8xf32>) {
  // expected-error @+1 {{'relax.winograd_conv2d' op expected filters of 16 elements, got [1, 63, 8]}}
  %0 = "relax.winograd_conv2d"(%x, %y) {channels = 8 : i64, layout = "tile 8"}
      : (tensor<1x8x8x4xf32>, tensor<1x63x8xf32>) -> tensor<1x6x6x8xf32>
  return
}

// -----

func.func @open_filters(%x: tensor<1x8x8x4xf32>, %y: tensor<1x?x8xf32>) {
  // expected-error @+1 {{'relax.winograd_conv2d' op expected filters of 16 elements, got [1, ?, 8]}}
  %0 = "relax.winograd_conv2d"(%x, %y) {channels = 8 : i64, layout = "tile 8"}
      : (tensor<1x8x8x4xf32>, tensor<1x?x8xf32>) -> tensor<1x6x6x8xf32>
  return
}

// -----

func.func @channels(%x: tensor<1x8x8x4xf32>, %y: tensor<1x48x8xf32>) {
  // expected-error @+1 {{op expected channels that fit 1 groups, got [1, 8, 8, 4] and [3, 3, 3, 8]}}
  %0 = "relax.winograd_conv2d"(%x, %y) {channels = 8 : i64, layout = "tile 8"}
      : (tensor<1x8x8x4xf32>, tensor<1x48x8xf32>) -> tensor<1x6x6x8xf32>
  return
}

// -----

func.func @panels(%x: tensor<1x8x8x4xf32>, %y: tensor<2x64x8xf32>) {
  // expected-error @+1 {{'relax.winograd_conv2d' op expected channels in (8, 16] for 2 panels of 8, got 8}}
  %0 = "relax.winograd_conv2d"(%x, %y) {channels = 8 : i64, layout = "tile 8"}
      : (tensor<1x8x8x4xf32>, tensor<2x64x8xf32>) -> tensor<1x6x6x8xf32>
  return
}

// -----

func.func @neighbours(%x: tensor<1x8x8x4xf32>, %y: tensor<1x16x8x4xf32>) {
  // expected-error @+1 {{'relax.winograd_conv2d' op expected a layout of a tile alone, got 'tile 8, rows 4'}}
  %0 = "relax.winograd_conv2d"(%x, %y) {channels = 8 : i64, layout = "tile 8, rows 4"}
      : (tensor<1x8x8x4xf32>, tensor<1x16x8x4xf32>) -> tensor<1x6x6x8xf32>
  return
}

// -----

func.func @small(%x: tensor<1x2x8x4xf32>, %y: tensor<1x64x8xf32>) {
  // expected-error @+1 {{'relax.winograd_conv2d' op expected a window of at most 2, got 3}}
  %0 = "relax.winograd_conv2d"(%x, %y) {channels = 8 : i64, layout = "tile 8"}
      : (tensor<1x2x8x4xf32>, tensor<1x64x8xf32>) -> tensor<1x0x6x8xf32>
  return
}
