// RUN: relax-opt %s --relax-to-linalg | filecheck %s

// What a function of another library reads and writes is a function that nobody runs, until relax-call-externs.

// CHECK: module attributes {relax.checks = ["{{.*}}'relax.call_extern' op expected
// CHECK-SAME: 'acme_f' of 'a.so' to return 0, got an error"]
// CHECK: func.func @f(%[[X:.*]]: tensor<?x4xbf16>, %[[K:.*]]: tensor<3xi8>)
// CHECK-DAG: %[[A:.*]] = tensor.empty(%{{.*}}) : tensor<?xi8>
// CHECK-DAG: %[[B:.*]] = tensor.empty() : tensor<f32>
// CHECK: %[[Y:.*]]:2 = call @[[F:extern_[0-9]+]](%[[X]], %[[K]], %[[A]], %[[B]])
// CHECK: return %[[Y]]#0, %[[Y]]#1
// CHECK: func.func private @[[F]](
// CHECK-SAME: attributes {no_inline, relax.extern = {arguments = [3, true], check = 0 : i64,
// CHECK-SAME: dtypes = ["bf16", "i8", "i1", "f32"], inputs = 2 : i64, library = "a.so",
// CHECK-SAME: ranks = [2, 1, 1, 0], symbol = "acme_f"}, relax.kernel}
func.func @f(%x: tensor<?x4xbf16, {sym = ["n"]}>, %k: tensor<3xi8>) -> (tensor<?xi1, {sym = ["n * 2"]}>, tensor<f32>) {
  %0, %1 = "relax.call_extern"(%x, %k) {symbol = "acme_f", library = "a.so", arguments = [3, true],
     operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>,
     resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
      : (tensor<?x4xbf16, {sym = ["n"]}>, tensor<3xi8>) -> (tensor<?xi1, {sym = ["n * 2"]}>, tensor<f32>)
  return %0, %1 : tensor<?xi1, {sym = ["n * 2"]}>, tensor<f32>
}
