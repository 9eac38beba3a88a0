// RUN: relax-opt %s | relax-opt | filecheck %s

// CHECK-LABEL: func.func @sum(
// CHECK: "relax.sum"(%{{.*}}) : (tensor<2x3x4xf32>) -> tensor<f32>
func.func @sum(%x: tensor<2x3x4xf32>) {
  %0 = "relax.sum"(%x) : (tensor<2x3x4xf32>) -> tensor<f32>
  return
}

// CHECK-LABEL: func.func @sum_2(
// CHECK: "relax.sum"(%{{.*}}) {axis = array<i64: 1, -1>, keepdims = true} : (tensor<?x3x4xf32, {sym = ["n"]}>)
// CHECK-SAME: -> tensor<?x1x1xf32, {sym = ["n"]}>
func.func @sum_2(%x: tensor<?x3x4xf32, {sym = ["n"]}>) {
  %0 = "relax.sum"(%x) {axis = array<i64: 1, -1>, keepdims = true} : (tensor<?x3x4xf32, {sym = ["n"]}>)
      -> tensor<?x1x1xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @prod(
// CHECK: "relax.prod"(%{{.*}}) : (tensor<2x3x4xf32>) -> tensor<f32>
func.func @prod(%x: tensor<2x3x4xf32>) {
  %0 = "relax.prod"(%x) : (tensor<2x3x4xf32>) -> tensor<f32>
  return
}

// CHECK-LABEL: func.func @prod_2(
// CHECK: "relax.prod"(%{{.*}}) {axis = array<i64: 1, -1>, keepdims = true} : (tensor<?x3x4xf32, {sym = ["n"]}>)
// CHECK-SAME: -> tensor<?x1x1xf32, {sym = ["n"]}>
func.func @prod_2(%x: tensor<?x3x4xf32, {sym = ["n"]}>) {
  %0 = "relax.prod"(%x) {axis = array<i64: 1, -1>, keepdims = true} : (tensor<?x3x4xf32, {sym = ["n"]}>)
      -> tensor<?x1x1xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @max(
// CHECK: "relax.max"(%{{.*}}) : (tensor<2x3x4xf32>) -> tensor<f32>
func.func @max(%x: tensor<2x3x4xf32>) {
  %0 = "relax.max"(%x) : (tensor<2x3x4xf32>) -> tensor<f32>
  return
}

// CHECK-LABEL: func.func @max_2(
// CHECK: "relax.max"(%{{.*}}) {axis = array<i64: 1, -1>, keepdims = true} : (tensor<?x3x4xf32, {sym = ["n"]}>)
// CHECK-SAME: -> tensor<?x1x1xf32, {sym = ["n"]}>
func.func @max_2(%x: tensor<?x3x4xf32, {sym = ["n"]}>) {
  %0 = "relax.max"(%x) {axis = array<i64: 1, -1>, keepdims = true} : (tensor<?x3x4xf32, {sym = ["n"]}>)
      -> tensor<?x1x1xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @min(
// CHECK: "relax.min"(%{{.*}}) : (tensor<2x3x4xf32>) -> tensor<f32>
func.func @min(%x: tensor<2x3x4xf32>) {
  %0 = "relax.min"(%x) : (tensor<2x3x4xf32>) -> tensor<f32>
  return
}

// CHECK-LABEL: func.func @min_2(
// CHECK: "relax.min"(%{{.*}}) {axis = array<i64: 1, -1>, keepdims = true} : (tensor<?x3x4xf32, {sym = ["n"]}>)
// CHECK-SAME: -> tensor<?x1x1xf32, {sym = ["n"]}>
func.func @min_2(%x: tensor<?x3x4xf32, {sym = ["n"]}>) {
  %0 = "relax.min"(%x) {axis = array<i64: 1, -1>, keepdims = true} : (tensor<?x3x4xf32, {sym = ["n"]}>)
      -> tensor<?x1x1xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @mean(
// CHECK: "relax.mean"(%{{.*}}) : (tensor<2x3x4xf32>) -> tensor<f32>
func.func @mean(%x: tensor<2x3x4xf32>) {
  %0 = "relax.mean"(%x) : (tensor<2x3x4xf32>) -> tensor<f32>
  return
}

// CHECK-LABEL: func.func @mean_2(
// CHECK: "relax.mean"(%{{.*}}) {axis = array<i64: 1, -1>, keepdims = true} : (tensor<?x3x4xf32, {sym = ["n"]}>)
// CHECK-SAME: -> tensor<?x1x1xf32, {sym = ["n"]}>
func.func @mean_2(%x: tensor<?x3x4xf32, {sym = ["n"]}>) {
  %0 = "relax.mean"(%x) {axis = array<i64: 1, -1>, keepdims = true} : (tensor<?x3x4xf32, {sym = ["n"]}>)
      -> tensor<?x1x1xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @variance(
// CHECK: "relax.variance"(%{{.*}}) : (tensor<2x3x4xf32>) -> tensor<f32>
func.func @variance(%x: tensor<2x3x4xf32>) {
  %0 = "relax.variance"(%x) : (tensor<2x3x4xf32>) -> tensor<f32>
  return
}

// CHECK-LABEL: func.func @variance_2(
// CHECK: "relax.variance"(%{{.*}}) {axis = array<i64: 1, -1>, keepdims = true} : (tensor<?x3x4xf32, {sym = ["n"]}>)
// CHECK-SAME: -> tensor<?x1x1xf32, {sym = ["n"]}>
func.func @variance_2(%x: tensor<?x3x4xf32, {sym = ["n"]}>) {
  %0 = "relax.variance"(%x) {axis = array<i64: 1, -1>, keepdims = true} : (tensor<?x3x4xf32, {sym = ["n"]}>)
      -> tensor<?x1x1xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @sum_3(
// CHECK: "relax.sum"(%{{.*}}) : (tensor<4xi8>) -> tensor<i8>
func.func @sum_3(%x: tensor<4xi8>) {
  %0 = "relax.sum"(%x) : (tensor<4xi8>) -> tensor<i8>
  return
}

// CHECK-LABEL: func.func @cumsum(
// CHECK: "relax.cumsum"(%{{.*}}) {axis = -1 : i64, exclusive = true} : (tensor<?x4xf32, {sym = ["n"]}>)
// CHECK-SAME: -> tensor<?x4xf32, {sym = ["n"]}>
func.func @cumsum(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.cumsum"(%x) {axis = -1 : i64, exclusive = true} : (tensor<?x4xf32, {sym = ["n"]}>)
      -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @cumprod(
// CHECK: "relax.cumprod"(%{{.*}}) {axis = 0 : i64} : (tensor<?x4xf32, {sym = ["n"]}>)
func.func @cumprod(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.cumprod"(%x) {axis = 0 : i64} : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @cummax(
// CHECK: "relax.cummax"(%{{.*}}) {axis = -1 : i64} : (tensor<?x4xf32, {sym = ["n"]}>)
func.func @cummax(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.cummax"(%x) {axis = -1 : i64} : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @cummin(
// CHECK: "relax.cummin"(%{{.*}}) {axis = 0 : i64, exclusive = true} : (tensor<?x4xi8, {sym = ["n"]}>)
func.func @cummin(%x: tensor<?x4xi8, {sym = ["n"]}>) {
  %0 = "relax.cummin"(%x) {axis = 0 : i64, exclusive = true} : (tensor<?x4xi8, {sym = ["n"]}>)
      -> tensor<?x4xi8, {sym = ["n"]}>
  return
}
