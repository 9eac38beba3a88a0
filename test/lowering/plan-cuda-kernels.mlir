// RUN: relax-opt %s --relax-plan-cuda-kernels | filecheck %s
// RUN: relax-opt %s --relax-plan-cuda-kernels | relax-opt --relax-plan-cuda-kernels | filecheck %s
// RUN: relax-opt %s --relax-plan-cuda-kernels --relax-lower-cuda-kernels | filecheck %s --check-prefix=BUILT

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
#mn = affine_map<(m, n) -> (m, n)>
#none = affine_map<(m, n) -> ()>

// A product's kernel is on its operation, a line that may be edited; a fill gets none.

// CHECK-LABEL: func.func private @product(
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : f32) outs(%{{.*}} : memref<8x72xf32>) {
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : memref<8x64xbf16>
// CHECK-SAME: relax.contraction, relax.plan = "tile=16x16x64 warps=1x1x4 stages=8
// CHECK-SAME: by=bf16 copies=16:16 raster=8 store=8"

// Of few rows and a matrix that lies along k, another template's.

// CHECK-LABEL: func.func private @row(
// CHECK: relax.plan = "columns=1 warps=2x2 steps=8 loads=1"

// One that is there stays, and is what the kernel is built by: 3 stages of 64 x 64 elements, two warps.

// CHECK-LABEL: func.func private @edited(
// CHECK: relax.plan = "tile=32x32x64 warps=1x2 stages=3 by=bf16 copies=16:16 raster=2 store=4"
// BUILT: gpu.func @edited(
// BUILT-SAME: known_block_size = array<i32: 64, 1, 1>
// BUILT: func.func private @edited(
// BUILT: %[[SHARED:.*]] = arith.constant 24576 : i32
// BUILT: gpu.launch_func @device::@edited {{.*}} dynamic_shared_memory_size %[[SHARED]]

// What is on the CPU is none of its business, and what no template of products takes is neither.

// CHECK-LABEL: func.func private @prepared(
// CHECK-NOT: relax.plan
// CHECK-LABEL: func.func private @wide(
// CHECK-NOT: relax.plan

module attributes {relax.cuda_target = "cuda:sm_80"} {
  func.func private @product(%a: memref<8x64xbf16>, %b: memref<72x64xbf16>, %o: memref<8x72xf32>)
      attributes {relax.device, relax.kernel} {
    %zero = arith.constant 0.0 : f32
    linalg.generic {indexing_maps = [#none, #mn], iterator_types = ["parallel", "parallel"]}
        ins(%zero : f32) outs(%o : memref<8x72xf32>) {
    ^bb0(%p: f32, %q: f32):
      linalg.yield %p : f32
    }
    linalg.generic {indexing_maps = [#x, #w, #y],
                    iterator_types = ["parallel", "parallel", "reduction"], relax.contraction}
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
  func.func private @row(%a: memref<1x512xbf16>, %b: memref<72x512xbf16>, %o: memref<1x72xf32>)
      attributes {relax.device, relax.kernel} {
    linalg.generic {indexing_maps = [#x, #w, #y],
                    iterator_types = ["parallel", "parallel", "reduction"], relax.contraction}
        ins(%a, %b : memref<1x512xbf16>, memref<72x512xbf16>) outs(%o : memref<1x72xf32>) {
    ^bb0(%p: bf16, %q: bf16, %s: f32):
      %0 = arith.extf %p : bf16 to f32
      %1 = arith.extf %q : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %s, %2 : f32
      linalg.yield %3 : f32
    }
    return
  }
  func.func private @edited(%a: memref<8x64xbf16>, %b: memref<72x64xbf16>, %o: memref<8x72xf32>)
      attributes {relax.device, relax.kernel} {
    linalg.generic {indexing_maps = [#x, #w, #y],
                    iterator_types = ["parallel", "parallel", "reduction"], relax.contraction,
                    relax.plan = "tile=32x32x64 warps=1x2 stages=3 by=bf16 copies=16:16 raster=2 store=4"}
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
  func.func private @prepared(%a: memref<8x64xbf16>, %b: memref<72x64xbf16>, %o: memref<8x72xf32>)
      attributes {relax.kernel} {
    linalg.generic {indexing_maps = [#x, #w, #y],
                    iterator_types = ["parallel", "parallel", "reduction"], relax.contraction}
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
  func.func private @wide(%a: memref<8x64xf64>, %b: memref<72x64xf64>, %o: memref<8x72xf64>)
      attributes {relax.device, relax.kernel} {
    linalg.generic {indexing_maps = [#x, #w, #y],
                    iterator_types = ["parallel", "parallel", "reduction"], relax.contraction}
        ins(%a, %b : memref<8x64xf64>, memref<72x64xf64>) outs(%o : memref<8x72xf64>) {
    ^bb0(%p: f64, %q: f64, %s: f64):
      %0 = arith.mulf %p, %q : f64
      %1 = arith.addf %s, %0 : f64
      linalg.yield %1 : f64
    }
    return
  }
}
