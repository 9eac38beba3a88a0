// RUN: relax-opt %s --relax-add-destinations | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %arg0: tensor<?xf32> {bufferization.writable = false}
// CHECK-SAME: %[[OUT:.*]]: tensor<?xf32> {bufferization.writable = true}) -> tensor<?xf32>
// CHECK: %[[Y:.*]] = call @kernel_0(%arg0, %[[OUT]])
// CHECK: %[[R:.*]] = bufferization.materialize_in_destination %[[Y]] in %[[OUT]]
// CHECK: return %[[R]]
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32>
    attributes {relax.entry = {checks = [], inputs = [{dtype = "f32", name = "x", shape = ["n"]}], memory = [],
    name = "main", outputs = [{dtype = "f32", name = "y", shape = ["n"]}], safe = 4 : i64, sizes = [], state = [],
    step = false, symbol = "relaxir_main", symbols = [{min = 0 : i64, name = "n"}], updates = [], weights = []}} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %y = call @kernel_0(%x, %e) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}
func.func private @kernel_0(tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> attributes {relax.kernel}

// A result that a branch hands on as well is made in memory of its own: a branch's result would be the caller's buffer.
// CHECK-LABEL: func.func @branch(
// CHECK: %[[E:.*]] = tensor.empty
// CHECK: %[[Y:.*]] = call @kernel_0(%arg0, %[[E]]) :
// CHECK: scf.yield %[[Y]]
// CHECK: %[[R:.*]] = bufferization.materialize_in_destination %[[Y]] in
// CHECK: return %[[R]],
func.func @branch(%x: tensor<?xf32>, %p: i1) -> (tensor<?xf32>, tensor<?xf32>)
    attributes {relax.entry = {checks = [], inputs = [{dtype = "f32", name = "x", shape = ["n"]}], memory = [],
    name = "branch", outputs = [{dtype = "f32", name = "y", shape = ["n"]}, {dtype = "f32", name = "z",
    shape = ["n"]}], safe = 4 : i64, sizes = [], state = [], step = false, symbol = "relaxir_branch",
    symbols = [{min = 0 : i64, name = "n"}], updates = [], weights = []}} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %y = call @kernel_0(%x, %e) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %z = scf.if %p -> tensor<?xf32> {
    scf.yield %x : tensor<?xf32>
  } else {
    scf.yield %y : tensor<?xf32>
  }
  return %y, %z : tensor<?xf32>, tensor<?xf32>
}
