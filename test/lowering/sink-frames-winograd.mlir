// RUN: relax-opt %s --relax-set-target=target=cpu:znver4 --relax-to-linalg=tile=32 --relax-outline-kernels \
// RUN:   --relax-sink-frames | filecheck %s

// Kernels of Winograd's filtering make the frame of their image, of known sizes.
// CHECK-LABEL: @known(
// CHECK-NOT: tensor.insert_slice
// CHECK: call @winograd_{{[0-9]+}}_framed(%arg0,
// CHECK-LABEL: @open(
// CHECK: tensor.insert_slice
// CHECK: call @winograd_
// CHECK: func.func private @winograd_{{[0-9]+}}_framed(%[[X:.*]]: tensor<1x8x8x16xf32>,
// CHECK: %[[IMAGE:.*]] = tensor.insert_slice %[[X]] into %{{.*}}[0, 1, 1, 0] [1, 8, 8, 16]
// CHECK: linalg.generic {{.*}} ins(%[[IMAGE]], %[[IMAGE]],
func.func @known(%x: tensor<1x8x8x16xf32>, %w: tensor<1x256x32xf32>) -> tensor<1x8x8x32xf32> {
  %0 = "relax.winograd_conv2d"(%x, %w) {channels = 32 : i64, layout = "tile 32", padding = array<i64: 1, 1, 1, 1>}
      : (tensor<1x8x8x16xf32>, tensor<1x256x32xf32>) -> tensor<1x8x8x32xf32>
  return %0 : tensor<1x8x8x32xf32>
}

func.func @open(%x: tensor<?x8x8x16xf32, {sym = ["n"]}>, %w: tensor<1x256x32xf32>)
    -> tensor<?x8x8x32xf32, {sym = ["n"]}> {
  %0 = "relax.winograd_conv2d"(%x, %w) {channels = 32 : i64, layout = "tile 32", padding = array<i64: 1, 1, 1, 1>}
      : (tensor<?x8x8x16xf32, {sym = ["n"]}>, tensor<1x256x32xf32>) -> tensor<?x8x8x32xf32, {sym = ["n"]}>
  return %0 : tensor<?x8x8x32xf32, {sym = ["n"]}>
}
