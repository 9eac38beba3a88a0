// RUN: relax-opt %s --relax-set-target=target=cpu:znver4 --relax-lower-kernels | filecheck %s
// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v3 --relax-lower-kernels | filecheck %s --check-prefix=AVX2

#window = affine_map<(n, y, x, c, i, j) -> (n, y + i, x + j, c)>
#filter = affine_map<(n, y, x, c, i, j) -> (i, j, 0, c)>
#sums = affine_map<(n, y, x, c, i, j) -> (n, y, x, c)>
#id = affine_map<(n, y, x, c) -> (n, y, x, c)>
#scale = affine_map<(n, y, x, c) -> (c)>

// A vector of channels after the other: nine filters, of which columns of four rows of the image make two rows of the
// result; two columns go from a place to the next one. With few registers there is one row at a time.
// CHECK-LABEL: @layer(
// CHECK-NOT: memref.alloc
// CHECK: scf.for %{{.*}} = %c0 to %c80 step %c16
// CHECK-COUNT-9: vector.load {{.*}} : memref<720xf32>, vector<16xf32>
// CHECK-COUNT-8: vector.load {{.*}} : memref<28800xf32>, vector<16xf32>
// CHECK: scf.for {{.*}} to %c18 step %c3 iter_args(
// CHECK-COUNT-4: vector.load {{.*}} : memref<28800xf32>, vector<16xf32>
// CHECK-COUNT-9: math.fma {{.*}} : vector<16xf32>
// CHECK: arith.addf {{.*}} : vector<16xf32>
// CHECK: vector.store
// CHECK-COUNT-9: math.fma {{.*}} : vector<16xf32>
// CHECK: vector.store
// AVX2-LABEL: @layer(
// AVX2: scf.for %{{.*}} = %c0 to %c80 step %c8
// AVX2: scf.for {{.*}} to %c18 step %c3 iter_args(
// AVX2-COUNT-3: vector.load
// AVX2-COUNT-9: math.fma {{.*}} : vector<8xf32>
// AVX2: vector.store
func.func private @layer(%x: memref<1x18x20x80xf32>, %w: memref<3x3x1x80xf32>, %s: memref<80xf32>,
                         %y: memref<1x16x18x80xf32>) attributes {relax.kernel, relax.rows = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<1x16x18x80xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<1x16x18x80xf32>)
  linalg.generic {indexing_maps = [#window, #filter, #sums],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : memref<1x18x20x80xf32>, memref<3x3x1x80xf32>) outs(%t : memref<1x16x18x80xf32>) {
  ^bb0(%a: f32, %b: f32, %total: f32):
    %0 = math.fma %a, %b, %total : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#id, #scale, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%t, %s : memref<1x16x18x80xf32>, memref<80xf32>) outs(%y : memref<1x16x18x80xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}
