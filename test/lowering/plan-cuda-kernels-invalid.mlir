// RUN: relax-opt %s --relax-plan-cuda-kernels --verify-diagnostics

module attributes {relax.cuda_target = "cuda:sm_80"} {
  func.func private @product(%a: memref<8x64xbf16>, %b: memref<72x64xbf16>, %o: memref<8x72xf32>)
      attributes {relax.device, relax.kernel} {
    // expected-error @+1 {{'linalg.generic' op expected by=bf16, got by=f16}}
    linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                     affine_map<(m, n, k) -> (m, n)>],
                    iterator_types = ["parallel", "parallel", "reduction"], relax.contraction,
                    relax.plan = "tile=32x32x64 warps=1x2 stages=3 by=f16 copies=16:16 raster=2 store=4"}
        ins(%a, %b : memref<8x64xbf16>, memref<72x64xbf16>) outs(%o : memref<8x72xf32>) {
    ^bb0(%p: bf16, %q: bf16, %s: f32):
      %0 = arith.extf %p : bf16 to f32
      %1 = arith.extf %q : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %s, %2 : f32
      linalg.yield %3 : f32
    }
    return
  }
}
