// RUN: relax-opt %s --relax-set-target=target=cpu:sapphirerapids --relax-lower-kernels=all=true | filecheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#pairs = affine_map<(m, n, k) -> (n floordiv 32, k floordiv 2, n mod 32, k mod 2)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Registers are told what they hold in front of the loop over tiles of rows; a tile's sums go to the stack, and from
// there, four rows at once, where they belong.
// CHECK-LABEL: func.func @tiles(
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<1024xf32>
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<16xi32>
// CHECK: vector.store {{.*}} : memref<16xi32>, vector<16xi32>
// CHECK: llvm.call_intrinsic "llvm.x86.ldtilecfg"
// CHECK-NEXT: scf.for {{.*}} to %c32 step %c32
// CHECK: scf.for {{.*}} to %c64 step %c32
// CHECK-COUNT-4: "llvm.x86.tilezero"
// CHECK: scf.for {{.*}} to %c32{{.*}} step %c16
// CHECK: "llvm.x86.tileloadd64"({{.*}}) {relax.tile_access = array<i64: 16, 64>}
// CHECK: "llvm.x86.tdpbf16ps"
// CHECK: "llvm.x86.tdpbf16ps"
// CHECK: "llvm.x86.tileloadd64"
// CHECK: "llvm.x86.tdpbf16ps"
// CHECK: "llvm.x86.tdpbf16ps"
// CHECK-COUNT-4: "llvm.x86.tilestored64"
// CHECK: scf.for {{.*}} to %c32{{.*}} step %c4
// CHECK-COUNT-8: vector.load {{.*}} : memref<1024xf32>
// CHECK-COUNT-8: vector.store
// CHECK: llvm.call_intrinsic "llvm.x86.tilerelease"()
// CHECK-NEXT: return
func.func @tiles(%a: memref<64x64xbf16>, %b: memref<1x32x32x2xbf16>, %c: memref<64x32xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<64x32xf32>)
  linalg.generic {indexing_maps = [#mk, #pairs, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction, relax.layout = "tile 32, rows 2"}
      ins(%a, %b : memref<64x64xbf16>, memref<1x32x32x2xbf16>) outs(%c : memref<64x32xf32>) {
  ^bb0(%u: bf16, %v: bf16, %acc: f32):
    %x = arith.extf %u : bf16 to f32
    %y = arith.extf %v : bf16 to f32
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}
