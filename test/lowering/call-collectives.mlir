// RUN: relax-opt %s --relax-call-collectives | filecheck %s
// RUN: relax-opt %s --relax-call-collectives | relax-opt --relax-call-collectives | filecheck %s

// CHECK-DAG: func.func private @relax_check(i1, i64)
// CHECK-DAG: func.func private @relaxir_collective(!llvm.ptr, i64, i64, i64, i64, i64) -> i64
// CHECK-NOT: func.func private @all_reduce_0
// CHECK: func.func @main(%[[X:.*]]: memref<?x4xf32>, %[[Y:.*]]: memref<?x4xf32>, %[[RANKS:.*]]: !llvm.ptr)
// CHECK-DAG: memref.extract_aligned_pointer_as_index %[[X]]
// CHECK-DAG: memref.extract_aligned_pointer_as_index %[[Y]]
// CHECK: %[[STATUS:.*]] = call @relaxir_collective(%[[RANKS]],
// CHECK: %[[DONE:.*]] = arith.cmpi eq, %[[STATUS]]
// CHECK: call @relax_check(%[[DONE]],
module attributes {relax.ranks = 2 : i64} {
  func.func private @all_reduce_0(%x: memref<?x4xf32>, %y: memref<?x4xf32>)
      attributes {relax.collective = "all_reduce"} {
    return
  }
  func.func @main(%x: memref<?x4xf32>, %y: memref<?x4xf32>) attributes {relax.entry = {
      name = "main", symbol = "relaxir_main", symbols = [], inputs = [], weights = [], outputs = [], checks = [],
      updates = [], step = false}} {
    call @all_reduce_0(%x, %y) : (memref<?x4xf32>, memref<?x4xf32>) -> ()
    return
  }
}
