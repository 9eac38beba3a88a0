// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-reorder-take-after-matmul
// RUN: not relax-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(relax-reorder-take-after-matmul{functions=g})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=FUNCTIONS

// FUNCTIONS: error: expected functions with a body for option 'functions', got @g
func.func @f(%x: tensor<2x64xf32>, %a: tensor<64x4xf32>, %b: tensor<4x64xf32>) -> tensor<2x64xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%a, %b) : (tensor<64x4xf32>, tensor<4x64xf32>) -> tensor<64x64xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %1 : tensor<2x64xf32>
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
