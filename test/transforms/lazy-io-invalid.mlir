// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-lazy-get-input --relax-lazy-set-output

// expected-error@+1 {{'func.func' op expected only tensors as weights of @scalar_weight, got index}}
func.func @scalar_weight(%w: index) attributes {relax.num_input = 0 : i64} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expected only tensors as results of @scalar_result, got index}}
func.func @scalar_result(%i: index) -> index attributes {relax.num_input = 1 : i64} {
  return %i : index
}

// -----

// expected-error@+1 {{'func.func' op expected one block, got several in @blocks}}
func.func @blocks(%w: tensor<4xf32>) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  cf.br ^bb1
^bb1:
  return %w : tensor<4xf32>
}

// -----

// expected-error@+1 {{expected relax.num_input between 0 and 1, got -1 : i64}}
func.func @negative(%w: tensor<4xf32>) attributes {relax.num_input = -1 : i64} {
  return
}
