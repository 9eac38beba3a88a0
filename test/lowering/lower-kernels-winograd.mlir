// RUN: relax-opt %s --relax-set-target="target=cpu:znver4 openmp=true" --relax-to-linalg=tile=32 \
// RUN:   --relax-outline-kernels --relax-add-destinations --relax-bufferize --relax-plan-contractions \
// RUN:   --relax-lower-kernels | filecheck %s

// Threads share units of tiles. In each, tiles of the image are transformed, then a panel of filters after the other
// is multiplied with them, place by place, while the next place's filters are fetched, and results are written through
// the epilogue: those of an odd line where the image has it. Windows of a tile that is not finite are summed, before.
// CHECK-LABEL: func.func private @kernel_
// CHECK-NOT: linalg
// CHECK: omp.parallel
// CHECK: %[[TILES:.*]] = memref.alloca() {{.*}} : memref<33024xf32>
// CHECK: %[[SUMS:.*]] = memref.alloca() {{.*}} : memref<33024xf32>
// CHECK: %[[ELEMENTS:.*]] = memref.alloca() {{.*}} : memref<256xf32>
// CHECK: %[[FINITE:.*]] = memref.alloca() {{.*}} : memref<1024xf32>
// CHECK: %[[TOTALS:.*]] = memref.alloca() {{.*}} : memref<128xf32>
// CHECK: omp.loop_nest
// CHECK: vector.load {{.*}} : memref<13824xf32>, vector<16xf32>
// CHECK: arith.subf {{.*}} : vector<16xf32>
// CHECK: vector.store {{.*}}, %[[TILES]][
// CHECK: vector.store {{.*}}, %[[FINITE]][
// CHECK: vector.load %[[FINITE]][
// CHECK: arith.cmpf uno
// CHECK: %[[IS_ANY:.*]] = vector.reduction <or>
// CHECK: scf.for {{.*}} = %c0 to %c4 step %c1
// CHECK: scf.for {{.*}} = %c0 to %c4 step %c1
// CHECK: memref.prefetch
// CHECK: memref.load %[[TILES]]
// CHECK: vector.fma
// CHECK: vector.store {{.*}}, %[[SUMS]][
// CHECK: scf.if %[[IS_ANY]]
// CHECK: vector.load %[[FINITE]][
// CHECK: scf.if
// CHECK: vector.store {{.*}}, %[[TOTALS]][
// CHECK: vector.store {{.*}}, %[[ELEMENTS]][
// CHECK: vector.fma
// CHECK: vector.store {{.*}}, %[[SUMS]][
// CHECK: vector.load %[[SUMS]][
// CHECK: arith.addf {{.*}} : vector<16xf32>
// CHECK: arith.cmpf olt, {{.*}} : vector<16xf32>
// CHECK: vector.store
// CHECK: arith.cmpi ult
// CHECK: scf.if
// CHECK: vector.store
func.func @odd(%x: tensor<1x15x22x32xf32>, %w: tensor<2x512x32xf32>) -> tensor<1x15x22x64xf32> {
  %0 = "relax.winograd_conv2d"(%x, %w) {channels = 64 : i64, layout = "tile 32", padding = array<i64: 1, 1, 1, 1>}
      : (tensor<1x15x22x32xf32>, tensor<2x512x32xf32>) -> tensor<1x15x22x64xf32>
  %1 = "relax.relu"(%0) : (tensor<1x15x22x64xf32>) -> tensor<1x15x22x64xf32>
  return %1 : tensor<1x15x22x64xf32>
}
