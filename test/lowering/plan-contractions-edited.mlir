// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v3 --relax-plan-contractions --relax-lower-kernels=all=true \
// RUN:   | filecheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#packed = affine_map<(m, n, k) -> (n floordiv 16, k, n mod 16)>
#mn = affine_map<(m, n, k) -> (m, n)>

// The plan that stands on an operation is the one that its kernel is built by: one vector of 4 lanes, 2 steps at a
// time.
// CHECK-LABEL: @edited(
// CHECK: scf.for {{.*}} step %c4
// CHECK: scf.for {{.*}} step %c2
// CHECK: vector.fma {{.*}} : vector<4xf32>
// CHECK-NEXT: arith.addi
// CHECK: vector.fma {{.*}} : vector<4xf32>
// CHECK-NEXT: scf.yield
// CHECK-NOT: vector.fma
func.func @edited(%a: memref<1x64xf32>, %b: memref<2x64x16xf32>, %c: memref<1x32xf32>) {
  linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction, relax.plan = "tile=1x1x4 sums=fma accumulators=1 unroll=2"}
      ins(%a, %b : memref<1x64xf32>, memref<2x64x16xf32>) outs(%c : memref<1x32xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// Twelve tiles of one row in four parts of three, each by both panels: eight units.
// CHECK-LABEL: @parts(
// CHECK: scf.for %[[UNIT:.*]] = %c0 to %c8 step %c1
// CHECK: %[[PART:.*]] = arith.divui %[[UNIT]], %c2
// CHECK: arith.muli %[[PART]], %c12
// CHECK-NEXT: arith.divui {{.*}}, %c4
// CHECK: scf.for {{.*}} step %c1
// CHECK: scf.for {{.*}} step %c2
// CHECK: vector.fma
func.func @parts(%a: memref<12x64xf32>, %b: memref<2x64x16xf32>, %c: memref<12x32xf32>) {
  linalg.generic {indexing_maps = [#mk, #packed, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction, relax.plan = "tile=1x2x8 sums=fma accumulators=2 unroll=2 parts=3:1:2048"}
      ins(%a, %b : memref<12x64xf32>, memref<2x64x16xf32>) outs(%c : memref<12x32xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}
