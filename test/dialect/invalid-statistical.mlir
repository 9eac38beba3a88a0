// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @sum_of_truth_values(%x: tensor<4xi1>) {
  // expected-error @+1 {{'relax.sum' op expected a number as operand, got i1}}
  %0 = "relax.sum"(%x) : (tensor<4xi1>) -> tensor<i1>
  return
}

// -----

func.func @prod_of_truth_values(%x: tensor<4xi1>) {
  // expected-error @+1 {{'relax.prod' op expected a number as operand, got i1}}
  %0 = "relax.prod"(%x) : (tensor<4xi1>) -> tensor<i1>
  return
}

// -----

func.func @mean_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.mean' op expected a floating-point operand, got i32}}
  %0 = "relax.mean"(%x) : (tensor<4xi32>) -> tensor<i32>
  return
}

// -----

func.func @variance_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.variance' op expected a floating-point operand, got i32}}
  %0 = "relax.variance"(%x) : (tensor<4xi32>) -> tensor<i32>
  return
}

// -----

func.func @sum_axis(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.sum' op expected axis in [-2, 2), got 2}}
  %0 = "relax.sum"(%x) {axis = array<i64: 2>} : (tensor<4x5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @prod_axis(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.prod' op expected axis in [-2, 2), got 2}}
  %0 = "relax.prod"(%x) {axis = array<i64: 2>} : (tensor<4x5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @max_axis(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.max' op expected axis in [-2, 2), got 2}}
  %0 = "relax.max"(%x) {axis = array<i64: 2>} : (tensor<4x5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @min_axis(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.min' op expected axis in [-2, 2), got 2}}
  %0 = "relax.min"(%x) {axis = array<i64: 2>} : (tensor<4x5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @mean_axis(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.mean' op expected axis in [-2, 2), got 2}}
  %0 = "relax.mean"(%x) {axis = array<i64: 2>} : (tensor<4x5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @variance_axis(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.variance' op expected axis in [-2, 2), got 2}}
  %0 = "relax.variance"(%x) {axis = array<i64: 2>} : (tensor<4x5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @axis_twice(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.max' op expected distinct axis, got [1, -1]}}
  %0 = "relax.max"(%x) {axis = array<i64: 1, -1>} : (tensor<4x5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @keepdims(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.sum' op expected result tensor<4x1xf32>, got tensor<4xf32>}}
  %0 = "relax.sum"(%x) {axis = array<i64: 1>, keepdims = true} : (tensor<4x5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @cumsum_of_truth_values(%x: tensor<4xi1>) {
  // expected-error @+1 {{'relax.cumsum' op expected a number as operand, got i1}}
  %0 = "relax.cumsum"(%x) {axis = 0 : i64} : (tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @cumsum_axis(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.cumsum' op expected axis in [-1, 1), got 1}}
  %0 = "relax.cumsum"(%x) {axis = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @cumprod_of_truth_values(%x: tensor<4xi1>) {
  // expected-error @+1 {{'relax.cumprod' op expected a number as operand, got i1}}
  %0 = "relax.cumprod"(%x) {axis = 0 : i64} : (tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @cummax_of_truth_values(%x: tensor<4xi1>) {
  // expected-error @+1 {{'relax.cummax' op expected a number as operand, got i1}}
  %0 = "relax.cummax"(%x) {axis = 0 : i64} : (tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @cummin_axis(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.cummin' op expected axis in [-1, 1), got -2}}
  %0 = "relax.cummin"(%x) {axis = -2 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}
