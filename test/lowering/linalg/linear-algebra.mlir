// RUN: relax-opt %s --relax-to-linalg=tile=16 --split-input-file | filecheck %s

// A product with a packed weight is a call of a function in destination-passing style; equal ones share it.
func.func @packed(%x: tensor<?x8xf32, {sym = ["m"]}>, %w: tensor<2x8x16xf32>) -> tensor<?x24xf32, {sym = ["m"]}> {
  %0 = "relax.packed_matmul"(%x, %w) {layout = "tile 16", n = 24 : i64}
      : (tensor<?x8xf32, {sym = ["m"]}>, tensor<2x8x16xf32>) -> tensor<?x24xf32, {sym = ["m"]}>
  %1 = "relax.packed_matmul"(%x, %w) {layout = "tile 16", n = 24 : i64}
      : (tensor<?x8xf32, {sym = ["m"]}>, tensor<2x8x16xf32>) -> tensor<?x24xf32, {sym = ["m"]}>
  %2 = "relax.add"(%0, %1) : (tensor<?x24xf32, {sym = ["m"]}>, tensor<?x24xf32, {sym = ["m"]}>)
      -> tensor<?x24xf32, {sym = ["m"]}>
  return %2 : tensor<?x24xf32, {sym = ["m"]}>
}

// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2) -> (d1 floordiv 16, d2, d1 mod 16)>
// CHECK-DAG: #[[C:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @packed(
// CHECK: %[[OUT:.*]] = tensor.empty(%{{.*}}) : tensor<?x24xf32>
// CHECK: call @contraction_0(%{{.*}}, %{{.*}}, %[[OUT]])
// CHECK: call @contraction_0
// CHECK: func.func private @contraction_0(%[[X:.*]]: tensor<?x8xf32>, %[[W:.*]]: tensor<2x8x16xf32>,
// CHECK-SAME: %[[DEST:.*]]: tensor<?x24xf32> {bufferization.writable = true}) -> tensor<?x24xf32>
// CHECK-SAME: attributes {no_inline, relax.kernel}
// CHECK: %[[ZERO:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[DEST]]
// CHECK: linalg.generic {indexing_maps = [#[[A]], #[[B]], #[[C]]], iterator_types
// CHECK-SAME: = ["parallel", "parallel", "reduction"]}
// CHECK-SAME: ins(%[[X]], %[[W]] : {{.*}}) outs(%[[ZERO]] : {{.*}}) attrs
// CHECK-SAME: = {relax.contraction, relax.layout = "tile 16"}
// CHECK: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NOT: func.func private @contraction_1

// -----

// Narrow rows are widened once, before the product; a narrow result is summed in f32 and rounded by a second op of the
// function.
func.func @narrow(%x: tensor<4x8xbf16>, %w: tensor<1x8x16xbf16>) -> tensor<4x16xbf16> {
  %0 = "relax.packed_matmul"(%x, %w) {layout = "tile 16", n = 16 : i64} : (tensor<4x8xbf16>, tensor<1x8x16xbf16>)
      -> tensor<4x16xbf16>
  return %0 : tensor<4x16xbf16>
}

// CHECK: %[[WIDE:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<4x8xbf16>) outs(%{{.*}} : tensor<4x8xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.extf
// CHECK: call @contraction_0(%[[WIDE]], %{{.*}}, %{{.*}})
// CHECK: func.func private @contraction_0(%{{.*}}, %{{.*}}, %[[DEST:.*]]: tensor<4x16xbf16>
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<4x16xf32>
// CHECK: %[[START:.*]] = linalg.fill {{.*}} outs(%[[EMPTY]]
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} outs(%[[START]]
// CHECK: arith.extf
// CHECK-NOT: arith.extf
// CHECK: linalg.generic {{.*}} ins(%[[SUM]] : tensor<4x16xf32>) outs(%[[DEST]] : tensor<4x16xbf16>)
// CHECK: arith.truncf

// -----

// A right-hand side that is computed at run time is packed first; columns beyond the last are zero.
func.func @unpacked(%x: tensor<2x4x8xf32>, %y: tensor<8x20xf32>) -> tensor<2x4x20xf32> {
  %0 = "relax.matmul"(%x, %y) : (tensor<2x4x8xf32>, tensor<8x20xf32>) -> tensor<2x4x20xf32>
  return %0 : tensor<2x4x20xf32>
}

// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2, d3) -> (d2 floordiv 16, d3, d2 mod 16)>
// CHECK-LABEL: func.func @unpacked(
// CHECK: %[[PACKED:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2x8x16xf32>)
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt
// CHECK: tensor.extract
// CHECK: arith.select %[[INSIDE]]
// CHECK: call @contraction_0(%{{.*}}, %[[PACKED]], %{{.*}})
// CHECK: func.func private @contraction_0
// CHECK: linalg.generic {indexing_maps = [#[[A]], #[[B]]
