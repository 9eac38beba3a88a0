// RUN: relax-opt %s --relax-to-linalg=tile=16 | filecheck %s

// Types forget symbols, truth values are bytes, ops are linalg on plain tensors. More is in linalg/*.mlir, per family.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<?x64xf32>) -> tensor<?x64xi8>
// CHECK: %[[N:.*]] = tensor.dim %[[X]]
// CHECK: %[[OUT:.*]] = tensor.empty(%[[N]]) : tensor<?x64xi8>
// CHECK: linalg.generic
// CHECK-SAME: outs(%[[OUT]] : tensor<?x64xi8>)
// CHECK: arith.cmpf
func.func @main(%x: tensor<?x64xf32, {sym = ["n"]}>) -> tensor<?x64xi1, {sym = ["n"]}> {
  %0 = "relax.isinf"(%x) : (tensor<?x64xf32, {sym = ["n"]}>) -> tensor<?x64xi1, {sym = ["n"]}>
  return %0 : tensor<?x64xi1, {sym = ["n"]}>
}

// A weight that comes at run time is packed in panels of the option's width.
// CHECK-LABEL: func.func @product(
// CHECK: tensor.empty() : tensor<3x8x16xf32>
func.func @product(%x: tensor<4x8xf32>, %w: tensor<8x40xf32>) -> tensor<4x40xf32> {
  %0 = "relax.matmul"(%x, %w) : (tensor<4x8xf32>, tensor<8x40xf32>) -> tensor<4x40xf32>
  return %0 : tensor<4x40xf32>
}
