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

#part = affine_map<(i, j, k) -> (i mod 4, j, k)>
#same = affine_map<(i, j, k) -> (i, j, k)>
// So is one slice that is nothing but a part of a concatenation, in another shape: it is copied once, to its place.
// CHECK-LABEL: func.func @concatenated(
// CHECK-NOT: call
// CHECK: %[[PART:.*]] = tensor.extract_slice %arg0[0, 0, 0] [1, 8, 16] [1, 1, 1]
// CHECK-SAME: tensor<4x8x16xf32> to tensor<1x8x16xf32>
// CHECK: %[[SHAPED:.*]] = tensor.collapse_shape %[[PART]]
// CHECK: tensor.insert_slice %[[SHAPED]] into
// CHECK-NOT: call
// CHECK: return
func.func @concatenated(%x: tensor<4x8x16xf32>, %y: tensor<1x16xf32>) -> tensor<9x16xf32> {
  %e = tensor.empty() : tensor<1x8x16xf32>
  %0 = linalg.generic {indexing_maps = [#part, #same], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x8x16xf32>) outs(%e : tensor<1x8x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x8x16xf32>
  %1 = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<1x8x16xf32> into tensor<8x16xf32>
  %2 = tensor.empty() : tensor<9x16xf32>
  %3 = tensor.insert_slice %1 into %2[0, 0] [8, 16] [1, 1] : tensor<8x16xf32> into tensor<9x16xf32>
  %4 = tensor.insert_slice %y into %3[8, 0] [1, 16] [1, 1] : tensor<1x16xf32> into tensor<9x16xf32>
  return %4 : tensor<9x16xf32>
}
