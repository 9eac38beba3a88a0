// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-adjust-matmul-order
// RUN: not relax-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(relax-adjust-matmul-order{functions=g})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=FUNCTIONS
// RUN: not relax-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(relax-adjust-matmul-order{max-rewrites=-1})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=OPTION
// RUN: not relax-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(relax-adjust-matmul-order{max-rewrites=1})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=BUDGET

// FUNCTIONS: error: expected functions with a body for option 'functions', got @g
// OPTION: error: expected max-rewrites of 0 or more, got -1
// BUDGET: adjust-matmul-order-invalid.mlir:[[# @LINE + 7]]:8: error:
// BUDGET-SAME: expected the order of products to settle within 1 rewrites, got more
func.func @f(%x: tensor<2x64xf32>, %a: tensor<64x4xf32>, %b: tensor<4x64xf32>) -> tensor<2x64xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%a, %b) : (tensor<64x4xf32>, tensor<4x64xf32>) -> tensor<64x64xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  %2 = "relax.matmul"(%a, %b) : (tensor<64x4xf32>, tensor<4x64xf32>) -> tensor<64x64xf32>
  %3 = "relax.matmul"(%1, %2) : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %3 : tensor<2x64xf32>
}

// -----

// expected-error@+1 {{'func.func' op expected one block in a function with weights, got several in @blocks}}
func.func @blocks(%w: tensor<4xf32>) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  cf.br ^bb1
^bb1:
  return %w : tensor<4xf32>
}

// -----

func.func @override(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
  // expected-error@+1 {{'relax.exp' op expected "always" or "never" for relax.lift, got 3 : i64}}
  %0 = "relax.exp"(%w) {relax.lift = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{'func.func' op expected relax.lift on a weight, got it on argument 0}}
func.func @input(%x: tensor<4xf32> {relax.lift = "never"}, %w: tensor<4xf32>) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  return %x : tensor<4xf32>
}
