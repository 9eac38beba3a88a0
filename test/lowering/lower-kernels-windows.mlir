// RUN: relax-opt %s --relax-set-target=target=cpu:znver4 --relax-lower-kernels | filecheck %s
// RUN: relax-opt %s --relax-set-target=target=cpu:neoverse-n1 --relax-lower-kernels | filecheck %s --check-prefix=NEON
// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v3 --relax-lower-kernels | filecheck %s --check-prefix=TAPS

#window = affine_map<(n, y, x, c, i, j) -> (n, y + i, x + j, c)>
#filter = affine_map<(n, y, x, c, i, j) -> (i, j, 0, c)>
#sums = affine_map<(n, y, x, c, i, j) -> (n, y, x, c)>
#id = affine_map<(n, y, x, c) -> (n, y, x, c)>
#scale = affine_map<(n, y, x, c) -> (c)>

// Filters, for two rows of the result; columns of four rows of the image, of which two are there from the
// window before;
// sums are quantized in registers. 16 channels are left.
// CHECK-LABEL: @layer(
// CHECK-NOT: memref<1x16x18x80xi32>
// CHECK: scf.for %[[Y:.*]] = %c0 to %c16 step %c4
// CHECK: vector.load %{{.*}} vector<64xi8>
// CHECK: arith.shli
// CHECK: scf.for {{.*}} step %c2
// CHECK: scf.for {{.*}} to %c18 step %c3 iter_args(
// CHECK: vector.load {{.*}} vector<64xi8>
// CHECK: vector.shuffle
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK: arith.sitofp {{.*}} vector<16xi32> to vector<16xf32>
// CHECK: vector.store {{.*}} vector<16xi8>
// CHECK: vector<16xi8>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.128"
// An image without a sign gets one, which the first sums make up for.
// NEON-LABEL: @layer(
// NEON: llvm.call_intrinsic "llvm.aarch64.neon.sdot.v4i32.v16i8"
// NEON: arith.xori
// NEON: arith.subi {{.*}} vector<4xi32>
// TAPS-LABEL: @layer(
// TAPS-NOT: llvm.call_intrinsic
func.func private @layer(%x: memref<1x18x20x80xi8>, %w: memref<3x3x1x80xi8>, %s: memref<80xf32>,
                         %y: memref<1x16x18x80xi8>)
    attributes {relax.kernel, relax.rows = 2 : i64} {
  %zero = arith.constant 0 : i32
  %t = memref.alloc() : memref<1x16x18x80xi32>
  linalg.fill ins(%zero : i32) outs(%t : memref<1x16x18x80xi32>)
  linalg.generic {indexing_maps = [#window, #filter, #sums],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : memref<1x18x20x80xi8>, memref<3x3x1x80xi8>) outs(%t : memref<1x16x18x80xi32>) {
  ^bb0(%a: i8, %b: i8, %total: i32):
    %0 = arith.extui %a : i8 to i32
    %1 = arith.extsi %b : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %total, %2 : i32
    linalg.yield %3 : i32
  }
  linalg.generic {indexing_maps = [#id, #scale, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%t, %s : memref<1x16x18x80xi32>, memref<80xf32>) outs(%y : memref<1x16x18x80xi8>) {
  ^bb0(%a: i32, %b: f32, %out: i8):
    %0 = arith.sitofp %a : i32 to f32
    %1 = arith.mulf %0, %b : f32
    %2 = math.roundeven %1 : f32
    %3 = arith.fptosi %2 : f32 to i8
    linalg.yield %3 : i8
  }
  return
}
