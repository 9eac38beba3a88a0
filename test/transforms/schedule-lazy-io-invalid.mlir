// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-schedule-lazy-io

// expected-error@+1 {{'func.func' op expected one block, got several in @blocks}}
func.func @blocks(%p: !relax.param_provider) -> tensor<4xf32> {
  cf.br ^bb1
^bb1:
  %w = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

// A function that does nothing lazily may have any blocks.
func.func @not_lazy(%w: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^bb1
^bb1:
  return %w : tensor<4xf32>
}

// -----

// expected-error@+1 {{'func.func' op expected a peak of less than 2**63 bytes, got 13835058055282163712}}
func.func @peak_beyond_64_bits(%p: !relax.param_provider) -> tensor<1152921504606846976xf32> {
  %a = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<1152921504606846976xf32>
  %b = "relax.get_param"(%p) {index = 1 : i64} : (!relax.param_provider) -> tensor<1152921504606846976xf32>
  %c = "relax.add"(%a, %b) : (tensor<1152921504606846976xf32>, tensor<1152921504606846976xf32>)
      -> tensor<1152921504606846976xf32>
  return %c : tensor<1152921504606846976xf32>
}
