// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-lift-transform-params

// expected-error@+1 {{expected relax.num_input between 0 and 1, got 2 : i64}}
func.func @too_many_inputs(%x: tensor<4xf32>) -> tensor<4xf32> attributes {relax.num_input = 2 : i64} {
  return %x : tensor<4xf32>
}

// -----

func.func @two_a(%x: tensor<4xf32>) attributes {relax.num_input = 0 : i64, relax.transform_for = @two} {
  return
}
// expected-error@+1 {{'func.func' op expected one transform function for @two, got @two_a and @two_b}}
func.func @two_b(%x: tensor<4xf32>) attributes {relax.num_input = 0 : i64, relax.transform_for = @two} {
  return
}
func.func @two(%x: tensor<4xf32>) attributes {relax.num_input = 1 : i64} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expected @lazy_transform_params to return every weight of the function it prepares, got none named 'w'}}
func.func @lazy_transform_params(%p: !relax.param_provider, %s: !relax.output_sink)
    attributes {relax.num_input = 2 : i64, relax.transform_for = @lazy} {
  return
}
func.func @lazy(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @called_transform_params(%w: tensor<4xf32> {relax.name = "w"}) -> (tensor<4xf32> {relax.name = "w"})
    attributes {relax.num_input = 0 : i64, relax.transform_for = @called} {
  return %w : tensor<4xf32>
}
func.func @called(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @driver(%w: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'func.call' op expected no call of @called_transform_params, whose signature changes}}
  %0 = func.call @called_transform_params(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{'func.func' op expected one block in a function with weights, got several in @blocks}}
func.func @blocks(%w: tensor<4xf32>) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  cf.br ^bb1
^bb1:
  return %w : tensor<4xf32>
}

// -----

// expected-error@+1 {{'func.func' op expected one block in the transform function @blocks_transform_params, got several}}
func.func @blocks_transform_params(%w: tensor<4xf32> {relax.name = "w"}) -> (tensor<4xf32> {relax.name = "w"})
    attributes {relax.num_input = 0 : i64, relax.transform_for = @blocks} {
  cf.br ^bb1
^bb1:
  return %w : tensor<4xf32>
}
func.func @blocks(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @bad_override(%w: tensor<4xf32>) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  // expected-error@+1 {{'relax.exp' op expected "always" or "never" for relax.lift, got "sometimes"}}
  %0 = "relax.exp"(%w) {relax.lift = "sometimes"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{'func.func' op expected "always" or "never" for relax.lift, got true}}
func.func @bad_weight_override(%w: tensor<4xf32> {relax.lift = true}) attributes {relax.num_input = 0 : i64} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expected relax.lift on a weight, got it on argument 0}}
func.func @override_of_an_input(%x: tensor<4xf32> {relax.lift = "always"}, %w: tensor<4xf32>)
    attributes {relax.num_input = 1 : i64} {
  return
}
