// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @condition_is_no_truth_value(%x: tensor<4xi8>, %y: tensor<4xf32>, %z: tensor<4xf32>) {
  // expected-error @+1 {{'relax.where' op expected an i1 condition, got i8}}
  %0 = "relax.where"(%x, %y, %z) : (tensor<4xi8>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @branches_of_two_dtypes(%x: tensor<4xi1>, %y: tensor<4xf32>, %z: tensor<4xf16>) {
  // expected-error @+1 {{'relax.where' op expected operands of one dtype, got f32 and f16}}
  %0 = "relax.where"(%x, %y, %z) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @three_shapes(%x: tensor<2xi1>, %y: tensor<3xf32>, %z: tensor<1xf32>) {
  // expected-error @+1 {{'relax.where' op expected broadcastable shapes, got [2] and [3] and [1]}}
  %0 = "relax.where"(%x, %y, %z) : (tensor<2xi1>, tensor<3xf32>, tensor<1xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @argmax_axis(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.argmax' op expected axis in [-2, 2), got 2}}
  %0 = "relax.argmax"(%x) {axis = 2 : i64} : (tensor<4x5xf32>) -> tensor<4xi64>
  return
}

// -----

func.func @argmin_axis(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.argmin' op expected axis in [-2, 2), got 2}}
  %0 = "relax.argmin"(%x) {axis = 2 : i64} : (tensor<4x5xf32>) -> tensor<4xi64>
  return
}

// -----

func.func @index_is_i64(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.argmax' op expected result tensor<4xi64>, got tensor<4xi32>}}
  %0 = "relax.argmax"(%x) {axis = -1 : i64} : (tensor<4x5xf32>) -> tensor<4xi32>
  return
}

// -----

func.func @scalar_has_no_axis(%x: tensor<f32>) {
  // expected-error @+1 {{'relax.argmin' op expected axis in [0, 0), got 0}}
  %0 = "relax.argmin"(%x) {axis = 0 : i64} : (tensor<f32>) -> tensor<i64>
  return
}

// -----

func.func @argsort_axis(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.argsort' op expected axis in [-2, 2), got 2}}
  %0 = "relax.argsort"(%x) {axis = 2 : i64} : (tensor<4x5xf32>) -> tensor<4x5xi64>
  return
}

// -----

func.func @argsort_is_i64(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.argsort' op expected result tensor<4x5xi64>, got tensor<4x5xf32>}}
  %0 = "relax.argsort"(%x) {axis = 0 : i64} : (tensor<4x5xf32>) -> tensor<4x5xf32>
  return
}
