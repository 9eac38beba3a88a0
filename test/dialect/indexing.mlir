// RUN: relax-opt %s | relax-opt | filecheck %s

// CHECK-LABEL: func.func @take(
// CHECK: "relax.take"(%{{\w+}}, %{{\w+}}) : (tensor<100x8xf16>, tensor<?x?xi64, {sym = ["b", "s"]}>)
// CHECK-SAME: -> tensor<?x?x8xf16, {sym = ["b", "s"]}>
func.func @take(%x: tensor<100x8xf16>, %y: tensor<?x?xi64, {sym = ["b", "s"]}>) {
  %0 = "relax.take"(%x, %y) : (tensor<100x8xf16>, tensor<?x?xi64, {sym = ["b", "s"]}>)
      -> tensor<?x?x8xf16, {sym = ["b", "s"]}>
  return
}

// CHECK-LABEL: func.func @take_2(
// CHECK: "relax.take"(%{{.*}}, %{{.*}}) {axis = -1 : i64} : (tensor<4x5xf32>, tensor<i32>) -> tensor<4xf32>
func.func @take_2(%x: tensor<4x5xf32>, %y: tensor<i32>) {
  %0 = "relax.take"(%x, %y) {axis = -1 : i64} : (tensor<4x5xf32>, tensor<i32>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @packed_take(
// CHECK: "relax.packed_take"(%{{\w+}}, %{{\w+}}) {layout = "tile 4", n = 13 : i64}
// CHECK-SAME: : (tensor<4x6x4xf16>, tensor<?x?xi64, {sym = ["b", "s"]}>) -> tensor<?x?x6xf16, {sym = ["b", "s"]}>
func.func @packed_take(%x: tensor<4x6x4xf16>, %y: tensor<?x?xi64, {sym = ["b", "s"]}>) {
  %0 = "relax.packed_take"(%x, %y) {layout = "tile 4", n = 13 : i64}
      : (tensor<4x6x4xf16>, tensor<?x?xi64, {sym = ["b", "s"]}>) -> tensor<?x?x6xf16, {sym = ["b", "s"]}>
  return
}

// CHECK-LABEL: func.func @gather_elements(
// CHECK: "relax.gather_elements"(%{{\w+}}, %{{\w+}}) {axis = 1 : i64} : (tensor<4x5xf32>, tensor<4x2xi64>)
// CHECK-SAME: -> tensor<4x2xf32>
func.func @gather_elements(%x: tensor<4x5xf32>, %y: tensor<4x2xi64>) {
  %0 = "relax.gather_elements"(%x, %y) {axis = 1 : i64} : (tensor<4x5xf32>, tensor<4x2xi64>) -> tensor<4x2xf32>
  return
}

// CHECK-LABEL: func.func @gather_nd(
// CHECK: "relax.gather_nd"(%{{\w+}}, %{{\w+}}) {batch_dims = 1 : i64} : (tensor<4x5x6xf32>, tensor<4x7x1xi64>)
// CHECK-SAME: -> tensor<4x7x6xf32>
func.func @gather_nd(%x: tensor<4x5x6xf32>, %y: tensor<4x7x1xi64>) {
  %0 = "relax.gather_nd"(%x, %y) {batch_dims = 1 : i64} : (tensor<4x5x6xf32>, tensor<4x7x1xi64>) -> tensor<4x7x6xf32>
  return
}

// CHECK-LABEL: func.func @index_copy(
// CHECK: "relax.index_copy"(%{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK-SAME: : (tensor<4x5xf32>, tensor<?xi64, {sym = ["n"]}>, tensor<?x5xf32, {sym = ["n"]}>) -> tensor<4x5xf32>
func.func @index_copy(%x: tensor<4x5xf32>, %y: tensor<?xi64, {sym = ["n"]}>, %z: tensor<?x5xf32, {sym = ["n"]}>) {
  %0 = "relax.index_copy"(%x, %y, %z) : (tensor<4x5xf32>, tensor<?xi64, {sym = ["n"]}>, tensor<?x5xf32, {sym = ["n"]}>)
      -> tensor<4x5xf32>
  return
}

// CHECK-LABEL: func.func @index_copy_2(
// CHECK: "relax.index_copy"(%{{\w+}}, %{{\w+}}, %{{\w+}}) {axis = -1 : i64}
// CHECK-SAME: : (tensor<2x4xi8>, tensor<1xi32>, tensor<2x1xi8>) -> tensor<2x4xi8>
func.func @index_copy_2(%x: tensor<2x4xi8>, %y: tensor<1xi32>, %z: tensor<2x1xi8>) {
  %0 = "relax.index_copy"(%x, %y, %z) {axis = -1 : i64} : (tensor<2x4xi8>, tensor<1xi32>, tensor<2x1xi8>)
      -> tensor<2x4xi8>
  return
}

// CHECK-LABEL: func.func @strided_slice(
// CHECK: "relax.strided_slice"(%{{\w+}}) {axes = array<i64: 0>, begin = [1], end = [-1], strides = array<i64: 2>}
// CHECK-SAME: : (tensor<10x5xf32>) -> tensor<4x5xf32>
func.func @strided_slice(%x: tensor<10x5xf32>) {
  %0 = "relax.strided_slice"(%x) {axes = array<i64: 0>, begin = [1], end = [-1], strides = array<i64: 2>}
      : (tensor<10x5xf32>) -> tensor<4x5xf32>
  return
}

// CHECK-LABEL: func.func @strided_slice_2(
// CHECK: "relax.strided_slice"(%{{\w+}}) {axes = array<i64: 0>, begin = [1], end = ["n"]}
// CHECK-SAME: : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n - 1"]}>
func.func @strided_slice_2(%x: tensor<?xf32, {sym = ["n"]}>) {
  %0 = "relax.strided_slice"(%x) {axes = array<i64: 0>, begin = [1], end = ["n"]} : (tensor<?xf32, {sym = ["n"]}>)
      -> tensor<?xf32, {sym = ["n - 1"]}>
  return
}

// CHECK-LABEL: func.func @scatter_elements(
// CHECK: "relax.scatter_elements"(%{{\w+}}, %{{\w+}}, %{{\w+}}) {axis = 1 : i64, reduction = "add"}
// CHECK-SAME: : (tensor<4x5xf32>, tensor<4x2xi64>, tensor<4x2xf32>) -> tensor<4x5xf32>
func.func @scatter_elements(%x: tensor<4x5xf32>, %y: tensor<4x2xi64>, %z: tensor<4x2xf32>) {
  %0 = "relax.scatter_elements"(%x, %y, %z) {axis = 1 : i64, reduction = "add"}
      : (tensor<4x5xf32>, tensor<4x2xi64>, tensor<4x2xf32>) -> tensor<4x5xf32>
  return
}

// CHECK-LABEL: func.func @dynamic_strided_slice(
// CHECK: "relax.dynamic_strided_slice"(%{{\w+}}, %{{\w+}}, %{{\w+}}) {axes = array<i64: 1>, strides = array<i64: 2>}
// CHECK-SAME: : (tensor<4x5xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<4x?xf32>
func.func @dynamic_strided_slice(%x: tensor<4x5xf32>, %begin: tensor<1xi64>, %end: tensor<1xi64>) {
  %0 = "relax.dynamic_strided_slice"(%x, %begin, %end) {axes = array<i64: 1>, strides = array<i64: 2>}
      : (tensor<4x5xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<4x?xf32>
  return
}
