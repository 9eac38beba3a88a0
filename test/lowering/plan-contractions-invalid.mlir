// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v3 --relax-plan-contractions --verify-diagnostics

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// test/lowering/kernels/test_contraction_plan.py provokes the others.
func.func @too_large(%a: memref<9x64xf32>, %b: memref<64x32xf32>, %c: memref<9x32xf32>) {
  // expected-error@+1 {{'linalg.generic' op expected a plan with a tile of 16 registers, got tile=8x2x8}}
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction, relax.plan = "tile=8x2x8 sums=fma accumulators=8 unroll=4"}
      ins(%a, %b : memref<9x64xf32>, memref<64x32xf32>) outs(%c : memref<9x32xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}
