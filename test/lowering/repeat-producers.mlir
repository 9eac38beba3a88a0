// RUN: relax-opt %s --relax-repeat-producers | filecheck %s

#id = affine_map<(d0) -> (d0)>
// What is cheap is computed for each of its readers, so that fusion can put it into both.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-4: linalg.generic
// CHECK-NOT: linalg.generic
func.func @main(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%a: f32, %b: f32):
      %0 = arith.addf %a, %a : f32
      linalg.yield %0 : f32
  } -> tensor<64xf32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%y : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%a: f32, %b: f32):
      %0 = math.exp %a : f32
      linalg.yield %0 : f32
  } -> tensor<64xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%y : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%a: f32, %b: f32):
      %0 = math.log %a : f32
      linalg.yield %0 : f32
  } -> tensor<64xf32>
  return %p, %q : tensor<64xf32>, tensor<64xf32>
}
