// RUN: relax-opt %s --relax-lift-transform-params='growth-slack=0 max-total-growth=1.1' \
// RUN:     --relax-report -o %t.mlir 2>&1 | filecheck %s
// RUN: relax-opt %t.mlir --relax-lift-transform-params='growth-slack=0 max-total-growth=1.1' \
// RUN:     --relax-report -o %t.again.mlir 2>&1 | filecheck %s
// RUN: relax-opt %s --relax-lift-transform-params='growth-slack=0 max-total-growth=1.1' \
// RUN:     --relax-report=json -o %t.mlir 2>&1 | filecheck %s --check-prefix=JSON
// RUN: relax-opt %s --canonicalize --relax-report -o %t.mlir 2>&1 | filecheck %s --check-prefix=NOTHING
// RUN: not relax-opt %s --relax-report=xml 2>&1 | filecheck %s --check-prefix=FORM

// Every reason for which what reads a weight stays. The next run, which finds the same, tells the same.
// CHECK:      @main, weights prepared by @main_transform_params: 352 B -> 352 B
// CHECK-NEXT:   lifted before after growth computed by
// CHECK-NEXT:   w.permute_dims 256 B 256 B 1.00x permute_dims of w
// CHECK-NEXT:   kept as they are size also lifted as
// CHECK-NEXT:   b 32 B
// CHECK-NEXT:   v 64 B
// CHECK-NEXT:   not lifted place reason of
// CHECK-NEXT:   relax.matmul {{.*}} run-time-value: x w
// CHECK-NEXT:   relax.stop_lift_params {{.*}} barrier: relax.stop_lift_params b
// CHECK-NEXT:   relax.exp {{.*}} override: relax.lift = "never" b
// CHECK-NEXT:   relax.broadcast_to {{.*}} run-time-symbol: n b
// CHECK-NEXT:   func.call {{.*}} not-pure: may have effects besides its results b
// CHECK-NEXT:   relax.take {{.*}} unsafe-in-branch: in a branch or loop that may not run v
// CHECK-NEXT:   tensor.extract {{.*}} not-a-tensor: f32 b
// CHECK-NEXT:   relax.concat {{.*}} growth-over-limit: 64 B -> 128 B, 2x of at most 1.25x v
// CHECK-NEXT:   relax.abs {{.*}} total-over-limit: adds 64 B; all are 416 B, at most 1.1x of 352 B v

// JSON:       {
// JSON-NEXT:    "sections": [
// JSON-NEXT:      {
// JSON-NEXT:        "kind": "lift",
// JSON-NEXT:        "function": "main",
// JSON-NEXT:        "transform": "main_transform_params",
// JSON-NEXT:        "lifted": [
// JSON-NEXT:          {
// JSON-NEXT:            "name": "w.permute_dims",
// JSON-NEXT:            "op": "relax.permute_dims",
// JSON-NEXT:            "location": "{{.*}}lift-transform-params-report.mlir:{{[0-9]+}}:8",
// JSON:                 "bytes_before": 256,
// JSON-NEXT:            "bytes_after": 256,
// JSON-NEXT:            "growth": 1.0

// NOTHING: nothing to report
// FORM: relax-opt: error: expected text or json for '--relax-report', got 'xml'
func.func private @unknown(tensor<8xf32>) -> tensor<8xf32>
func.func @main(%x: tensor<?x8xf32, {sym = ["n"]}> {relax.name = "x"}, %flag: i1, %w: tensor<8x8xf32>
    {relax.name = "w"}, %b: tensor<8xf32> {relax.name = "b"}, %v: tensor<4x4xf32> {relax.name = "v"})
    -> (tensor<?x8xf32, {sym = ["n"]}>, tensor<8xf32>, tensor<8xf32>, tensor<?x8xf32, {sym = ["n"]}>, f32,
        tensor<8xf32>, tensor<4x4xf32>, tensor<8x4xf32>, tensor<4x4xf32>) attributes {relax.num_input = 2 : i64} {
  %t = "relax.permute_dims"(%w) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = "relax.matmul"(%x, %t) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<8x8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  %s = "relax.stop_lift_params"(%b) : (tensor<8xf32>) -> tensor<8xf32>
  %e = "relax.exp"(%b) {relax.lift = "never"} : (tensor<8xf32>) -> tensor<8xf32>
  %l = "relax.broadcast_to"(%b) : (tensor<8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  %i0 = arith.constant 0 : index
  %f = tensor.extract %b[%i0] : tensor<8xf32>
  %u = call @unknown(%b) : (tensor<8xf32>) -> tensor<8xf32>
  %indices = "relax.constant"() {value = dense<[0, 1, 2, 3]> : tensor<4xi64>} : () -> tensor<4xi64>
  %r = scf.if %flag -> tensor<4x4xf32> {
    %k = "relax.take"(%v, %indices) : (tensor<4x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
    scf.yield %k : tensor<4x4xf32>
  } else {
    scf.yield %v : tensor<4x4xf32>
  }
  %c = "relax.concat"(%v, %v) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %a = "relax.abs"(%v) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y, %s, %e, %l, %f, %u, %r, %c, %a : tensor<?x8xf32, {sym = ["n"]}>, tensor<8xf32>, tensor<8xf32>,
      tensor<?x8xf32, {sym = ["n"]}>, f32, tensor<8xf32>, tensor<4x4xf32>, tensor<8x4xf32>, tensor<4x4xf32>
}
