// RUN: relax-opt %s --relax-set-target=target=cpu:sapphirerapids --relax-plan-contractions | filecheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#pairs = affine_map<(m, n, k) -> (n floordiv 32, k floordiv 2, n mod 32, k mod 2)>
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
