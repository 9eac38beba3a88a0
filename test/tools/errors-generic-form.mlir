// An op of ours in a form that it has not: MLIR's parser fails without a word, and the error still has a place.
// RUN: not relax-opt %s 2>&1 | filecheck %s
// RUN: not relaxir info %s 2>&1 | filecheck %s --check-prefix=INFO

// CHECK: form.mlir:13:8: error: expected "relax.add"(...) : (...) -> (...), the only form of a relax op, got relax.add
// CHECK-NEXT: {{^}}  %0 = relax.add %a, %a
// CHECK-NEXT: {{^       \^$}}
// INFO: error: {{.*}}errors-generic-form.mlir:13:8: expected "relax.add"(...)

func.func @bad(%a: tensor<4xf32>) {
  // %0 = relax.subtract %a, %a : tensor<4xf32>
  %s = arith.constant {note = "= relax.multiply"} 1 : i64
  %0 = relax.add %a, %a : tensor<4xf32>
  return
}
