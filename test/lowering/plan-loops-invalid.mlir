// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v3 --relax-plan-loops=all=true --verify-diagnostics

// test/lowering/kernels/test_nest_plan.py provokes the others.
func.func @twice(%x: memref<64xf32>, %y: memref<64xf32>) {
  // expected-error@+1 {{'linalg.generic' op expected a plan with each of the loops [0] once, got 'order=0+0'}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"],
                  relax.plan = "order=0+0"}
      ins(%x : memref<64xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%u: f32, %v: f32):
    linalg.yield %u : f32
  }
  return
}
