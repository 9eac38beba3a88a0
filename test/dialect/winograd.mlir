// RUN: relax-opt %s | relax-opt | filecheck %s

// CHECK-LABEL: func.func @winograd_conv2d(
// CHECK: "relax.winograd_conv2d"(%{{\w+}}, %{{\w+}})
// CHECK-SAME: {channels = 20 : i64, layout = "tile 8", padding = array<i64: 1, 0, 1, 2>}
// CHECK-SAME: : (tensor<?x?x8x4xf32, {sym = ["n", "h"]}>, tensor<3x64x8xf32>)
// CHECK-SAME: -> tensor<?x?x8x20xf32, {sym = ["n", "h"]}>
func.func @winograd_conv2d(%x: tensor<?x?x8x4xf32, {sym = ["n", "h"]}>, %y: tensor<3x64x8xf32>) {
  %0 = "relax.winograd_conv2d"(%x, %y) {channels = 20 : i64, layout = "tile 8", padding = array<i64: 1, 0, 1, 2>}
      : (tensor<?x?x8x4xf32, {sym = ["n", "h"]}>, tensor<3x64x8xf32>) -> tensor<?x?x8x20xf32, {sym = ["n", "h"]}>
  return
}

// CHECK-LABEL: func.func @winograd_conv2d_narrow(
// CHECK: "relax.winograd_conv2d"(%{{\w+}}, %{{\w+}}) {channels = 8 : i64, layout = "tile 8"}
func.func @winograd_conv2d_narrow(%x: tensor<1x8x8x4xbf16>, %y: tensor<1x64x8xbf16>) {
  %0 = "relax.winograd_conv2d"(%x, %y) {channels = 8 : i64, layout = "tile 8"}
      : (tensor<1x8x8x4xbf16>, tensor<1x64x8xbf16>) -> tensor<1x6x6x8xbf16>
  return
}
