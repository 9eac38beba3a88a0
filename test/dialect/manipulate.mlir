// RUN: relax-opt %s | relax-opt | filecheck %s

// CHECK-LABEL: func.func @permute_dims(
// CHECK: "relax.permute_dims"(%{{.*}}) {axes = array<i64: 1, 2, 0>} : (tensor<?x3x4xf32, {sym = ["n"]}>)
// CHECK-SAME: -> tensor<3x4x?xf32, {sym = ["n"]}>
func.func @permute_dims(%x: tensor<?x3x4xf32, {sym = ["n"]}>) {
  %0 = "relax.permute_dims"(%x) {axes = array<i64: 1, 2, 0>} : (tensor<?x3x4xf32, {sym = ["n"]}>)
      -> tensor<3x4x?xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @permute_dims_2(
// CHECK: "relax.permute_dims"(%{{.*}}) : (tensor<2x3xf32>) -> tensor<3x2xf32>
func.func @permute_dims_2(%x: tensor<2x3xf32>) {
  %0 = "relax.permute_dims"(%x) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// CHECK-LABEL: func.func @reshape(
// CHECK: "relax.reshape"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n * 4"]}>
func.func @reshape(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.reshape"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n * 4"]}>
  return
}

// CHECK-LABEL: func.func @reshape_2(
// CHECK: "relax.reshape"(%{{.*}}) : (tensor<2x3xf32>) -> tensor<6x?xf32>
func.func @reshape_2(%x: tensor<2x3xf32>) {
  %0 = "relax.reshape"(%x) : (tensor<2x3xf32>) -> tensor<6x?xf32>
  return
}

// CHECK-LABEL: func.func @broadcast_to(
// CHECK: "relax.broadcast_to"(%{{.*}}) : (tensor<1x4xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @broadcast_to(%x: tensor<1x4xf32>) {
  %0 = "relax.broadcast_to"(%x) : (tensor<1x4xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @expand_dims(
// CHECK: "relax.expand_dims"(%{{.*}}) {axis = array<i64: 0, -1>} : (tensor<2x3xf32>) -> tensor<1x2x3x1xf32>
func.func @expand_dims(%x: tensor<2x3xf32>) {
  %0 = "relax.expand_dims"(%x) {axis = array<i64: 0, -1>} : (tensor<2x3xf32>) -> tensor<1x2x3x1xf32>
  return
}

// CHECK-LABEL: func.func @squeeze(
// CHECK: "relax.squeeze"(%{{.*}}) : (tensor<1x2x1xf32>) -> tensor<2xf32>
func.func @squeeze(%x: tensor<1x2x1xf32>) {
  %0 = "relax.squeeze"(%x) : (tensor<1x2x1xf32>) -> tensor<2xf32>
  return
}

// CHECK-LABEL: func.func @squeeze_2(
// CHECK: "relax.squeeze"(%{{.*}}) {axis = array<i64: -1>} : (tensor<1x2x1xf32>) -> tensor<1x2xf32>
func.func @squeeze_2(%x: tensor<1x2x1xf32>) {
  %0 = "relax.squeeze"(%x) {axis = array<i64: -1>} : (tensor<1x2x1xf32>) -> tensor<1x2xf32>
  return
}

// CHECK-LABEL: func.func @concat(
// CHECK: "relax.concat"(%{{.*}}, %{{.*}}) {axis = 0 : i64}
// CHECK-SAME: : (tensor<?x4xf32, {sym = ["n"]}>, tensor<?x4xf32, {sym = ["m"]}>) -> tensor<?x4xf32, {sym = ["m + n"]}>
func.func @concat(%x: tensor<?x4xf32, {sym = ["n"]}>, %y: tensor<?x4xf32, {sym = ["m"]}>) {
  %0 = "relax.concat"(%x, %y) {axis = 0 : i64} : (tensor<?x4xf32, {sym = ["n"]}>, tensor<?x4xf32, {sym = ["m"]}>)
      -> tensor<?x4xf32, {sym = ["m + n"]}>
  return
}

// CHECK-LABEL: func.func @split(
// CHECK: "relax.split"(%{{.*}}) {axis = 1 : i64, sections = 3 : i64} : (tensor<4x6xf32>)
// CHECK-SAME: -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>)
func.func @split(%x: tensor<4x6xf32>) {
  %0:3 = "relax.split"(%x) {axis = 1 : i64, sections = 3 : i64} : (tensor<4x6xf32>)
      -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>)
  return
}

// CHECK-LABEL: func.func @split_2(
// CHECK: "relax.split"(%{{.*}}) {sections = 2 : i64} : (tensor<?xf32, {sym = ["n * 2"]}>)
// CHECK-SAME: -> (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>)
func.func @split_2(%x: tensor<?xf32, {sym = ["n * 2"]}>) {
  %0:2 = "relax.split"(%x) {sections = 2 : i64} : (tensor<?xf32, {sym = ["n * 2"]}>)
      -> (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>)
  return
}

// CHECK-LABEL: func.func @flip(
// CHECK: "relax.flip"(%{{.*}}) {axis = 0 : i64} : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @flip(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.flip"(%x) {axis = 0 : i64} : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @repeat(
// CHECK: "relax.repeat"(%{{.*}}) {axis = 0 : i64, repeats = 3 : i64} : (tensor<?x4xf32, {sym = ["n"]}>)
// CHECK-SAME: -> tensor<?x4xf32, {sym = ["n * 3"]}>
func.func @repeat(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.repeat"(%x) {axis = 0 : i64, repeats = 3 : i64} : (tensor<?x4xf32, {sym = ["n"]}>)
      -> tensor<?x4xf32, {sym = ["n * 3"]}>
  return
}

// CHECK-LABEL: func.func @tile(
// CHECK: "relax.tile"(%{{.*}}) {repeats = array<i64: 2, 1>} : (tensor<2x3xf32>) -> tensor<4x3xf32>
func.func @tile(%x: tensor<2x3xf32>) {
  %0 = "relax.tile"(%x) {repeats = array<i64: 2, 1>} : (tensor<2x3xf32>) -> tensor<4x3xf32>
  return
}
