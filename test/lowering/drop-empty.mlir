// RUN: relax-opt %s --relax-drop-empty | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{.*}}: tensor<4x6xf32>, %[[D:.*]]: tensor<4x8xf32>)
// CHECK-NEXT: tensor.empty
// CHECK-NEXT: return %[[D]]
func.func @main(%x: tensor<4x6xf32>, %d: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x0xf32>
  %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x0xf32>) {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a : f32
  } -> tensor<4x0xf32>
  %c = tensor.insert_slice %y into %d[0, 0] [4, 0] [1, 1] : tensor<4x0xf32> into tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}
