// Designators that do not match: each way to fail.
// RUN: not relax-opt %s --split-input-file --verify-diagnostics 2>&1 | filecheck %s
// RUN: not relax-opt %s --split-input-file --verify-diagnostics=only-expected 2>&1 | filecheck %s --check-prefix=ONLY

// The first one is on line 21.
// CHECK: fails.mlir:22:6: error: expected error "never happens" was not produced
// CHECK-NEXT: // expected-error
// CHECK-NEXT: {{^     \^}}
// CHECK: fails.mlir:28:8: error: unexpected error: 'relax.add' op has no attribute named 'axs'
// CHECK: fails.mlir:36:8: error: unexpected error: 'relax.add' op has no attribute named 'axs'
// CHECK: fails.mlir:34:6: error: expected error "no attribute named 'other'" was not produced
// CHECK: fails.mlir:43:6: error: 'error' diagnostic emitted when expecting a 'warning'
// CHECK: fails.mlir:43:6: error: expected warning "has no attribute" was not produced
// CHECK: fails.mlir:52:8: error: unexpected error:
// CHECK: fails.mlir:50:6: error: expected error "has no attribute" was not produced
// ONLY-NOT: unexpected error
// ONLY: error: expected error "never happens" was not produced
// ONLY-NOT: unexpected error

func.func private @missing()
//
  // expected-error@-2 {{never happens}}

// -----

func.func @unexpected(%a: tensor<4xf32>) {
  // No designator for the next line.
  %0 = "relax.add"(%a, %a) {axs = 1} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @other_text(%a: tensor<4xf32>) {
  // expected-error@+2 {{no attribute named 'other'}}

  %0 = "relax.add"(%a, %a) {axs = 1} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @other_kind(%a: tensor<4xf32>) {
  // expected-warning@+1 {{has no attribute}}
  %0 = "relax.add"(%a, %a) {axs = 1} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @other_line(%a: tensor<4xf32>) {
  // expected-error@+1 {{has no attribute}}

  %0 = "relax.add"(%a, %a) {axs = 1} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}
