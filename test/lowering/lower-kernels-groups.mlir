// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v4 --relax-lower-kernels | filecheck %s
// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v4 --relax-plan-contractions \
// RUN:   | filecheck %s --check-prefix=PLAN

// Rows in groups: a loop over these, and in it what a product of any number of rows is. The left factor is read without
// its mask, from the first row of the group on; a group without rows reads nothing. Behind the last one are zeros.
// PLAN:        relax.plan = "tile=8x2x16 sums=fma {{.*}} parts={{.*}}"
// CHECK-LABEL: func.func private @rows(
// CHECK-SAME:    %[[X:.*]]: memref<?x8xf32>, %[[W:.*]]: memref<3x8x32xf32>, %[[ENDS:.*]]: memref<3xi64>,
// CHECK-DAG:     %[[ROWS:.*]] = memref.dim %[[X]]
// CHECK:         scf.for %[[G:.*]] = %c0 to %c3 step %c1
// CHECK:           %[[BEFORE:.*]] = memref.load
// CHECK:           arith.maxsi
// CHECK:           arith.minsi %{{.*}}, %[[ROWS]]
// CHECK:           %[[BEGIN:.*]] = arith.select
// CHECK:           memref.load
// CHECK:           %[[END:.*]] = arith.minsi %{{.*}}, %[[ROWS]]
// CHECK:           %[[SOME:.*]] = arith.cmpi sgt, %[[END]], %[[BEGIN]]
// CHECK:           scf.if %[[SOME]]
// CHECK:             %[[COUNT:.*]] = arith.subi %[[END]], %[[BEGIN]]
// CHECK:             vector.fma
// CHECK-NOT:     arith.select {{.*}} : f32
// CHECK:         %[[LAST:.*]] = arith.minsi %{{.*}}, %[[ROWS]]
// CHECK:         scf.for %{{.*}} = %[[LAST]] to %[[ROWS]] step %c1
// CHECK-NOT:       vector.load
// CHECK:           vector.store
// CHECK:         return
module {
  func.func private @rows(%x: memref<?x8xf32>, %w: memref<3x8x32xf32>, %ends: memref<3xi64>, %out: memref<?x32xf32>)
      attributes {relax.kernel} {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%out : memref<?x32xf32>)
    linalg.generic {indexing_maps = [affine_map<(m, n, g, k) -> (m, k)>, affine_map<(m, n, g, k) -> (g, k, n)>,
                                     affine_map<(m, n, g, k) -> (g)>, affine_map<(m, n, g, k) -> (m, n)>],
                    iterator_types = ["parallel", "parallel", "reduction", "reduction"],
                    relax.contraction, relax.row_groups}
        ins(%x, %w, %ends : memref<?x8xf32>, memref<3x8x32xf32>, memref<3xi64>) outs(%out : memref<?x32xf32>) {
    ^bb0(%a: f32, %b: f32, %end: i64, %sum: f32):
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %row = linalg.index 0 : index
      %group = linalg.index 2 : index
      %previous = arith.subi %group, %c1 : index
      %other = arith.maxsi %previous, %c0 : index
      %loaded = memref.load %ends[%other] : memref<3xi64>
      %before = arith.index_cast %loaded : i64 to index
      %first = arith.cmpi eq, %group, %c0 : index
      %begin = arith.select %first, %c0, %before : index
      %last = arith.index_cast %end : i64 to index
      %behind = arith.cmpi sge, %row, %begin : index
      %front = arith.cmpi slt, %row, %last : index
      %mine = arith.andi %behind, %front : i1
      %own = arith.select %mine, %a, %zero : f32
      %product = arith.mulf %own, %b : f32
      %total = arith.addf %sum, %product : f32
      linalg.yield %total : f32
    }
    return
  }
}
