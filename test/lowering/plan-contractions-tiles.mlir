// RUN: relax-opt %s --relax-set-target=target=cpu:sapphirerapids --relax-plan-contractions | filecheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#pairs = affine_map<(m, n, k) -> (n floordiv 32, k floordiv 2, n mod 32, k mod 2)>
#packed = affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>
#mn = affine_map<(m, n, k) -> (m, n)>
#image = affine_map<(m, n, y, x, c, b) -> (m floordiv 14 + y, m mod 14 + x, c * 4 + b)>
#filters = affine_map<(m, n, y, x, c, b) -> (n floordiv 32, y, x, c, n mod 32, b)>
#sums = affine_map<(m, n, y, x, c, b) -> (m, n)>

// Tile registers multiply 32 rows, 16 words of two bf16 at a time; a single row is summed in vectors.
// CHECK-LABEL: @pairs(
// CHECK: sums=dot {{.*}} matrix=32x16:2"
func.func @pairs(%a: memref<?x64xbf16>, %b: memref<2x32x32x2xbf16>, %c: memref<?x64xf32>) {
  linalg.generic {indexing_maps = [#mk, #pairs, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction, relax.layout = "tile 32, rows 2"}
      ins(%a, %b : memref<?x64xbf16>, memref<2x32x32x2xbf16>) outs(%c : memref<?x64xf32>) {
  ^bb0(%u: bf16, %v: bf16, %acc: f32):
    %x = arith.extf %u : bf16 to f32
    %y = arith.extf %v : bf16 to f32
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// 100 steps are 50 words, 10 at a time.
// CHECK-LABEL: @uneven(
// CHECK: sums=dot {{.*}} matrix=32x10:2"
func.func @uneven(%a: memref<47x100xbf16>, %b: memref<2x50x32x2xbf16>, %c: memref<47x64xf32>) {
  linalg.generic {indexing_maps = [#mk, #pairs, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction, relax.layout = "tile 32, rows 2"}
      ins(%a, %b : memref<47x100xbf16>, memref<2x50x32x2xbf16>) outs(%c : memref<47x64xf32>) {
  ^bb0(%u: bf16, %v: bf16, %acc: f32):
    %x = arith.extf %u : bf16 to f32
    %y = arith.extf %v : bf16 to f32
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// Rows of a register are those of a line of the image.
// CHECK-LABEL: @lines(
// CHECK: sums=bytes {{.*}} matrix=28x12:14:14"
func.func @lines(%a: memref<16x16x32xi8>, %b: memref<2x3x3x8x32x4xi8>, %c: memref<196x64xi32>) {
  linalg.generic {indexing_maps = [#image, #filters, #sums],
                  iterator_types = ["parallel", "parallel", "reduction", "reduction", "reduction", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<16x16x32xi8>, memref<2x3x3x8x32x4xi8>) outs(%c : memref<196x64xi32>) {
  ^bb0(%u: i8, %v: i8, %acc: i32):
    %x = arith.extui %u : i8 to i32
    %y = arith.extsi %v : i8 to i32
    %p = arith.muli %x, %y : i32
    %q = arith.addi %acc, %p : i32
    linalg.yield %q : i32
  }
  return
}

// These processors read a row's panels best several at a time, and fetch from two rows on.
// CHECK-LABEL: @row(
// CHECK: sums=fma accumulators=8 unroll=4 panels=8 fetch=2:8192"
func.func @row(%a: memref<1x64xf32>, %b: memref<32x64x32xf32>, %c: memref<1x1024xf32>) {
  linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<1x64xf32>, memref<32x64x32xf32>) outs(%c : memref<1x1024xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// Registers hold the sums of three rows of two panels.
// CHECK-LABEL: @rows(
// CHECK: sums=fma accumulators=8 unroll=4 panels=2 fetch=2:8192"
func.func @rows(%a: memref<3x64xf32>, %b: memref<32x64x32xf32>, %c: memref<3x1024xf32>) {
  linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<3x64xf32>, memref<32x64x32xf32>) outs(%c : memref<3x1024xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// Threads have four turns to share.
// CHECK-LABEL: @few(
// CHECK: sums=fma accumulators=8 unroll=4 panels=2 fetch=2:8192"
func.func @few(%a: memref<1x64xf32>, %b: memref<10x64x32xf32>, %c: memref<1x300xf32>) {
  linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<1x64xf32>, memref<10x64x32xf32>) outs(%c : memref<1x300xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// A row of bf16 is fetched ahead, too.
// CHECK-LABEL: @row_of_pairs(
// CHECK: sums=dot {{.*}} panels=8 fetch=1:8192"
func.func @row_of_pairs(%a: memref<1x64xbf16>, %b: memref<32x32x32x2xbf16>, %c: memref<1x1024xf32>) {
  linalg.generic {indexing_maps = [#mk, #pairs, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction, relax.layout = "tile 32, rows 2"}
      ins(%a, %b : memref<1x64xbf16>, memref<32x32x32x2xbf16>) outs(%c : memref<1x1024xf32>) {
  ^bb0(%u: bf16, %v: bf16, %acc: f32):
    %x = arith.extf %u : bf16 to f32
    %y = arith.extf %v : bf16 to f32
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// Elements in f32 are three bf16 each; of a number of rows that a call says, few are summed in vectors.
// CHECK-LABEL: @many(
// CHECK: "tile=8x2x16 sums=fma accumulators=8 unroll=4 fetch=2:8192 split=3x3:128x512x512:63:8:always"
func.func @many(%a: memref<128x640xf32>, %b: memref<16x640x32xf32>, %c: memref<128x512xf32>) {
  linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<128x640xf32>, memref<16x640x32xf32>) outs(%c : memref<128x512xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// CHECK-LABEL: @some(
// CHECK: parts=128:16384:8388608 split=3x3:128x512x512:63:8"
func.func @some(%a: memref<?x640xf32>, %b: memref<16x640x32xf32>, %c: memref<?x512xf32>) {
  linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<?x640xf32>, memref<16x640x32xf32>) outs(%c : memref<?x512xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}
