// RUN: relax-opt %s | relax-opt | filecheck %s

// CHECK-LABEL: func.func @matmul(
// CHECK: "relax.matmul"(%{{.*}}, %{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x5xf32>)
// CHECK-SAME: -> tensor<?x5xf32, {sym = ["n"]}>
func.func @matmul(%x: tensor<?x4xf32, {sym = ["n"]}>, %y: tensor<4x5xf32>) {
  %0 = "relax.matmul"(%x, %y) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x5xf32>) -> tensor<?x5xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @matmul_2(
// CHECK: "relax.matmul"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
func.func @matmul_2(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  %0 = "relax.matmul"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return
}

// CHECK-LABEL: func.func @matmul_3(
// CHECK: "relax.matmul"(%{{.*}}, %{{.*}}) {out_dtype = f32} : (tensor<2x1x3x4xbf16>, tensor<5x4x6xbf16>)
// CHECK-SAME: -> tensor<2x5x3x6xf32>
func.func @matmul_3(%x: tensor<2x1x3x4xbf16>, %y: tensor<5x4x6xbf16>) {
  %0 = "relax.matmul"(%x, %y) {out_dtype = f32} : (tensor<2x1x3x4xbf16>, tensor<5x4x6xbf16>) -> tensor<2x5x3x6xf32>
  return
}

// CHECK-LABEL: func.func @pack_weight(
// CHECK: "relax.pack_weight"(%{{.*}}) {layout = "tile 8"} : (tensor<4x20xf32>) -> tensor<3x4x8xf32>
func.func @pack_weight(%x: tensor<4x20xf32>) {
  %0 = "relax.pack_weight"(%x) {layout = "tile 8"} : (tensor<4x20xf32>) -> tensor<3x4x8xf32>
  return
}

// CHECK-LABEL: func.func @packed_matmul(
// CHECK: "relax.packed_matmul"(%{{.*}}, %{{.*}}) {layout = "tile 8", n = 20 : i64}
// CHECK-SAME: : (tensor<?x4xf32, {sym = ["n"]}>, tensor<3x4x8xf32>) -> tensor<?x20xf32, {sym = ["n"]}>
func.func @packed_matmul(%x: tensor<?x4xf32, {sym = ["n"]}>, %y: tensor<3x4x8xf32>) {
  %0 = "relax.packed_matmul"(%x, %y) {layout = "tile 8", n = 20 : i64}
      : (tensor<?x4xf32, {sym = ["n"]}>, tensor<3x4x8xf32>) -> tensor<?x20xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @pack_weight_2(
// CHECK: "relax.pack_weight"(%{{.*}}) {layout = "tile 8, rows 2"} : (tensor<5x20xbf16>) -> tensor<3x3x8x2xbf16>
func.func @pack_weight_2(%x: tensor<5x20xbf16>) {
  %0 = "relax.pack_weight"(%x) {layout = "tile 8, rows 2"} : (tensor<5x20xbf16>) -> tensor<3x3x8x2xbf16>
  return
}

// CHECK-LABEL: func.func @packed_matmul_2(
// CHECK: "relax.packed_matmul"(%{{.*}}, %{{.*}}) {layout = "tile 8, rows 2", n = 20 : i64}
// CHECK-SAME: : (tensor<?x5xbf16, {sym = ["n"]}>, tensor<3x3x8x2xbf16>) -> tensor<?x20xbf16, {sym = ["n"]}>
func.func @packed_matmul_2(%x: tensor<?x5xbf16, {sym = ["n"]}>, %y: tensor<3x3x8x2xbf16>) {
  %0 = "relax.packed_matmul"(%x, %y) {layout = "tile 8, rows 2", n = 20 : i64}
      : (tensor<?x5xbf16, {sym = ["n"]}>, tensor<3x3x8x2xbf16>) -> tensor<?x20xbf16, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @grouped_matmul(
// CHECK: "relax.grouped_matmul"(%{{.*}}, %{{.*}}, %{{.*}}) {out_dtype = f32}
// CHECK-SAME: : (tensor<?x4xbf16, {sym = ["n"]}>, tensor<4x6xbf16>, tensor<3xi32>) -> tensor<?x2xf32, {sym = ["n"]}>
func.func @grouped_matmul(%x: tensor<?x4xbf16, {sym = ["n"]}>, %y: tensor<4x6xbf16>, %ends: tensor<3xi32>) {
  %0 = "relax.grouped_matmul"(%x, %y, %ends) {out_dtype = f32}
      : (tensor<?x4xbf16, {sym = ["n"]}>, tensor<4x6xbf16>, tensor<3xi32>) -> tensor<?x2xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @packed_grouped_matmul(
// CHECK: "relax.packed_grouped_matmul"(%{{.*}}, %{{.*}}, %{{.*}}) {layout = "tile 8", n = 20 : i64}
// CHECK-SAME: : (tensor<?x4xf32, {sym = ["n"]}>, tensor<3x4x8xf32>, tensor<5xi64>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @packed_grouped_matmul(%x: tensor<?x4xf32, {sym = ["n"]}>, %y: tensor<3x4x8xf32>, %ends: tensor<5xi64>) {
  %0 = "relax.packed_grouped_matmul"(%x, %y, %ends) {layout = "tile 8", n = 20 : i64}
      : (tensor<?x4xf32, {sym = ["n"]}>, tensor<3x4x8xf32>, tensor<5xi64>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}
