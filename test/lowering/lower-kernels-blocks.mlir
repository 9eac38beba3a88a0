// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v4 --relax-lower-kernels=all=true | filecheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#packed = affine_map<(m, n, k) -> (n floordiv 16, k, n mod 16)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Of two rows, three steps of k are copied to a line each, and another one between; then tiles of all panels read them.
// CHECK-LABEL: func.func @copied(
// CHECK: %[[SUMS:.*]] = memref.alloca() {{.*}} : memref<64xf32>
// CHECK: %[[ROWS:.*]] = memref.alloca() {{.*}} : memref<32xf32>
// CHECK: scf.for {{.*}} = %c0 to %c32 step %c4
// CHECK-NEXT: scf.for %[[ROW:.*]] = %c0 to %c2 step %c1
// CHECK-NEXT: %[[START:.*]] = arith.muli %[[ROW]], %c16
// CHECK: vector.maskedload %{{.*}} : memref<128xf32>{{.*}} into vector<16xf32>
// CHECK: vector.store {{.*}}, %[[ROWS]][%[[START]]] : memref<32xf32>, vector<16xf32>
// CHECK: memref.load %[[ROWS]]
// CHECK: vector.broadcast
// CHECK: vector.fma
// CHECK: vector.store {{.*}}, %[[SUMS]]
func.func @copied(%a: memref<4x32xf32>, %b: memref<2x32x16xf32>, %c: memref<4x32xf32>) {
  linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction,
                  relax.plan = "tile=2x1x16 sums=fma accumulators=1 unroll=1 blocks=2x32x4:1 copied-left=yes"}
      ins(%a, %b : memref<4x32xf32>, memref<2x32x16xf32>) outs(%c : memref<4x32xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// Calls with few blocks get half as many columns, or half of that.
// CHECK-LABEL: func.func @few(
// CHECK: %[[HALF:.*]] = arith.select {{.*}}, %c128, %c64 : index
// CHECK: %[[WIDTH:.*]] = arith.select {{.*}}, %c256, %[[HALF]] : index
// CHECK: arith.ceildivui {{.*}}, %[[WIDTH]] : index
func.func @few(%a: memref<?x32xf32>, %b: memref<32x32x16xf32>, %c: memref<?x512xf32>) {
  linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction,
                  relax.plan = "tile=2x1x16 sums=fma accumulators=1 unroll=1 blocks=2x256x32:1:9"}
      ins(%a, %b : memref<?x32xf32>, memref<32x32x16xf32>) outs(%c : memref<?x512xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}
