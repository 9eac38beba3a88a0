// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lazy-get-input{functions=main})' \
// RUN:   | filecheck %s --check-prefix=GET
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lazy-set-output{functions=other,main})' \
// RUN:   | filecheck %s --check-prefix=SET
// RUN: relax-opt %s \
// RUN:     --pass-pipeline='builtin.module(relax-lazy-transform-params{functions=second_transform_params})' \
// RUN:   | filecheck %s --check-prefix=SECOND
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lazy-get-input{functions=nobody})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=NOBODY
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lift-transform-params{functions=nobody})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=NOBODY

// Named functions only; inference too, when named.
// GET: @main_transform_params(%arg0: tensor<4xf32>
// GET: @main(%arg0: !relax.param_provider)
// GET: @other(%arg0: tensor<4xf32>
// SET: @main_transform_params(%arg0: tensor<4xf32>
// SET: @main(%arg0: !relax.output_sink
// SET: @other(%arg0: !relax.output_sink
// SECOND: @main_transform_params(%arg0: tensor<4xf32>
// SECOND: @main(%arg0: tensor<4xf32>
// SECOND: @second_transform_params(%arg0: !relax.param_provider, %arg1: !relax.output_sink)
// NOBODY: error: expected functions with relax.num_input for option 'functions', got @nobody
func.func @main_transform_params(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  return %w : tensor<4xf32>
}
func.func @main(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<4xf32>
}
func.func @other(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<4xf32>
}
func.func @second_transform_params(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 0 : i64, relax.transform_for = @other} {
  return %w : tensor<4xf32>
}
