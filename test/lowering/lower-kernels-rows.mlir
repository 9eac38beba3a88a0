// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v4 --relax-plan-loops --relax-lower-kernels=all=true \
// RUN:   | filecheck %s

#row = affine_map<(i, j) -> (i, j)>
#number = affine_map<(i, j) -> (i)>

// What reads a row again asks for the next one, a line of 64 bytes at a time.
// CHECK-LABEL: func.func private @again(
// CHECK: memref.reinterpret_cast %arg0
// CHECK-NEXT: {{.*}} = scf.for
// CHECK-NOT: memref.prefetch
// CHECK: %[[X:.*]] = memref.reinterpret_cast %arg0
// CHECK: scf.for %{{.*}} step %c16 {
// CHECK: %[[HERE:.*]] = arith.addi
// CHECK-NEXT: vector.load %[[X]][%[[HERE]]]
// CHECK: vector.store
// CHECK: %[[THERE:.*]] = arith.addi %[[HERE]], %c1024
// CHECK-NEXT: memref.prefetch %[[X]][%[[THERE]]], read, locality<3>, data
// CHECK-NOT: memref.prefetch
func.func private @again(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>)
    attributes {relax.kernel, relax.rows = 1 : i64} {
  %least = arith.constant 0xFF800000 : f32
  %m = memref.alloc() : memref<64xf32>
  linalg.fill ins(%least : f32) outs(%m : memref<64xf32>)
  linalg.generic {indexing_maps = [#row, #number], iterator_types = ["parallel", "reduction"]}
    ins(%x : memref<64x1024xf32>) outs(%m : memref<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.maxnumf %b, %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#row, #number, #row], iterator_types = ["parallel", "parallel"]}
    ins(%x, %m : memref<64x1024xf32>, memref<64xf32>) outs(%y : memref<64x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// Short rows are near each other.
// CHECK-LABEL: func.func private @short(
// CHECK-NOT: memref.prefetch
func.func private @short(%x: memref<64x128xf32>, %y: memref<64x128xf32>)
    attributes {relax.kernel, relax.rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %m = memref.alloc() : memref<64xf32>
  linalg.fill ins(%zero : f32) outs(%m : memref<64xf32>)
  linalg.generic {indexing_maps = [#row, #number], iterator_types = ["parallel", "reduction"]}
    ins(%x : memref<64x128xf32>) outs(%m : memref<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %b, %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#row, #number, #row], iterator_types = ["parallel", "parallel"]}
    ins(%x, %m : memref<64x128xf32>, memref<64xf32>) outs(%y : memref<64x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}
