// RUN: relax-opt %s --relax-to-linalg=tile=32 --split-input-file | filecheck %s

// Results of odd lines: the last tiles reach beyond, into zeros around the image. Each product reads the 16 elements of
// a tile; the kernel is one function.
func.func @padded(%x: tensor<1x7x8x16xf32>, %w: tensor<1x256x32xf32>) -> tensor<1x7x8x32xf32> {
  %0 = "relax.winograd_conv2d"(%x, %w) {channels = 32 : i64, layout = "tile 32", padding = array<i64: 1, 1, 1, 1>}
      : (tensor<1x7x8x16xf32>, tensor<1x256x32xf32>) -> tensor<1x7x8x32xf32>
  return %0 : tensor<1x7x8x32xf32>
}

// CHECK-DAG: #[[LAST:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d2, d3 * 2 + 3, d4 * 2 + 3, d6)>
// CHECK-DAG: #[[FILTER:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d5 floordiv 32, d0, d1, d6, d5 mod 32)>
// CHECK-DAG: #[[SUMS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d4, d5)>
// CHECK-DAG: #[[READ:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d0, d1 floordiv 2, d2 floordiv 2, d3)>
// CHECK-LABEL: func.func @padded(
// CHECK: tensor.insert_slice %{{.*}}[0, 1, 1, 0] [1, 7, 8, 16] {{.*}} into tensor<1x10x10x16xf32>
// CHECK: tensor.expand_shape {{.*}} : tensor<1x256x32xf32> into tensor<1x4x4x16x32xf32>
// CHECK: call @winograd_0
// CHECK-LABEL: func.func private @winograd_0(
// CHECK: linalg.generic {indexing_maps = [{{.*}}, #[[LAST]], #[[FILTER]], #[[SUMS]]]
// CHECK-SAME: relax.layout = "tile 32", relax.winograd = "products"
// CHECK: linalg.generic {indexing_maps = [#[[READ]], {{.*}}]
// CHECK-SAME: relax.contraction, relax.winograd = "results"

// -----

// What no template takes: sums are a tensor.
func.func @narrow(%x: tensor<?x?x8x16xbf16, {sym = ["n", "h"]}>, %w: tensor<1x256x32xbf16>)
    -> tensor<?x?x6x32xbf16, {sym = ["n", "h - 2"]}> {
  %0 = "relax.winograd_conv2d"(%x, %w) {channels = 32 : i64, layout = "tile 32"}
      : (tensor<?x?x8x16xbf16, {sym = ["n", "h"]}>, tensor<1x256x32xbf16>)
      -> tensor<?x?x6x32xbf16, {sym = ["n", "h - 2"]}>
  return %0 : tensor<?x?x6x32xbf16, {sym = ["n", "h - 2"]}>
}

// CHECK-LABEL: func.func @narrow(
// CHECK-NOT: relax.winograd
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<4x4x?x?x3x32xf32>)
