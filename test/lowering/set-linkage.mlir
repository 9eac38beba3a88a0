// RUN: relax-opt %s --relax-set-linkage | filecheck %s

// CHECK-LABEL: func.func @relaxir_main.body(
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>
// CHECK: func.func private @kernel_0(
// CHECK-SAME: attributes {llvm.linkage = #llvm.linkage<internal>, llvm.no_inline}
func.func @main(%x: memref<?xf32>, %out: memref<?xf32>)
    attributes {relax.entry = {checks = [], inputs = [{dtype = "f32", name = "x", shape = ["n"]}], memory = [],
    name = "main", outputs = [{dtype = "f32", name = "y", shape = ["n"]}], safe = 4 : i64, sizes = [], state = [],
    step = false, symbol = "relaxir_main", symbols = [{min = 0 : i64, name = "n"}], updates = [], weights = []}} {
  call @kernel_0(%x) : (memref<?xf32>) -> ()
  return
}
func.func private @kernel_0(%x: memref<?xf32>) attributes {relax.kernel} {
  return
}
