// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{'relax.call_extern' op expected the name of a C function, got 'acme::pair'}}
  %0 = "relax.call_extern"(%x) {symbol = "acme::pair",
     operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>,
     resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
      : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{'relax.call_extern' op expected at least one result, got none}}
  "relax.call_extern"(%x) {symbol = "f",
     operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>,
     resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
      : (tensor<3xf32>) -> ()
  return %x : tensor<3xf32>
}

// -----

func.func @f(%x: tensor<3xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{'relax.call_extern' op expected result of known dimensions, got tensor<?xf32>}}
  %0 = "relax.call_extern"(%x) {symbol = "f",
     operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>,
     resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
      : (tensor<3xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @f(%x: tensor<3xi4>) -> tensor<3xf32> {
  // expected-error @+1 {{'relax.call_extern' op expected elements of whole bytes for a function of another library, got i4}}
  %0 = "relax.call_extern"(%x) {symbol = "f",
     operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>,
     resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
      : (tensor<3xi4>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{expected an array of integers, floats, truth values and strings for attribute 'arguments', got [@f]}}
  %0 = "relax.call_extern"(%x) {symbol = "f", arguments = [@f],
     operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>,
     resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
      : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{'relax.call_extern' op expected attribute 'symbol'}}
  %0 = "relax.call_extern"(%x) {library = "libacme.so",
     operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>,
     resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
      : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @f(%x: tensor<i64>) -> tensor<3xf32> {
  // expected-error @+1 {{'relax.call_extern' op expected an operand for each of 2 arguments that are unit, got 1}}
  %0 = "relax.call_extern"(%x) {symbol = "f", arguments = [unit, 2, unit],
     operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>,
     resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
      : (tensor<i64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @f(%x: tensor<3xi64>) -> tensor<3xf32> {
  // expected-error @+1 {{'relax.call_extern' op expected argument of rank 0, got 1}}
  %0 = "relax.call_extern"(%x) {symbol = "f", arguments = [unit],
     operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>,
     resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
      : (tensor<3xi64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @f(%x: tensor<bf16>) -> tensor<3xf32> {
  // expected-error @+1 {{'relax.call_extern' op expected an integer, f32 or f64 as argument, got bf16}}
  %0 = "relax.call_extern"(%x) {symbol = "f", arguments = [unit],
     operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>,
     resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
      : (tensor<bf16>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
