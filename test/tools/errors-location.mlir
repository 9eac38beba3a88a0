// Errors name file, line and column, with the source line and a caret; also in pieces after the first.
// RUN: not relax-opt %s 2>&1 | filecheck %s
// RUN: not relax-opt %s --split-input-file 2>&1 | filecheck %s
// RUN: not relax-opt < %s 2>&1 | filecheck %s --check-prefix=STDIN
// RUN: not relax-opt %s -o %t.never 2>&1
// RUN: not relax-opt %t.never

// CHECK: errors-location.mlir:20:8: error: 'relax.add' op has no attribute named 'axs'
// CHECK-NEXT: {{^}}  %0 = "relax.add"(%a, %a) {axs = 1}
// CHECK-NEXT: {{^       \^$}}
// CHECK-NOT: Traceback
// STDIN: <stdin>:20:8: error: 'relax.add' op has no attribute named 'axs'

func.func private @before()

// -----

func.func @bad(%a: tensor<4xf32>) {
  // The next line is line 20.
  %0 = "relax.add"(%a, %a) {axs = 1} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}
