// RUN: relax-opt %s --relax-to-linalg=tile=16 --split-input-file | filecheck %s

// Softmax: the largest element (a NaN makes its power NaN, so it may be passed over), powers, their sum, quotients. A
// kernel takes each; what is read twice is stored once.
func.func @softmax(%x: tensor<?x48xf16, {sym = ["n"]}>) -> tensor<?x48xf16, {sym = ["n"]}> {
  %0 = "relax.softmax"(%x) {axis = -1 : i64} : (tensor<?x48xf16, {sym = ["n"]}>) -> tensor<?x48xf16, {sym = ["n"]}>
  return %0 : tensor<?x48xf16, {sym = ["n"]}>
}

// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @softmax(
// CHECK: linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?xf32>)
// CHECK: %[[MAX:\w+]] = linalg.generic {indexing_maps = [#[[ALL]], #[[ROW]]], iterator_types
// CHECK-SAME: = ["parallel", "reduction"]}
// CHECK: arith.maxnumf {{.*}} {relax.number_first}
// CHECK: %[[POWERS:\w+]] = linalg.generic
// CHECK-SAME: {indexing_maps = [#[[ALL]], #[[ROW]], #[[ALL]]], iterator_types = ["parallel", "parallel"]}
// CHECK-SAME: ins(%{{\w+}}, %[[MAX]] : {{.*}}) outs(%{{\w+}} : tensor<?x48xf32>)
// CHECK: math.exp
// CHECK: %[[SUM:\w+]] = linalg.generic {indexing_maps = [#[[ALL]], #[[ROW]]], iterator_types
// CHECK-SAME: = ["parallel", "reduction"]} ins(%[[POWERS]]
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}} ins(%[[POWERS]], %[[SUM]] : {{.*}}) outs(%{{.*}} : tensor<?x48xf16>)
// CHECK: arith.divf
// CHECK: arith.truncf

// -----

// Attention is one kernel: one loop over heads and blocks of rows, which threads share, and in it one over blocks of
// keys, whose scores stay in a small scratch. Query head h reads key head h / 3, and causality is a comparison of
// indices.
func.func @attention(%q: tensor<2x6x1000x8xf32>, %k: tensor<2x2x1000x8xf32>, %v: tensor<2x2x1000x8xf32>)
    -> tensor<2x6x1000x8xf32> {
  %0 = "relax.attention"(%q, %k, %v) {causal = true}
      : (tensor<2x6x1000x8xf32>, tensor<2x2x1000x8xf32>, tensor<2x2x1000x8xf32>)
    -> tensor<2x6x1000x8xf32>
  return %0 : tensor<2x6x1000x8xf32>
}

// CHECK-DAG: #[[LEFT:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[TURNED:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[RIGHT:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: func.func @attention(
// CHECK: call @attention_0(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : {{.*}} -> tensor<2x6x1000x8xf32>
// CHECK: func.func private @attention_0({{.*}} attributes {no_inline,
// CHECK-SAME: relax.attention_kernel = {{{.*}}}, relax.kernel, relax.stack}
// CHECK: %[[ALL:.*]] = arith.constant 384 : index
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[ALL]]
// CHECK: %[[HEAD:.*]] = arith.addi %{{.*}}, %{{.*}}
// CHECK: tensor.extract_slice %{{.*}}[%[[B:.*]], %[[HEAD]], %[[ROW:.*]], 0]
// CHECK: scf.for %[[KEY:\w+]] = %{{\w+}} to %{{\w+}} step %{{\w+}}
// CHECK-SAME: iter_args(%[[RESULT:\w+]] = %{{\w+}}, %[[MOST:\w+]] = %{{\w+}}, %[[SUMS:\w+]] = %{{\w+}})
// CHECK: tensor.extract_slice %{{.*}}[%[[B]], %{{.*}}, %[[KEY]], 0]
// CHECK: linalg.generic {indexing_maps = [#[[LEFT]], #[[RIGHT]], #{{.*}}], {{.*}} attrs = {relax.contraction}
// CHECK: arith.cmpi sle
// CHECK: arith.select
// CHECK: arith.maxnumf {{.*}} {relax.number_first}
// CHECK: %[[OLD:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} outs(%[[SUMS]] :
// CHECK: linalg.generic {{.*}} outs(%[[RESULT]] :
// CHECK: math.exp
// CHECK: linalg.generic {indexing_maps = [#[[TURNED]], #[[RIGHT]], #{{.*}}], {{.*}} attrs = {relax.contraction}
// CHECK: arith.divf
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[%[[B]], %[[HEAD]], %[[ROW]], 0]
// CHECK: } {relax.shared = array<i64: 0, 0, 0, 1, 0, 2, 0, 3, 1, 2>}

// -----

// Convolution: windows become the columns of a packed matrix, filters the rows of the left-hand side.
func.func @conv2d(%x: tensor<1x3x6x6xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x4x4xf32> {
  %0 = "relax.conv2d"(%x, %w) : (tensor<1x3x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x4x4xf32>
  return %0 : tensor<1x4x4x4xf32>
}

// CHECK-LABEL: func.func @conv2d(
// CHECK: %[[COLUMNS:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x1x1x27x16xf32>)
// CHECK: tensor.extract
// CHECK: arith.select
// CHECK: %[[FILTERS:.*]] = tensor.expand_shape %{{.*}} : tensor<4x27xf32> into tensor<1x4x27xf32>
// CHECK: %[[PRODUCT:\w+]] = {{.*}}call @contraction_0(%[[FILTERS]], %[[COLUMNS]], %{{\w+}})
// CHECK-SAME: -> tensor<1x1x4x16xf32>
// CHECK: tensor.expand_shape %{{.*}} into tensor<1x4x4x4xf32>
