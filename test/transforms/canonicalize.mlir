// RUN: relax-opt %s --relax-canonicalize | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(func.func(relax-canonicalize))' | filecheck %s
// RUN: relax-opt %s --relax-canonicalize --relax-canonicalize | filecheck %s

// CHECK-LABEL: @permutes
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg0) {axes = array<i64: 2, 0, 1>}
// CHECK-NEXT:    return %arg0, %arg0, %0
func.func @permutes(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4x2x3xf32>) {
  %0 = "relax.permute_dims"(%x) {axes = array<i64: 0, 1, 2>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %1 = "relax.permute_dims"(%x) : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
  %2 = "relax.permute_dims"(%1) : (tensor<4x3x2xf32>) -> tensor<2x3x4xf32>
  %3 = "relax.permute_dims"(%1) {axes = array<i64: 0, 2, -2>} : (tensor<4x3x2xf32>) -> tensor<4x2x3xf32>
  return %0, %2, %3 : tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4x2x3xf32>
}

// A permutation of equal dimensions is not the identity though the type stays.
// CHECK-LABEL: @square_permute
// CHECK-NEXT:    relax.permute_dims
func.func @square_permute(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "relax.permute_dims"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// CHECK-LABEL: @reshapes
// CHECK-NEXT:    %0 = "relax.reshape"(%arg0) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n * 4"]}>
// CHECK-NEXT:    return %0, %arg0
func.func @reshapes(%x: tensor<?x4xf32, {sym = ["n"]}>)
    -> (tensor<?xf32, {sym = ["n * 4"]}>, tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.reshape"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<2x?x2xf32, {sym = ["n"]}>
  %1 = "relax.expand_dims"(%0) {axis = array<i64: 1>} : (tensor<2x?x2xf32, {sym = ["n"]}>)
      -> tensor<2x1x?x2xf32, {sym = ["n"]}>
  %2 = "relax.reshape"(%1) : (tensor<2x1x?x2xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n * 4"]}>
  %3 = "relax.reshape"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return %2, %3 : tensor<?xf32, {sym = ["n * 4"]}>, tensor<?x4xf32, {sym = ["n"]}>
}

// An unknown dimension may differ from another unknown one: here %x may have size 1.
// CHECK-LABEL: @unknown
// CHECK-NEXT:    relax.where
func.func @unknown(%x: tensor<?xf32>, %c: tensor<?xi1>) -> tensor<?xf32> {
  %0 = "relax.where"(%c, %x, %x) : (tensor<?xi1>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: @broadcasts
// CHECK-NEXT:    %0 = "relax.broadcast_to"(%arg0) : (tensor<4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT:    return %0, %arg0
func.func @broadcasts(%x: tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<4xf32>) {
  %0 = "relax.broadcast_to"(%x) : (tensor<4xf32>) -> tensor<3x4xf32>
  %1 = "relax.broadcast_to"(%0) : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %2 = "relax.broadcast_to"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<2x3x4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @expand_and_squeeze
// CHECK-NEXT:    %[[S:.*]] = "relax.squeeze"(%arg0) {axis = array<i64: 0>}
// CHECK-NEXT:    %[[E:.*]] = "relax.expand_dims"(%[[S]]) {axis = array<i64: 2>}
// CHECK-NEXT:    return %arg0, %arg0, %[[E]]
func.func @expand_and_squeeze(%x: tensor<1x4x1xf32>) -> (tensor<1x4x1xf32>, tensor<1x4x1xf32>, tensor<4x1x1xf32>) {
  %0 = "relax.expand_dims"(%x) {axis = array<i64: -1>} : (tensor<1x4x1xf32>) -> tensor<1x4x1x1xf32>
  %1 = "relax.squeeze"(%0) {axis = array<i64: 3>} : (tensor<1x4x1x1xf32>) -> tensor<1x4x1xf32>
  %2 = "relax.squeeze"(%x) : (tensor<1x4x1xf32>) -> tensor<4xf32>
  %3 = "relax.expand_dims"(%2) {axis = array<i64: 0, 2>} : (tensor<4xf32>) -> tensor<1x4x1xf32>
  %4 = "relax.squeeze"(%x) {axis = array<i64: 0>} : (tensor<1x4x1xf32>) -> tensor<4x1xf32>
  %5 = "relax.expand_dims"(%4) {axis = array<i64: 2>} : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
  return %1, %3, %5 : tensor<1x4x1xf32>, tensor<1x4x1xf32>, tensor<4x1x1xf32>
}

// CHECK-LABEL: @casts_that_keep_values
// CHECK-NEXT:    %0 = "relax.astype"(%arg0) {dtype = bf16} : (tensor<4xf16>) -> tensor<4xbf16>
// CHECK-NEXT:    return %0, %arg0, %arg1, %arg1
func.func @casts_that_keep_values(%x: tensor<4xf16>, %i: tensor<4xi8>)
    -> (tensor<4xbf16>, tensor<4xf16>, tensor<4xi8>, tensor<4xi8>) {
  %0 = "relax.astype"(%x) {dtype = f32} : (tensor<4xf16>) -> tensor<4xf32>
  %1 = "relax.astype"(%0) {dtype = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
  %2 = "relax.astype"(%x) {dtype = f16} : (tensor<4xf16>) -> tensor<4xf16>
  %3 = "relax.astype"(%i) {dtype = i32} : (tensor<4xi8>) -> tensor<4xi32>
  %4 = "relax.astype"(%3) {dtype = i8} : (tensor<4xi32>) -> tensor<4xi8>
  %5 = "relax.astype"(%i) {dtype = bf16} : (tensor<4xi8>) -> tensor<4xbf16>
  %6 = "relax.astype"(%5) {dtype = i8} : (tensor<4xbf16>) -> tensor<4xi8>
  return %1, %2, %4, %6 : tensor<4xbf16>, tensor<4xf16>, tensor<4xi8>, tensor<4xi8>
}

// CHECK-LABEL: @casts_that_lose
// CHECK-COUNT-8: relax.astype
// CHECK-NOT:   relax.astype
func.func @casts_that_lose(%x: tensor<4xf32>, %i: tensor<4xi16>, %b: tensor<4xbf16>)
    -> (tensor<4xf32>, tensor<4xi16>, tensor<4xi8>, tensor<4xf32>) {
  %0 = "relax.astype"(%x) {dtype = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
  %1 = "relax.astype"(%0) {dtype = f32} : (tensor<4xbf16>) -> tensor<4xf32>
  %2 = "relax.astype"(%i) {dtype = f16} : (tensor<4xi16>) -> tensor<4xf16>
  %3 = "relax.astype"(%2) {dtype = i16} : (tensor<4xf16>) -> tensor<4xi16>
  %4 = "relax.astype"(%i) {dtype = f32} : (tensor<4xi16>) -> tensor<4xf32>
  %5 = "relax.astype"(%4) {dtype = i8} : (tensor<4xf32>) -> tensor<4xi8>
  %6 = "relax.astype"(%b) {dtype = f16} : (tensor<4xbf16>) -> tensor<4xf16>
  %7 = "relax.astype"(%6) {dtype = f32} : (tensor<4xf16>) -> tensor<4xf32>
  return %1, %3, %5, %7 : tensor<4xf32>, tensor<4xi16>, tensor<4xi8>, tensor<4xf32>
}

// CHECK-LABEL: @inverses
// CHECK-NEXT:    %0 = "relax.logical_not"(%arg0)
// CHECK-NEXT:    %1 = "relax.logical_not"(%0)
// CHECK-NEXT:    return %arg0, %arg1, %arg2, %1, %arg0
func.func @inverses(%x: tensor<4xf32>, %i: tensor<4xi32>, %c: tensor<4xi1>)
    -> (tensor<4xf32>, tensor<4xi32>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>) {
  %0 = "relax.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.negative"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relax.bitwise_not"(%i) : (tensor<4xi32>) -> tensor<4xi32>
  %3 = "relax.bitwise_not"(%2) : (tensor<4xi32>) -> tensor<4xi32>
  %4 = "relax.logical_not"(%c) : (tensor<4xi1>) -> tensor<4xi1>
  %5 = "relax.logical_not"(%4) : (tensor<4xi1>) -> tensor<4xi1>
  %6 = "relax.logical_not"(%x) : (tensor<4xf32>) -> tensor<4xi1>
  %7 = "relax.logical_not"(%6) : (tensor<4xi1>) -> tensor<4xi1>
  %8 = "relax.flip"(%x) {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %9 = "relax.flip"(%8) {axis = -1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %3, %5, %7, %9 : tensor<4xf32>, tensor<4xi32>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>
}

// CHECK-LABEL: @repeated
// CHECK-NEXT:    %[[A:.*]] = "relax.abs"(%arg0)
// CHECK-NEXT:    %[[R:.*]] = "relax.relu"(%arg0)
// CHECK-NEXT:    return %[[A]], %[[R]], %arg0, %arg0
func.func @repeated(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "relax.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relax.abs"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "relax.relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = "relax.relu"(%3) : (tensor<4xf32>) -> tensor<4xf32>
  %5 = "relax.maximum"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = "relax.minimum"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2, %4, %5, %6 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @whole
// CHECK-NEXT:    %[[S:.*]] = "relax.strided_slice"
// CHECK-NEXT:    return %arg0, %arg0, %arg0, %arg0, %[[S]], %arg0, %arg0
func.func @whole(%x: tensor<4x8xf32>, %c: tensor<4x1xi1>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<2x8xf32>, tensor<4x8xf32>,
    tensor<4x8xf32>) {
  %0 = "relax.repeat"(%x) {axis = 0 : i64, repeats = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "relax.tile"(%x) {repeats = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "relax.split"(%x) {sections = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "relax.strided_slice"(%x) {axes = array<i64: 0, 1>, begin = [0, -8], end = [4, 100]} : (tensor<4x8xf32>)
      -> tensor<4x8xf32>
  %4 = "relax.strided_slice"(%x) {axes = array<i64: 0>, begin = [0], end = [4], strides = array<i64: 2>}
      : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %5 = "relax.where"(%c, %x, %x) : (tensor<4x1xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = "relax.match_cast"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>,
      tensor<2x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// A copy to the device that a tensor is on goes, one to another device stays; so do barriers, hints, and casts that
// check.
// CHECK-LABEL: @kept
// CHECK-NEXT:    %0 = "relax.to_vdevice"(%arg0) {vdevice = "cpu:0"}
// CHECK-NEXT:    %1 = "relax.stop_lift_params"(%arg1)
// CHECK-NEXT:    %2 = "relax.hint_on_device"(%1)
// CHECK-NEXT:    %3 = "relax.match_cast"(%arg1)
// CHECK-NEXT:    return %arg0, %0, %2, %3
func.func @kept(%x: tensor<4xf32, {vdevice = "cuda:0"}>, %y: tensor<?xf32>)
    -> (tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cpu:0"}>, tensor<?xf32>, tensor<4xf32>) {
  %0 = "relax.to_vdevice"(%x) {vdevice = "cuda:0"} : (tensor<4xf32, {vdevice = "cuda:0"}>)
      -> tensor<4xf32, {vdevice = "cuda:0"}>
  %1 = "relax.to_vdevice"(%x) {vdevice = "cpu:0"} : (tensor<4xf32, {vdevice = "cuda:0"}>)
      -> tensor<4xf32, {vdevice = "cpu:0"}>
  %2 = "relax.stop_lift_params"(%y) : (tensor<?xf32>) -> tensor<?xf32>
  %3 = "relax.hint_on_device"(%2) {vdevice = "cpu:0"} : (tensor<?xf32>) -> tensor<?xf32>
  %4 = "relax.match_cast"(%y) : (tensor<?xf32>) -> tensor<4xf32>
  return %0, %1, %3, %4 : tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cpu:0"}>, tensor<?xf32>,
      tensor<4xf32>
}

// In regions too.
// CHECK-LABEL: @region
// CHECK:         scf.if
// CHECK-NEXT:      scf.yield %arg0
func.func @region(%x: tensor<4x4xf32>, %c: i1) -> tensor<4x4xf32> {
  %0 = scf.if %c -> tensor<4x4xf32> {
    %1 = "relax.permute_dims"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = "relax.permute_dims"(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %2 : tensor<4x4xf32>
  } else {
    %1 = "relax.exp"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %1 : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}

// Integers that become floats and integers again by the same scale and zero point are moved as they are; not by others,
// and not where a scale for each column would have to move, too.
// CHECK-LABEL: @integers_again
// CHECK-NEXT:    %[[C:.*]] = "relax.dequantize"(%arg0, %arg1, %arg2)
// CHECK-NEXT:    %[[A:.*]] = "relax.reshape"(%arg0) : (tensor<?x12xui8, {sym = ["n"]}>) -> tensor<?x3x4xui8
// CHECK-NEXT:    %[[B:.*]] = "relax.permute_dims"(%[[A]]) {axes = array<i64: 1, 0, 2>}
// CHECK-NEXT:    %[[D:.*]] = "relax.quantize"(%[[C]], %arg3, %arg2)
// CHECK-NEXT:    %[[E:.*]] = "relax.dequantize"(%arg0, %arg4, %arg2)
// CHECK-NEXT:    %[[F:.*]] = "relax.quantize"(%[[E]], %arg4, %arg2)
// CHECK-NEXT:    return %arg0, %[[B]], %[[D]], %[[F]]
func.func @integers_again(%x: tensor<?x12xui8, {sym = ["n"]}>, %s: tensor<f32>, %z: tensor<ui8>, %t: tensor<f32>,
    %v: tensor<12xf32>) -> (tensor<?x12xui8, {sym = ["n"]}>, tensor<3x?x4xui8, {sym = ["n"]}>,
    tensor<?x12xui8, {sym = ["n"]}>, tensor<?x12xui8, {sym = ["n"]}>) {
  %0 = "relax.dequantize"(%x, %s, %z) : (tensor<?x12xui8, {sym = ["n"]}>, tensor<f32>, tensor<ui8>)
      -> tensor<?x12xf32, {sym = ["n"]}>
  %1 = "relax.quantize"(%0, %s, %z) {dtype = ui8} : (tensor<?x12xf32, {sym = ["n"]}>, tensor<f32>, tensor<ui8>)
      -> tensor<?x12xui8, {sym = ["n"]}>
  %2 = "relax.reshape"(%0) : (tensor<?x12xf32, {sym = ["n"]}>) -> tensor<?x3x4xf32, {sym = ["n"]}>
  %3 = "relax.permute_dims"(%2) {axes = array<i64: 1, 0, 2>} : (tensor<?x3x4xf32, {sym = ["n"]}>)
      -> tensor<3x?x4xf32, {sym = ["n"]}>
  %4 = "relax.quantize"(%3, %s, %z) {dtype = ui8} : (tensor<3x?x4xf32, {sym = ["n"]}>, tensor<f32>, tensor<ui8>)
      -> tensor<3x?x4xui8, {sym = ["n"]}>
  %5 = "relax.quantize"(%0, %t, %z) {dtype = ui8} : (tensor<?x12xf32, {sym = ["n"]}>, tensor<f32>, tensor<ui8>)
      -> tensor<?x12xui8, {sym = ["n"]}>
  %6 = "relax.dequantize"(%x, %v, %z) : (tensor<?x12xui8, {sym = ["n"]}>, tensor<12xf32>, tensor<ui8>)
      -> tensor<?x12xf32, {sym = ["n"]}>
  %7 = "relax.quantize"(%6, %v, %z) {dtype = ui8} : (tensor<?x12xf32, {sym = ["n"]}>, tensor<12xf32>, tensor<ui8>)
      -> tensor<?x12xui8, {sym = ["n"]}>
  return %1, %4, %5, %7 : tensor<?x12xui8, {sym = ["n"]}>, tensor<3x?x4xui8, {sym = ["n"]}>,
      tensor<?x12xui8, {sym = ["n"]}>, tensor<?x12xui8, {sym = ["n"]}>
}

// Zeros around an image become a convolution's padding; not other numbers, and not in other dimensions.
// CHECK-LABEL: @pads(
// CHECK-NEXT:    "relax.conv2d"(%arg0, %arg1) {data_layout = "NHWC", kernel_layout = "HWIO", padding
// CHECK-SAME:      = array<i64: 0, 1, 1, 3>, strides = array<i64: 2, 1>}
// CHECK-NEXT:    "relax.conv2d"(%arg2, %arg3) {padding = array<i64: 1, 0, 0, 2>}
// CHECK-NEXT:    "relax.pad"(%arg2) {after = array<i64: 0, 0, 0, 2>, before = array<i64: 0, 0, 1, 0>
// CHECK-SAME:      value = 1.0
// CHECK-NEXT:    "relax.conv2d"
// CHECK-NEXT:    "relax.pad"(%arg2) {after = array<i64: 0, 0, 0, 2>, before = array<i64: 0, 0, 1, 0>
// CHECK-SAME:      value = -0.0
// CHECK-NEXT:    "relax.conv2d"
// CHECK-NEXT:    "relax.pad"(%arg2) {after = array<i64: 0, 1, 0, 0>
// CHECK-NEXT:    "relax.conv2d"
func.func @pads(%x: tensor<?x8x8x4xf32, {sym = ["n"]}>, %w: tensor<3x3x4x6xf32>, %y: tensor<1x4x8x8xf32>,
    %v: tensor<6x4x3x3xf32>, %u: tensor<6x5x3x3xf32>)
    -> (tensor<?x4x10x6xf32, {sym = ["n"]}>, tensor<1x6x7x8xf32>, tensor<1x6x7x8xf32>, tensor<1x6x7x8xf32>,
        tensor<1x6x6x6xf32>) {
  %0 = "relax.pad"(%x) {before = array<i64: 0, 0, 1, 0>, after = array<i64: 0, 1, 2, 0>}
      : (tensor<?x8x8x4xf32, {sym = ["n"]}>) -> tensor<?x9x11x4xf32, {sym = ["n"]}>
  %1 = "relax.conv2d"(%0, %w) {data_layout = "NHWC", kernel_layout = "HWIO", padding = array<i64: 0, 0, 0, 1>,
      strides = array<i64: 2, 1>} : (tensor<?x9x11x4xf32, {sym = ["n"]}>, tensor<3x3x4x6xf32>)
      -> tensor<?x4x10x6xf32, {sym = ["n"]}>
  %2 = "relax.pad"(%y) {before = array<i64: 0, 0, 1, 0>, after = array<i64: 0, 0, 0, 2>}
      : (tensor<1x4x8x8xf32>) -> tensor<1x4x9x10xf32>
  %3 = "relax.conv2d"(%2, %v) : (tensor<1x4x9x10xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x8xf32>
  %4 = "relax.pad"(%y) {before = array<i64: 0, 0, 1, 0>, after = array<i64: 0, 0, 0, 2>, value = 1.0 : f64}
      : (tensor<1x4x8x8xf32>) -> tensor<1x4x9x10xf32>
  %5 = "relax.conv2d"(%4, %v) : (tensor<1x4x9x10xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x8xf32>
  %6 = "relax.pad"(%y) {before = array<i64: 0, 0, 1, 0>, after = array<i64: 0, 0, 0, 2>, value = -0.0 : f64}
      : (tensor<1x4x8x8xf32>) -> tensor<1x4x9x10xf32>
  %7 = "relax.conv2d"(%6, %v) : (tensor<1x4x9x10xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x8xf32>
  %8 = "relax.pad"(%y) {before = array<i64: 0, 0, 0, 0>, after = array<i64: 0, 1, 0, 0>}
      : (tensor<1x4x8x8xf32>) -> tensor<1x5x8x8xf32>
  %9 = "relax.conv2d"(%8, %u) : (tensor<1x5x8x8xf32>, tensor<6x5x3x3xf32>) -> tensor<1x6x6x6xf32>
  return %1, %3, %5, %7, %9 : tensor<?x4x10x6xf32, {sym = ["n"]}>, tensor<1x6x7x8xf32>, tensor<1x6x7x8xf32>,
      tensor<1x6x7x8xf32>, tensor<1x6x6x6xf32>
}
