// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v4 --relax-lower-kernels=all=true | filecheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Two steps of eight columns are a vector. Two rows are folded onto each other: a vector of eight columns of both.
// CHECK-LABEL: func.func @two_rows(
// CHECK: scf.for
// CHECK: vector.load {{.*}} vector<16xf32>
// CHECK-NEXT: %[[W:.*]] = vector.shuffle {{.*}} [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15] {{.*}}
// CHECK: %[[PAIR:.*]] = vector.load {{.*}} vector<2xf32>
// CHECK-NEXT: %[[X:.*]] = vector.shuffle %[[PAIR]], {{.*}} [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
// CHECK-NEXT: vector.fma %[[X]], %[[W]], {{.*}} : vector<16xf32>
// CHECK: vector.shuffle {{.*}} [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
// CHECK: vector.shuffle {{.*}} [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31]
// CHECK: arith.addf {{.*}} : vector<16xf32>
// CHECK: vector.shuffle {{.*}} [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK: vector.shuffle {{.*}} [8, 9, 10, 11, 12, 13, 14, 15]
func.func @two_rows(%a: memref<2x64xf32>, %b: memref<64x8xf32>, %c: memref<2x8xf32>) {
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<2x64xf32>, memref<64x8xf32>) outs(%c : memref<2x8xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}

// Of fewer columns than a vector has room for, so many elements of two rows are read as there are.
// CHECK-LABEL: func.func @seven_columns(
// CHECK: %[[COUNT:.*]] = vector.create_mask %c14 : vector<16xi1>
// CHECK: vector.maskedload {{.*}}, %[[COUNT]]
// CHECK: vector.shuffle {{.*}} [0, 7, 1, 8, 2, 9, 3, 10, 4, 11, 5, 12, 6, 13, 6, 13]
func.func @seven_columns(%a: memref<2x64xf32>, %b: memref<64x7xf32>, %c: memref<2x7xf32>) {
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<2x64xf32>, memref<64x7xf32>) outs(%c : memref<2x7xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  }
  return
}
