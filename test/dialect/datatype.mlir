// RUN: relax-opt %s | relax-opt | filecheck %s

// CHECK-LABEL: func.func @astype(
// CHECK: "relax.astype"(%{{.*}}) {dtype = bf16} : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xbf16, {sym = ["n"]}>
func.func @astype(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.astype"(%x) {dtype = bf16} : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xbf16, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @astype_2(
// CHECK: "relax.astype"(%{{.*}}) {dtype = i4} : (tensor<4xf8E4M3FN>) -> tensor<4xi4>
func.func @astype_2(%x: tensor<4xf8E4M3FN>) {
  %0 = "relax.astype"(%x) {dtype = i4} : (tensor<4xf8E4M3FN>) -> tensor<4xi4>
  return
}

// CHECK-LABEL: func.func @bitcast(
// CHECK: "relax.bitcast"(%{{.*}}) {dtype = i16} : (tensor<?x4xbf16, {sym = ["n"]}>) -> tensor<?x4xi16, {sym = ["n"]}>
func.func @bitcast(%x: tensor<?x4xbf16, {sym = ["n"]}>) {
  %0 = "relax.bitcast"(%x) {dtype = i16} : (tensor<?x4xbf16, {sym = ["n"]}>) -> tensor<?x4xi16, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @bitcast_2(
// CHECK: "relax.bitcast"(%{{.*}}) {dtype = ui64} : (tensor<4xf64>) -> tensor<4xui64>
func.func @bitcast_2(%x: tensor<4xf64>) {
  %0 = "relax.bitcast"(%x) {dtype = ui64} : (tensor<4xf64>) -> tensor<4xui64>
  return
}
