// RUN: relax-opt %s --split-input-file --verify-diagnostics
// What functions must keep: names, and what transform functions prepare (dialect/conventions.py, transform_rules.py).

// expected-error @+1 {{'func.func' op expected distinct result names, got 'w' twice}}
func.func @results_of_one_name(%w: tensor<4xf32>)
    -> (tensor<4xf32> {relax.name = "w"}, tensor<4xf32> {relax.name = "w"}) {
  return %w, %w : tensor<4xf32>, tensor<4xf32>
}
// expected-error @+1 {{'func.func' op expected distinct result names, got 'w' twice}}
func.func private @private_ones_too(%w: tensor<4xf32>)
    -> (tensor<4xf32> {relax.name = "w"}, tensor<4xf32> {relax.name = "w"}) {
  return %w, %w : tensor<4xf32>, tensor<4xf32>
}
// expected-error @+1 {{'func.func' op expected argument names that are not empty}}
func.func @empty_argument_name(%w: tensor<4xf32> {relax.name = ""}) {
  return
}
// expected-error @+1 {{'func.func' op expected result names that are not empty}}
func.func @empty_result_name(%w: tensor<4xf32>) -> (tensor<4xf32> {relax.name = ""}) {
  return %w : tensor<4xf32>
}
// expected-error @+1 {{'func.func' op expected distinct element names, got 'x' twice}}
func.func @names_in_a_tuple(%p: tuple<tensor<4xf32>, tensor<4xf32>>
    {relax.name = "p", relax.bundled = [{relax.name = "x"}, {relax.name = "x"}]})
    attributes {relax.num_input = 0 : i64} {
  return
}

// -----

// A name alone makes no transform function.
// expected-error @+1 {{'func.func' op expected relax.transform_for = @main, whose transform function it is by name, got none}}
func.func @main_transform_params(%w: tensor<4xf32>) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<4xf32>
}
func.func @main(%w: tensor<4xf32>) attributes {relax.num_input = 0 : i64} {
  return
}

// -----

// expected-error @+1 {{'func.func' op expected another function for relax.transform_for, got @itself itself}}
func.func @itself(%w: tensor<4xf32>) attributes {relax.num_input = 1 : i64, relax.transform_for = @itself} {
  return
}
// expected-error @+1 {{'func.func' op expected a function that prepares no weights for relax.transform_for, got the transform function @two}}
func.func @one(%w: tensor<4xf32>) attributes {relax.num_input = 1 : i64, relax.transform_for = @two} {
  return
}
// expected-error @+1 {{'func.func' op expected a function that prepares no weights for relax.transform_for, got the transform function @one}}
func.func @two(%w: tensor<4xf32>) attributes {relax.num_input = 1 : i64, relax.transform_for = @one} {
  return
}
// expected-error @+1 {{'func.func' op expected a function of the module for relax.transform_for, got @nobody}}
func.func @missing(%w: tensor<4xf32>) attributes {relax.num_input = 1 : i64, relax.transform_for = @nobody} {
  return
}
// expected-error @+1 {{'func.func' op expected a public function for relax.transform_for, got the private @hidden}}
func.func @of_private(%w: tensor<4xf32>) attributes {relax.num_input = 1 : i64, relax.transform_for = @hidden} {
  return
}
func.func private @hidden(%w: tensor<4xf32>) attributes {relax.num_input = 1 : i64} {
  return
}
// expected-error @+1 {{'func.func' op expected a function with a body for relax.transform_for, got the declaration @declared}}
func.func @of_declaration(%w: tensor<4xf32>) attributes {relax.num_input = 1 : i64, relax.transform_for = @declared} {
  return
}
func.func private @declared(tensor<4xf32>) attributes {relax.num_input = 1 : i64}
// expected-error @+1 {{'func.func' op expected a function with relax.num_input for relax.transform_for, got @no_weights}}
func.func @of_no_weights(%w: tensor<4xf32>) attributes {relax.num_input = 1 : i64, relax.transform_for = @no_weights} {
  return
}
func.func @no_weights(%w: tensor<4xf32>) {
  return
}
// expected-error @+1 {{'func.func' op expected distinct functions for relax.transform_for, got @target twice}}
func.func @twice(%w: tensor<4xf32>) attributes {relax.num_input = 1 : i64, relax.transform_for = [@target, @target]} {
  return
}
// expected-error @+1 {{'func.func' op expected a public function with relax.transform_for, got a private one}}
func.func private @private(%w: tensor<4xf32>) attributes {relax.num_input = 1 : i64, relax.transform_for = @target} {
  return
}
// expected-error @+2 {{'func.func' op expected a body of a function with relax.transform_for, got a declaration}}
// expected-error @+1 {{'func.func' op expected a public function with relax.transform_for, got a private one}}
func.func private @declaration(tensor<4xf32>) attributes {relax.num_input = 1 : i64, relax.transform_for = @target}
func.func @target(%w: tensor<4xf32>) attributes {relax.num_input = 1 : i64} {
  return
}

// -----

func.func @first(%w: tensor<4xf32>) attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  return
}
// expected-error @+1 {{'func.func' op expected one transform function for @main, got @first and @second}}
func.func @second(%w: tensor<4xf32>) attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  return
}
func.func @main(%x: tensor<4xf32>) attributes {relax.num_input = 1 : i64} {
  return
}

// -----

// Weights by name: one is missing, one is too much, one has another type.
// expected-error @+2 {{'func.func' op expected a result for every weight of @by_name, got none named 'w'}}
// expected-error @+1 {{'func.func' op expected only weights of @by_name as results, got 'v'}}
func.func @prepares_by_name(%w: tensor<4xf32>) -> (tensor<4xf32> {relax.name = "v"})
    attributes {relax.transform_for = @by_name} {
  return %w : tensor<4xf32>
}
func.func @by_name(%w: tensor<4xf32> {relax.name = "w"}) attributes {relax.num_input = 0 : i64} {
  return
}
// expected-error@+1 {{'func.func' op expected result 'w' of type tensor<4xf16>, as @typed takes it, got tensor<4xf32>}}
func.func @prepares_typed(%w: tensor<4xf32>) -> (tensor<4xf32> {relax.name = "w"})
    attributes {relax.transform_for = @typed} {
  return %w : tensor<4xf32>
}
func.func @typed(%w: tensor<4xf16> {relax.name = "w"}) attributes {relax.num_input = 0 : i64} {
  return
}
// expected-error @+1 {{'func.func' op expected result 'b' of type tensor<2xf32>, as @tupled takes it, got tensor<4xf32>}}
func.func @prepares_tupled(%w: tensor<4xf32>) -> (tensor<4xf32> {relax.name = "b"}, tensor<4xf32> {relax.name = "a"})
    attributes {relax.transform_for = @tupled} {
  return %w, %w : tensor<4xf32>, tensor<4xf32>
}
func.func @tupled(%p: tuple<tensor<4xf32>, tensor<2xf32>>
    {relax.name = "p", relax.bundled = [{relax.name = "a"}, {relax.name = "b"}]})
    attributes {relax.num_input = 0 : i64} {
  return
}
// Results without names are weights by position, when they are as many.
// expected-error @+2 {{'func.func' op expected a result for every weight of @by_position, got none named 'v'}}
// expected-error @+1 {{'func.func' op expected only weights of @by_position as results, got 'output0'}}
func.func @prepares_by_position(%w: tensor<4xf32>) -> tensor<4xf32> attributes {relax.transform_for = @by_position} {
  return %w : tensor<4xf32>
}
func.func @by_position(%v: tensor<4xf32> {relax.name = "v"}, %w: tensor<4xf32> {relax.name = "w"})
    attributes {relax.num_input = 0 : i64} {
  return
}
func.func @prepares_as_many(%w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32> {relax.name = "w"})
    attributes {relax.transform_for = @as_many} {
  return %w, %w : tensor<4xf32>, tensor<4xf32>
}
func.func @as_many(%v: tensor<4xf32> {relax.name = "v"}, %w: tensor<4xf32> {relax.name = "w"})
    attributes {relax.num_input = 0 : i64} {
  return
}
