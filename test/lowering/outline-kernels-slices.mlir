// RUN: relax-opt %s --relax-outline-kernels | filecheck %s

#row0 = affine_map<(i, j) -> (i, j)>
#row1 = affine_map<(i, j) -> (i + 1, j)>
#row2 = affine_map<(i, j) -> (i + 2, j)>
#row3 = affine_map<(i, j) -> (i + 3, j)>
// Slices of one tensor, of which there are many, are views.
// CHECK-LABEL: func.func @slices(
// CHECK-NOT: call
// CHECK: tensor.extract_slice %arg0[0, 0] [1, %arg1] [1, 1] : tensor<4x?xi8> to tensor<1x?xi8>
// CHECK: tensor.extract_slice %arg0[1, 0] [1, %arg1] [1, 1]
// CHECK: tensor.extract_slice %arg0[2, 0] [1, %arg1] [1, 1]
// CHECK: tensor.extract_slice %arg0[3, 0] [1, %arg1] [1, 1]
// CHECK-NOT: call
// CHECK: return
func.func @slices(%x: tensor<4x?xi8>, %n: index) -> (tensor<1x?xi8>, tensor<1x?xi8>, tensor<1x?xi8>, tensor<1x?xi8>) {
  %e = tensor.empty(%n) : tensor<1x?xi8>
  %0 = linalg.generic {indexing_maps = [#row0, #row0], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x?xi8>) outs(%e : tensor<1x?xi8>) {
  ^bb0(%in: i8, %out: i8):
    linalg.yield %in : i8
  } -> tensor<1x?xi8>
  %1 = linalg.generic {indexing_maps = [#row1, #row0], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x?xi8>) outs(%e : tensor<1x?xi8>) {
  ^bb0(%in: i8, %out: i8):
    linalg.yield %in : i8
  } -> tensor<1x?xi8>
  %2 = linalg.generic {indexing_maps = [#row2, #row0], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x?xi8>) outs(%e : tensor<1x?xi8>) {
  ^bb0(%in: i8, %out: i8):
    linalg.yield %in : i8
  } -> tensor<1x?xi8>
  %3 = linalg.generic {indexing_maps = [#row3, #row0], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x?xi8>) outs(%e : tensor<1x?xi8>) {
  ^bb0(%in: i8, %out: i8):
    linalg.yield %in : i8
  } -> tensor<1x?xi8>
  return %0, %1, %2, %3 : tensor<1x?xi8>, tensor<1x?xi8>, tensor<1x?xi8>, tensor<1x?xi8>
}
