// RUN: relax-opt %s --relax-report-kernels --relax-report -o %t 2>&1 | filecheck %s

#id = affine_map<(d0) -> (d0)>
// CHECK: @main
// CHECK: kernel_0
// CHECK-SAME: elementwise
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> attributes {relax.entry = {checks = [], inputs = [
    {dtype = "f32", name = "x", shape = [64]}], memory = [], name = "main", outputs = [{dtype = "f32", name = "y",
    shape = [64]}], safe = 4 : i64, sizes = [], state = [], step = false, symbol = "relaxir_main", symbols = [],
    updates = [], weights = []}} {
  %e = tensor.empty() : tensor<64xf32>
  %y = call @kernel_0(%x, %e) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func private @kernel_0(%x: tensor<64xf32>, %out: tensor<64xf32>) -> tensor<64xf32> attributes {relax.kernel} {
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%out : tensor<64xf32>) {
    ^bb0(%a: f32, %b: f32):
      %0 = math.exp %a : f32
      linalg.yield %0 : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}
