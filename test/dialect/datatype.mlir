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
