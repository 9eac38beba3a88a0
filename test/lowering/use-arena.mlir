// RUN: relax-opt %s --relax-use-arena | filecheck %s
// RUN: relax-opt %s --relax-use-arena=reserved=64 | filecheck %s --check-prefix=RESERVED

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %arg2: memref<?xi8>, %arg3: index) -> i64 attributes
// CHECK-SAME: relax.arena = {groups = {{\[\[}}"n", 64]], reserved = 0 : i64}
// CHECK: %[[H:.*]] = memref.view %arg2
// CHECK: call @work(%arg0, %[[H]])
// CHECK: return %{{.*}} : i64
// RESERVED: relax.arena = {groups = {{\[\[}}"n", 64]], reserved = 64 : i64}
func.func private @work(memref<?x16xf32>, memref<?x16xf32>)
func.func @main(%x: memref<?x16xf32>, %out: memref<?x16xf32>)
    attributes {relax.entry = {checks = [], inputs = [{dtype = "f32", name = "x", shape = ["n", 16]}], memory = [],
    name = "main", outputs = [{dtype = "f32", name = "y", shape = ["n", 16]}], safe = 4 : i64, sizes = [], state = [],
    step = false, symbol = "relaxir_main", symbols = [{min = 0 : i64, name = "n"}], updates = [], weights = []}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x16xf32>
  %h = memref.alloc(%n) : memref<?x16xf32>
  call @work(%x, %h) : (memref<?x16xf32>, memref<?x16xf32>) -> ()
  call @work(%h, %out) : (memref<?x16xf32>, memref<?x16xf32>) -> ()
  return
}
