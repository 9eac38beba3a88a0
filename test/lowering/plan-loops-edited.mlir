// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v3 --relax-plan-loops=all=true \
// RUN:     --relax-lower-kernels=all=true | filecheck %s

#ij = affine_map<(i, j) -> (i, j)>

// The plan that stands on an operation is the one that its loops are built by: the first loop is the vector,
// of 2 lanes.
// CHECK-LABEL: @edited(
// CHECK: scf.for %{{.*}} to %c100 step %c1
// CHECK: scf.for %{{.*}} to %c64 step %c2
// CHECK: vector.gather {{.*}} into vector<2xf32>
func.func @edited(%x: memref<64x100xf32, strided<[128, 1]>>, %y: memref<64x100xf32>) {
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"],
                  relax.plan = "order=1+0 vector=0 width=2 wide=2"}
      ins(%x : memref<64x100xf32, strided<[128, 1]>>) outs(%y : memref<64x100xf32>) {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.addf %u, %u : f32
    linalg.yield %0 : f32
  }
  return
}
