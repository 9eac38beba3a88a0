// RUN: relax-opt %s --relax-to-linalg --split-input-file | filecheck %s

// What only moves elements is an index map on the operand, which fuses with readers. The first part of a split has no
// map of its own: a plain dimension would say that the operand is as long as the result.
func.func @maps(%x: tensor<4x6xf32>) -> (tensor<6x4xf32>, tensor<4x6xf32>, tensor<8x6xf32>, tensor<4x18xf32>,
    tensor<4x3xf32>, tensor<4x3xf32>) {
  %0 = "relax.permute_dims"(%x) : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %1 = "relax.flip"(%x) {axis = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = "relax.repeat"(%x) {axis = 0 : i64, repeats = 2 : i64} : (tensor<4x6xf32>) -> tensor<8x6xf32>
  %3 = "relax.tile"(%x) {repeats = array<i64: 1, 3>} : (tensor<4x6xf32>) -> tensor<4x18xf32>
  %4:2 = "relax.split"(%x) {sections = 2 : i64, axis = 1 : i64} : (tensor<4x6xf32>)
      -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return %0, %1, %2, %3, %4#0, %4#1 : tensor<6x4xf32>, tensor<4x6xf32>, tensor<8x6xf32>, tensor<4x18xf32>,
      tensor<4x3xf32>, tensor<4x3xf32>
}

// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[PERMUTE:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: #[[FLIP:.*]] = affine_map<(d0, d1) -> (d0, -d1 + 5)>
// CHECK-DAG: #[[REPEAT:.*]] = affine_map<(d0, d1) -> (d0 floordiv 2, d1)>
// CHECK-DAG: #[[TILE:.*]] = affine_map<(d0, d1) -> (d0, d1 mod 6)>
// CHECK-DAG: #[[SECOND:.*]] = affine_map<(d0, d1) -> (d0, d1 + 3)>
// CHECK-LABEL: func.func @maps(
// CHECK: linalg.generic {indexing_maps = [#[[PERMUTE]], #[[ID]]]
// CHECK: linalg.generic {indexing_maps = [#[[FLIP]], #[[ID]]]
// CHECK: linalg.generic {indexing_maps = [#[[REPEAT]], #[[ID]]]
// CHECK: linalg.generic {indexing_maps = [#[[TILE]], #[[ID]]]
// CHECK: linalg.generic {indexing_maps = [#[[TILE]], #[[ID]]]
// CHECK: linalg.generic {indexing_maps = [#[[SECOND]], #[[ID]]]

// -----

// Reshapes are views: dimensions are merged and split in the smallest groups.
func.func @reshape(%x: tensor<?x6x4xf32, {sym = ["n"]}>) -> tensor<?x3x8xf32, {sym = ["n"]}> {
  %0 = "relax.reshape"(%x) : (tensor<?x6x4xf32, {sym = ["n"]}>) -> tensor<?x3x8xf32, {sym = ["n"]}>
  return %0 : tensor<?x3x8xf32, {sym = ["n"]}>
}

// CHECK-LABEL: func.func @reshape(
// CHECK: %[[MERGED:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2]] : tensor<?x6x4xf32> into tensor<?x24xf32>
// CHECK: tensor.expand_shape %[[MERGED]] {{\[\[}}0], [1, 2]] output_shape [%{{.*}}, 3, 8]
// CHECK-SAME: : tensor<?x24xf32> into tensor<?x3x8xf32>
// CHECK-NOT: linalg

// -----

// A chain of concatenations has one destination.
func.func @concat(%x: tensor<2x?xf32, {sym = ["n"]}>, %y: tensor<2x3xf32>) -> tensor<2x?xf32, {sym = ["n * 2 + 3"]}> {
  %0 = "relax.concat"(%x, %y) {axis = 1 : i64} : (tensor<2x?xf32, {sym = ["n"]}>, tensor<2x3xf32>)
      -> tensor<2x?xf32, {sym = ["n + 3"]}>
  %1 = "relax.concat"(%0, %x) {axis = 1 : i64} : (tensor<2x?xf32, {sym = ["n + 3"]}>, tensor<2x?xf32, {sym = ["n"]}>)
      -> tensor<2x?xf32, {sym = ["n * 2 + 3"]}>
  return %1 : tensor<2x?xf32, {sym = ["n * 2 + 3"]}>
}

// CHECK-LABEL: func.func @concat(
// CHECK-SAME: %[[X:.*]]: tensor<2x?xf32>, %[[Y:.*]]: tensor<2x3xf32>)
// CHECK: %[[N:.*]] = tensor.dim %[[X]]
// CHECK: %[[OUT:.*]] = tensor.empty(%{{.*}}) : tensor<2x?xf32>
// CHECK: %[[A:.*]] = tensor.insert_slice %[[X]] into %[[OUT]][0, 0] [2, %[[N]]] [1, 1]
// CHECK: %[[B:.*]] = tensor.insert_slice %[[Y]] into %[[A]][0, %[[N]]] [2, 3] [1, 1]
// CHECK: %[[C:.*]] = tensor.insert_slice %[[X]] into %[[B]][0, %{{.*}}] [2, %[[N]]] [1, 1]
// CHECK: return %[[C]]
