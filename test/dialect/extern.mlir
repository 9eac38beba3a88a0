// RUN: relax-opt %s | filecheck %s
// RUN: relax-opt %s --verify-roundtrip

// CHECK-LABEL: func.func @call_extern
// CHECK: %[[Y:.*]]:2 = "relax.call_extern"(%{{.*}}, %{{.*}}) {arguments = [2, 1.5{{.*}}, true, "mode"],
// CHECK-SAME: library = "libacme.so", operandSegmentSizes = array<i32: 1, 1, 0,
// CHECK-SAME: resultSegmentSizes = array<i32: 1, 1, 0,
// CHECK-SAME: symbol = "acme_pair", version = "2"}
// CHECK-SAME: -> (tensor<?x4xbf16, {sym = ["n * 2"]}>, tensor<i64>)
func.func @call_extern(%x: tensor<?x4xf32, {sym = ["n"]}>, %k: tensor<3xi8>)
    -> (tensor<?x4xbf16, {sym = ["n * 2"]}>, tensor<i64>) {
  %0, %1 = "relax.call_extern"(%x, %k) {symbol = "acme_pair", library = "libacme.so", version = "2",
     arguments = [2, 1.5, true, "mode"],
     operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>,
     resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
      : (tensor<?x4xf32, {sym = ["n"]}>, tensor<3xi8>) -> (tensor<?x4xbf16, {sym = ["n * 2"]}>, tensor<i64>)
  return %0, %1 : tensor<?x4xbf16, {sym = ["n * 2"]}>, tensor<i64>
}
