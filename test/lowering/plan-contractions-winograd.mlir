// RUN: relax-opt %s --relax-set-target="target=cpu:znver4 openmp=true" --relax-to-linalg=tile=32 \
// RUN:   --relax-outline-kernels --relax-add-destinations --relax-bufferize --relax-plan-contractions | filecheck %s
// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v3 --relax-to-linalg=tile=32 --relax-outline-kernels \
// RUN:   --relax-add-destinations --relax-bufferize --relax-plan-contractions | filecheck %s --check-prefix=AVX2
// RUN: relax-opt %s --relax-set-target="target=cpu:znver4 openmp=true" --relax-to-linalg=tile=32 \
// RUN:   --relax-outline-kernels --relax-add-destinations --relax-bufferize --relax-plan-contractions \
// RUN:   --relax-plan-contractions | filecheck %s

// 784 tiles in register tiles of eight; so many are transformed at once that they stay in the cache with their sums.
// The plan stands on the results, with what is elementwise behind them in the same kernel.
// CHECK-LABEL: func.func private @kernel_
// CHECK: linalg.generic {{.*}} relax.winograd = "products"
// CHECK: relax.plan = "winograd=40x1 tile=8x2x16 sums=fma accumulators=8 unroll=4 fetch=5:8192 threads=parts"
// CHECK-SAME: relax.winograd = "results"
// CHECK: linalg.generic
// CHECK: arith.cmpf olt
// AVX2: relax.plan = "winograd=48x1 tile=6x2x8 sums=fma accumulators=8 unroll=4"
func.func @large(%x: tensor<1x56x56x64xf32>, %w: tensor<2x1024x32xf32>) -> tensor<1x56x56x64xf32> {
  %0 = "relax.winograd_conv2d"(%x, %w) {channels = 64 : i64, layout = "tile 32", padding = array<i64: 1, 1, 1, 1>}
      : (tensor<1x56x56x64xf32>, tensor<2x1024x32xf32>) -> tensor<1x56x56x64xf32>
  %1 = "relax.relu"(%0) : (tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  return %1 : tensor<1x56x56x64xf32>
}
