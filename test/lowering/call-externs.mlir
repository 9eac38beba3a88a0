// RUN: relax-opt %s --relax-call-externs | filecheck %s
// RUN: relax-opt %s --relax-call-externs | relax-opt --relax-call-externs | filecheck %s

// CHECK: module attributes {relax.externs = [{
// CHECK-DAG: func.func private @relax_check(i1, i64)
// CHECK-DAG: func.func private @extern_0(!llvm.ptr, i64, i64, i64, i64, i64) -> i64
// CHECK-NOT: func.func private @extern_0(%
// CHECK: func.func @main(%[[X:.*]]: memref<?x4xf32>, %[[Y:.*]]: memref<4xf32>, %[[EXTERNS:.*]]: !llvm.ptr)
// CHECK-DAG: memref.extract_aligned_pointer_as_index %[[X]]
// CHECK-DAG: memref.extract_aligned_pointer_as_index %[[Y]]
// CHECK: %[[STATUS:.*]] = call @extern_0(%[[EXTERNS]],
// CHECK: %[[DONE:.*]] = arith.cmpi eq, %[[STATUS]]
// CHECK: call @relax_check(%[[DONE]], %{{.*}})
// CHECK: func.func @apart(%{{.*}}: memref<4xf32>, %{{.*}}: !llvm.ptr)
module {
  func.func private @extern_0(%x: memref<?x4xf32>, %y: memref<4xf32>) attributes {relax.extern = {
      symbol = "acme_sum", library = "libacme.so", dtypes = ["f32", "f32"], ranks = [2, 1], inputs = 1,
      arguments = [2.0 : f64], check = 0}} {
    return
  }
  func.func @main(%x: memref<?x4xf32>, %y: memref<4xf32>) attributes {relax.entry = {
      name = "main", symbol = "relaxir_main", symbols = [], inputs = [], weights = [], outputs = [], checks = [],
      updates = [], step = false}} {
    call @extern_0(%x, %y) : (memref<?x4xf32>, memref<4xf32>) -> ()
    return
  }
  func.func @apart(%x: memref<4xf32>) attributes {relax.entry = {
      name = "apart", symbol = "relaxir_apart", symbols = [], inputs = [], weights = [], outputs = [], checks = [],
      updates = [], step = false}} {
    return
  }
}
