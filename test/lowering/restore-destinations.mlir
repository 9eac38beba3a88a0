// RUN: relax-opt %s --relax-restore-destinations | filecheck %s

#id = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func private @kernel_0(
// CHECK-SAME: %{{.*}}: tensor<64xf32>, %[[OUT:.*]]: tensor<64xf32>
// CHECK: linalg.generic
// CHECK-SAME: outs(%[[OUT]] : tensor<64xf32>)
func.func private @kernel_0(%x: tensor<64xf32>, %out: tensor<64xf32>) -> tensor<64xf32> attributes {relax.kernel} {
  %e = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}
