// RUN: relax-opt %s --relax-to-linalg --split-input-file | filecheck %s

// Indices are data: they are checked at run time, and reads are limited to the tensor all the same.
func.func @take(%x: tensor<100x64xf32>, %i: tensor<?xi64, {sym = ["n"]}>) -> tensor<?x64xf32, {sym = ["n"]}> {
  %0 = "relax.take"(%x, %i) {axis = 0 : i64} : (tensor<100x64xf32>, tensor<?xi64, {sym = ["n"]}>)
      -> tensor<?x64xf32, {sym = ["n"]}>
  return %0 : tensor<?x64xf32, {sym = ["n"]}>
}

// CHECK: relax.checks = ["{{.*}}expected indices in [-100, 100)"]
// CHECK-LABEL: func.func @take(
// CHECK-SAME: %[[X:.*]]: tensor<100x64xf32>, %[[I:.*]]: tensor<?xi64>)
// CHECK: %[[FINE:.*]] = linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[I]] : tensor<?xi64>)
// CHECK-SAME: outs(%{{.*}} : tensor<i8>)
// CHECK: %[[BYTE:.*]] = tensor.extract %[[FINE]][] : tensor<i8>
// CHECK: %[[OK:.*]] = arith.cmpi ne, %[[BYTE]]
// CHECK: call @relax_check(%[[OK]]
// CHECK: linalg.generic {{.*}} ins(%[[I]] : tensor<?xi64>) outs(%{{.*}} : tensor<?x64xf32>)
// CHECK: %[[COLUMN:.*]] = linalg.index 1
// CHECK: arith.minsi
// CHECK: %[[ROW:.*]] = arith.maxsi
// CHECK: tensor.extract %[[X]][%[[ROW]], %[[COLUMN]]]

// -----

// Positions in an order are those of rows, as many as there are: nothing is looked at when the code runs.
func.func @take_ordered(%x: tensor<?x64xf32, {sym = ["n"]}>, %k: tensor<?xf32, {sym = ["n"]}>)
    -> tensor<?x64xf32, {sym = ["n"]}> {
  %0 = "relax.argsort"(%k) {axis = 0 : i64} : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xi64, {sym = ["n"]}>
  %1 = "relax.take"(%x, %0) {axis = 0 : i64} : (tensor<?x64xf32, {sym = ["n"]}>, tensor<?xi64, {sym = ["n"]}>)
      -> tensor<?x64xf32, {sym = ["n"]}>
  return %1 : tensor<?x64xf32, {sym = ["n"]}>
}

// CHECK-LABEL: func.func @take_ordered(
// CHECK-NOT: relax_check
// CHECK: tensor.extract %arg0

// -----

// A slice with constant bounds is an index map.
func.func @constant_slice(%x: tensor<?x10xf32, {sym = ["n"]}>) -> tensor<?x3xf32, {sym = ["n"]}> {
  %0 = "relax.strided_slice"(%x) {axes = array<i64: 1>, begin = [2], end = [8], strides = array<i64: 2>}
    : (tensor<?x10xf32, {sym = ["n"]}>) -> tensor<?x3xf32, {sym = ["n"]}>
  return %0 : tensor<?x3xf32, {sym = ["n"]}>
}

// CHECK: #[[SLICE:.*]] = affine_map<(d0, d1) -> (d0, d1 * 2 + 2)>
// CHECK-LABEL: func.func @constant_slice(
// CHECK-NOT: relax_check
// CHECK: linalg.generic {indexing_maps = [#[[SLICE]], #{{.*}}]

// -----

// One with symbolic bounds computes its index; that the bounds lie inside is checked.
func.func @symbolic_slice(%x: tensor<10x4xf32>, %y: tensor<?xf32, {sym = ["n"]}>) -> tensor<3x4xf32> {
  %0 = "relax.strided_slice"(%x) {axes = array<i64: 0>, begin = ["n"], end = ["n + 3"]} : (tensor<10x4xf32>)
      -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// CHECK: relax.checks = ["{{.*}}'relax.strided_slice' op expected a slice inside of dimension 0, got [n, n + 3) of 10:
// CHECK-SAME: expected 'n + 3' to be at most 10, got {n + 3}"]
// CHECK-LABEL: func.func @symbolic_slice(
// CHECK: %[[N:.*]] = tensor.dim
// CHECK: call @relax_check
// CHECK: %[[ROW:.*]] = linalg.index 0
// CHECK: %[[FROM:.*]] = arith.addi %[[ROW]], %[[N]]
// CHECK: tensor.extract %{{.*}}[%[[FROM]]
