// RUN: relax-opt %s | filecheck %s
// RUN: relax-opt %s --verify-roundtrip

// CHECK-LABEL: func.func @collectives
func.func @collectives(%x: tensor<?x4xf32, {sym = ["n"]}>, %y: tensor<3xi32>) -> tensor<2x3xi32> {
  // CHECK: "relax.all_reduce"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  %0 = "relax.all_reduce"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  // CHECK: "relax.all_gather"(%{{.*}}) {ranks = 2 : i64} : (tensor<3xi32>) -> tensor<2x3xi32>
  %1 = "relax.all_gather"(%y) {ranks = 2 : i64} : (tensor<3xi32>) -> tensor<2x3xi32>
  // CHECK: "relax.rank"() : () -> tensor<i64>
  %2 = "relax.rank"() : () -> tensor<i64>
  return %1 : tensor<2x3xi32>
}
