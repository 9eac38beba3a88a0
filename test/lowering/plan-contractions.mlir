// RUN: relax-opt %s --relax-set-target="target=cpu:znver4 openmp=true" --relax-plan-contractions | filecheck %s
// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v3 --relax-plan-contractions \
// RUN:   | filecheck %s --check-prefix=AVX2
// RUN: relax-opt %s --relax-set-target=target=cpu:neoverse-v1 --relax-plan-contractions \
// RUN:   | filecheck %s --check-prefix=NEON
// RUN: relax-opt %s --relax-set-target=target=cpu:znver4 --relax-plan-contractions \
// RUN:   | relax-opt --relax-plan-contractions \
// RUN:   | filecheck %s --check-prefix=AGAIN

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#packed = affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A long k is cut into blocks, which threads share.
// CHECK-LABEL: @long(
// CHECK: relax.plan = "tile=8x2x16 sums=fma accumulators=8 unroll=4 fetch=5:8192 blocks=128x256x128:24 threads=blocks"
// AVX2-LABEL: @long(
// AVX2: relax.plan = "tile=6x2x8 sums=fma accumulators=8 unroll=4 blocks=128x256x256:18 copied-left=yes"
// NEON-LABEL: @long(
// NEON: relax.plan = "tile=6x4x4 sums=fma accumulators=8 unroll=4 blocks=128x256x256:18 copied-left=yes"
// AGAIN-LABEL: @long(
// AGAIN: relax.plan = "tile=8x2x16 sums=fma accumulators=8 unroll=4 fetch=5:8192 blocks=128x256x128:24"
func.func @long(%a: memref<128x2048xf32>, %b: memref<128x2048x32xf32>, %c: memref<128x4096xf32>) {
  linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<128x2048xf32>, memref<128x2048x32xf32>) outs(%c : memref<128x4096xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// Rows of blocks are copied where enough panels read them: where calls say how many rows there are, blocks may be few.
// CHECK-LABEL: @open(
// CHECK: relax.plan = "tile=8x2x16 sums=fma accumulators=8 unroll=4 fetch=5:8192 blocks=128x1024x128:24:16
// CHECK-SAME: copied-left=yes
// AVX2-LABEL: @open(
// AVX2: relax.plan = "tile=6x2x8 sums=fma accumulators=8 unroll=4 blocks=126x512x256:18:16 copied-left=yes"
// NEON-LABEL: @open(
// NEON: relax.plan = "tile=6x4x4 sums=fma accumulators=8 unroll=4 blocks=126x512x256:18:16 copied-left=yes"
// AGAIN-LABEL: @open(
// AGAIN: relax.plan = "tile=8x2x16 sums=fma accumulators=8 unroll=4 fetch=5:8192 blocks=128x1024x128:24:16
// AGAIN-SAME: copied-left=yes"
func.func @open(%a: memref<?x2048xf32>, %b: memref<128x2048x32xf32>, %c: memref<?x4096xf32>) {
  linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<?x2048xf32>, memref<128x2048x32xf32>) outs(%c : memref<?x4096xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// A single row reads several panels at once.
// CHECK-LABEL: @row(
// CHECK: relax.plan = "tile=8x2x16 sums=words accumulators=8 unroll=4 panels=4 fetch=3:8192 threads=columns"
// AVX2-LABEL: @row(
// AVX2: relax.plan = "tile=6x2x8 sums=fma accumulators=8 unroll=4"
func.func @row(%a: memref<1x512xf32>, %b: memref<32x512x32xbf16>, %c: memref<1x1024xf32>) {
  linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<1x512xf32>, memref<32x512x32xbf16>) outs(%c : memref<1x1024xf32>) {
  ^bb0(%u: f32, %v: bf16, %acc: f32):
    %w = arith.extf %v : bf16 to f32
    %p = arith.mulf %u, %w : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// Many rows, whose number only calls say, go through all columns in parts.
// CHECK-LABEL: @many(
// CHECK: relax.plan = "tile=8x2x16 sums=fma accumulators=8 unroll=4 fetch=5:8192 parts=128:16384:8388608 threads=parts"
// AVX2-LABEL: @many(
// AVX2: relax.plan = "tile=6x2x8 sums=fma accumulators=8 unroll=4 parts=128:16384:8388608"
func.func @many(%a: memref<?x64xf32>, %b: memref<8x64x32xf32>, %c: memref<?x256xf32>) {
  linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<?x64xf32>, memref<8x64x32xf32>) outs(%c : memref<?x256xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// Of few columns, vectors have several steps of k: scores of eight heads that share keys.
// CHECK-LABEL: @scores(
// CHECK: relax.plan = "tile=8x1x8 sums=folded accumulators=8 unroll=4 fold=2 fetch=1:8192 parts=128:16384:8388608
// AVX2-LABEL: @scores(
// AVX2: relax.plan = "tile=6x1x8 sums=fma accumulators=8 unroll=4 fetch=3:8192 parts=128:16384:8388608"
func.func @scores(%a: memref<?x64xf32>, %b: memref<64x8xf32>, %c: memref<?x8xf32>) {
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<?x64xf32>, memref<64x8xf32>) outs(%c : memref<?x8xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// Rows of a matrix that is not packed are fetched ahead where one tile reads each once: values of these heads.
// CHECK-LABEL: @values(
// CHECK: relax.plan = "tile=8x2x16 sums=fma accumulators=8 unroll=4 fetch=1:8192"
// AVX2-LABEL: @values(
// AVX2: relax.plan = "tile=6x2x8 sums=fma accumulators=8 unroll=4 parts=128:16384:8388608"
func.func @values(%a: memref<8x?xf32>, %b: memref<?x64xf32>, %c: memref<8x64xf32>) {
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<8x?xf32>, memref<?x64xf32>) outs(%c : memref<8x64xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// What is no sum of products gets no plan.
// CHECK-LABEL: @other(
// CHECK-NOT: relax.plan
func.func @other(%a: memref<16xf32>, %c: memref<16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : memref<16xf32>) outs(%c : memref<16xf32>) {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.addf %u, %u : f32
    linalg.yield %0 : f32
  }
  return
}
