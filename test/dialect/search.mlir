// RUN: relax-opt %s | relax-opt | filecheck %s

// CHECK-LABEL: func.func @where(
// CHECK: "relax.where"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<4x1xi1>, tensor<4x5xf32>, tensor<f32>) -> tensor<4x5xf32>
func.func @where(%x: tensor<4x1xi1>, %y: tensor<4x5xf32>, %z: tensor<f32>) {
  %0 = "relax.where"(%x, %y, %z) : (tensor<4x1xi1>, tensor<4x5xf32>, tensor<f32>) -> tensor<4x5xf32>
  return
}

// CHECK-LABEL: func.func @argmax(
// CHECK: "relax.argmax"(%{{.*}}) {axis = -1 : i64} : (tensor<4x5xf32>) -> tensor<4xi64>
func.func @argmax(%x: tensor<4x5xf32>) {
  %0 = "relax.argmax"(%x) {axis = -1 : i64} : (tensor<4x5xf32>) -> tensor<4xi64>
  return
}

// CHECK-LABEL: func.func @argmin(
// CHECK: "relax.argmin"(%{{.*}}) {axis = 0 : i64, keepdims = true} : (tensor<?x4xf32, {sym = ["n"]}>)
// CHECK-SAME: -> tensor<1x4xi64>
func.func @argmin(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.argmin"(%x) {axis = 0 : i64, keepdims = true} : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<1x4xi64>
  return
}

// CHECK-LABEL: func.func @argsort(
// CHECK: "relax.argsort"(%{{.*}}) {axis = -1 : i64, descending = true} : (tensor<4x5xf32>) -> tensor<4x5xi64>
func.func @argsort(%x: tensor<4x5xf32>) {
  %0 = "relax.argsort"(%x) {axis = -1 : i64, descending = true} : (tensor<4x5xf32>) -> tensor<4x5xi64>
  return
}
