// RUN: relax-opt %s --relax-set-target=target=cpu:sapphirerapids --relax-lower-kernels=all=true | filecheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#packed = affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>
#mn = affine_map<(m, n, k) -> (m, n)>

// 32 rows, 16 at a time: of each element the upper half, and that of what is left, twice. A panel is split once,
// the first one in front of products, each of the others between those of the one before, into the other of two
// buffers. Sums that are no numbers are summed again in vectors.
// CHECK-LABEL: func.func @split(
// CHECK: %[[SUMS:.*]] = memref.alloca() {{.*}} : memref<2048xf32>
// CHECK: %[[ROWS:.*]] = memref.alloca() {{.*}} : memref<1536xi32>
// CHECK: %[[STEPS:.*]] = memref.alloca() {{.*}} : memref<3072xi32>
// CHECK: scf.for {{.*}} to %c64{{.*}} step %c32
// Rows.
// CHECK: scf.for {{.*}} step %c16
// CHECK: %[[X:.*]] = vector.load {{.*}} : memref<2048xf32>, vector<16xf32>
// CHECK: %[[BITS:.*]] = arith.bitcast %[[X]] : vector<16xf32> to vector<16xi32>
// CHECK-NEXT: %[[UPPER:.*]] = arith.andi %[[BITS]], %{{.*}} : vector<16xi32>
// CHECK-NEXT: %[[FIRST:.*]] = arith.bitcast %[[UPPER]] : vector<16xi32> to vector<16xf32>
// CHECK-NEXT: %[[LEFT:.*]] = arith.subf %[[X]], %[[FIRST]] : vector<16xf32>
// CHECK-COUNT-3: vector.store {{.*}}, %[[ROWS]]
// The first panel.
// CHECK: scf.if
// CHECK: vector.store {{.*}}, %[[STEPS]]
// CHECK: "llvm.x86.ldtilecfg"
// CHECK: scf.for {{.*}} to %c2{{.*}} step %c1
// CHECK-COUNT-2: "llvm.x86.tileloadd64"
// CHECK: "llvm.x86.tileloadd64"
// CHECK: "llvm.x86.tileloadd64"
// CHECK: "llvm.x86.tdpbf16ps"
// CHECK: vector.store {{.*}}, %[[STEPS]]
// CHECK: "llvm.x86.tdpbf16ps"
// CHECK-COUNT-2: "llvm.x86.tilestored64"
// CHECK: "llvm.x86.tilerelease"
// CHECK: arith.cmpf uno
// CHECK: vector.reduction <or>
// CHECK: scf.if
// CHECK: vector.fma
// CHECK: vector.store {{.*}}, %[[SUMS]]
func.func @split(%a: memref<32x64xf32>, %b: memref<2x64x32xf32>, %c: memref<32x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<32x64xf32>)
  linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction,
                  relax.plan = "tile=8x2x16 sums=fma accumulators=8 unroll=4 split=3x3:32x64x32:1"}
      ins(%a, %b : memref<32x64xf32>, memref<2x64x32xf32>) outs(%c : memref<32x64xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// Of any size, where calls have enough rows, whole panels and whole registers of k: no code for few rows, none for a
// part of a panel, and blocks of k that are even.
// CHECK-LABEL: func.func @any(
// CHECK: %[[SUMS:.*]] = memref.alloca() {{.*}} : memref<65536xf32>
// CHECK: %[[K:.*]] = memref.dim %arg0, %c1
// CHECK: %[[BLOCKS:.*]] = arith.ceildivui %[[K]], %c512
// CHECK: %[[OF:.*]] = arith.muli %[[BLOCKS]], %c32
// CHECK: %[[REGISTERS:.*]] = arith.ceildivui %[[K]], %[[OF]]
// CHECK: scf.for {{.*}} to %[[BLOCKS]] step
// CHECK: "llvm.x86.tdpbf16ps"
// CHECK-NOT: vector.maskedload
// CHECK: return
func.func @any(%a: memref<?x?xf32>, %b: memref<?x?x32xf32>, %c: memref<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<?x?xf32>)
  linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction, relax.multiples = array<i64: 32, 32>,
                  relax.plan = "tile=8x2x16 sums=fma accumulators=8 unroll=4 split=3x3:128x512x512:63:8:always"}
      ins(%a, %b : memref<?x?xf32>, memref<?x?x32xf32>) outs(%c : memref<?x?xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}
