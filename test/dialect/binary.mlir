// RUN: relax-opt %s | relax-opt | filecheck %s

// CHECK-LABEL: func.func @add(
// CHECK: "relax.add"(%{{.*}}, %{{.*}}) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
func.func @add(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) {
  %0 = "relax.add"(%x, %y) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @subtract(
// CHECK: "relax.subtract"(%{{.*}}, %{{.*}}) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
func.func @subtract(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) {
  %0 = "relax.subtract"(%x, %y) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @multiply(
// CHECK: "relax.multiply"(%{{.*}}, %{{.*}}) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
func.func @multiply(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) {
  %0 = "relax.multiply"(%x, %y) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @divide(
// CHECK: "relax.divide"(%{{.*}}, %{{.*}}) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
func.func @divide(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) {
  %0 = "relax.divide"(%x, %y) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @floor_divide(
// CHECK: "relax.floor_divide"(%{{.*}}, %{{.*}}) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
func.func @floor_divide(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) {
  %0 = "relax.floor_divide"(%x, %y) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @fmod(
// CHECK: "relax.fmod"(%{{.*}}, %{{.*}}) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
func.func @fmod(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) {
  %0 = "relax.fmod"(%x, %y) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @mod(
// CHECK: "relax.mod"(%{{.*}}, %{{.*}}) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
func.func @mod(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) {
  %0 = "relax.mod"(%x, %y) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @power(
// CHECK: "relax.power"(%{{.*}}, %{{.*}}) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
func.func @power(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) {
  %0 = "relax.power"(%x, %y) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @maximum(
// CHECK: "relax.maximum"(%{{.*}}, %{{.*}}) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
func.func @maximum(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) {
  %0 = "relax.maximum"(%x, %y) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @minimum(
// CHECK: "relax.minimum"(%{{.*}}, %{{.*}}) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
func.func @minimum(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) {
  %0 = "relax.minimum"(%x, %y) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @bitwise_and(
// CHECK: "relax.bitwise_and"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
func.func @bitwise_and(%x: tensor<4xi32>, %y: tensor<4xi32>) {
  %0 = "relax.bitwise_and"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

// CHECK-LABEL: func.func @bitwise_or(
// CHECK: "relax.bitwise_or"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
func.func @bitwise_or(%x: tensor<4xi32>, %y: tensor<4xi32>) {
  %0 = "relax.bitwise_or"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

// CHECK-LABEL: func.func @bitwise_xor(
// CHECK: "relax.bitwise_xor"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
func.func @bitwise_xor(%x: tensor<4xi32>, %y: tensor<4xi32>) {
  %0 = "relax.bitwise_xor"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

// CHECK-LABEL: func.func @left_shift(
// CHECK: "relax.left_shift"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
func.func @left_shift(%x: tensor<4xi32>, %y: tensor<4xi32>) {
  %0 = "relax.left_shift"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

// CHECK-LABEL: func.func @right_shift(
// CHECK: "relax.right_shift"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
func.func @right_shift(%x: tensor<4xi32>, %y: tensor<4xi32>) {
  %0 = "relax.right_shift"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

// CHECK-LABEL: func.func @equal(
// CHECK: "relax.equal"(%{{.*}}, %{{.*}}) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
func.func @equal(%x: tensor<4xf16>, %y: tensor<4xf16>) {
  %0 = "relax.equal"(%x, %y) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @not_equal(
// CHECK: "relax.not_equal"(%{{.*}}, %{{.*}}) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
func.func @not_equal(%x: tensor<4xf16>, %y: tensor<4xf16>) {
  %0 = "relax.not_equal"(%x, %y) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @less(
// CHECK: "relax.less"(%{{.*}}, %{{.*}}) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
func.func @less(%x: tensor<4xf16>, %y: tensor<4xf16>) {
  %0 = "relax.less"(%x, %y) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @less_equal(
// CHECK: "relax.less_equal"(%{{.*}}, %{{.*}}) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
func.func @less_equal(%x: tensor<4xf16>, %y: tensor<4xf16>) {
  %0 = "relax.less_equal"(%x, %y) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @greater(
// CHECK: "relax.greater"(%{{.*}}, %{{.*}}) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
func.func @greater(%x: tensor<4xf16>, %y: tensor<4xf16>) {
  %0 = "relax.greater"(%x, %y) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @greater_equal(
// CHECK: "relax.greater_equal"(%{{.*}}, %{{.*}}) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
func.func @greater_equal(%x: tensor<4xf16>, %y: tensor<4xf16>) {
  %0 = "relax.greater_equal"(%x, %y) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @logical_and(
// CHECK: "relax.logical_and"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
func.func @logical_and(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  %0 = "relax.logical_and"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @logical_or(
// CHECK: "relax.logical_or"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
func.func @logical_or(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  %0 = "relax.logical_or"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @logical_xor(
// CHECK: "relax.logical_xor"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
func.func @logical_xor(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  %0 = "relax.logical_xor"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @add_2(
// CHECK: "relax.add"(%{{.*}}, %{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4xf32>)
// CHECK-SAME: -> tensor<?x4xf32, {sym = ["n"]}>
func.func @add_2(%x: tensor<?x4xf32, {sym = ["n"]}>, %y: tensor<4xf32>) {
  %0 = "relax.add"(%x, %y) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @multiply_2(
// CHECK: "relax.multiply"(%{{.*}}, %{{.*}}) : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
func.func @multiply_2(%x: tensor<2x1xf32>, %y: tensor<3xf32>) {
  %0 = "relax.multiply"(%x, %y) : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// CHECK-LABEL: func.func @subtract_2(
// CHECK: "relax.subtract"(%{{.*}}, %{{.*}}) : (tensor<?xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @subtract_2(%x: tensor<?xf32>, %y: tensor<4xf32>) {
  %0 = "relax.subtract"(%x, %y) : (tensor<?xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @divide_2(
// CHECK: "relax.divide"(%{{.*}}, %{{.*}}) : (tensor<f32>, tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}>
func.func @divide_2(%x: tensor<f32>, %y: tensor<?xf32, {sym = ["n"]}>) {
  %0 = "relax.divide"(%x, %y) : (tensor<f32>, tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @add_3(
// CHECK: "relax.add"(%{{.*}}, %{{.*}}) : (tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32>)
// CHECK-SAME: -> tensor<4xf32, {vdevice = "cuda:0"}>
func.func @add_3(%x: tensor<4xf32, {vdevice = "cuda:0"}>, %y: tensor<4xf32>) {
  %0 = "relax.add"(%x, %y) : (tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32>) -> tensor<4xf32, {vdevice = "cuda:0"}>
  return
}
