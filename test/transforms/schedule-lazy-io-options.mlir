// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-schedule-lazy-io{functions=second effort=0})' | filecheck %s
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-schedule-lazy-io{functions=nobody})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=NOBODY
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-schedule-lazy-io{effort=-1})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=EFFORT

// Named functions only, also ones that are not lazy.
// CHECK-LABEL: @first
// CHECK-NOT:     relax.peak_bytes
// CHECK-LABEL: @second
// CHECK-SAME:    relax.peak_bytes = 32 : i64
// NOBODY: expected functions with a body for option 'functions', got @nobody
// EFFORT: expected 0 or more for option 'effort', got -1
func.func @first(%p: !relax.param_provider) -> tensor<4xf32> {
  %w = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<4xf32>
  return %w : tensor<4xf32>
}
func.func @second(%w: tensor<4xf32>) -> tensor<4xf32> {
  %e = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %e : tensor<4xf32>
}
func.func private @nobody()
