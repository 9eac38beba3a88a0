// RUN: relax-opt %s --verify-diagnostics --relax-inline
// RUN: not relax-opt %s --relax-inline="functions=f,f" 2>&1 | filecheck %s

// CHECK: inline-options-invalid.mlir:[[# @LINE + 3]]:1: error:
// CHECK-SAME: expected distinct functions for option 'functions', got @f twice
// expected-error@unknown {{expected names of functions for option 'functions', got none}}
func.func private @f() {
  return
}
