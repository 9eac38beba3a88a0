// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @constant_type() {
  // expected-error @+1 {{'relax.constant' op expected result tensor<2xf32>, got tensor<3xf32>}}
  %0 = "relax.constant"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<3xf32>
  return
}

// -----

func.func @constant_vector() {
  // expected-error @+1 {{'relax.constant' op expected a ranked tensor, got vector<2xf32>}}
  %0 = "relax.constant"() {value = dense<1.0> : vector<2xf32>} : () -> tensor<2xf32>
  return
}

// -----

func.func @full_unknown() {
  // expected-error @+1 {{'relax.full' op expected result of known dimensions, got tensor<?xf32>}}
  %0 = "relax.full"() {value = 1.0 : f64} : () -> tensor<?xf32>
  return
}

// -----

func.func @full_with_a_fraction() {
  // expected-error @+1 {{'relax.full' op expected a value that i32 can hold, got 0.5}}
  %0 = "relax.full"() {value = 0.5 : f64} : () -> tensor<4xi32>
  return
}

// -----

func.func @full_out_of_range() {
  // expected-error @+1 {{'relax.full' op expected a value that i8 can hold, got 128}}
  %0 = "relax.full"() {value = 128 : i64} : () -> tensor<4xi8>
  return
}

// -----

func.func @full_truth() {
  // expected-error @+1 {{'relax.full' op expected a value that i1 can hold, got 2}}
  %0 = "relax.full"() {value = 2 : i64} : () -> tensor<4xi1>
  return
}

// -----

func.func @full_infinite() {
  // expected-error @+1 {{'relax.full' op expected a value that i64 can hold, got inf}}
  %0 = "relax.full"() {value = 0x7FF0000000000000 : f64} : () -> tensor<4xi64>
  return
}

// -----

func.func @arange_rank() {
  // expected-error @+1 {{'relax.arange' op expected result of rank 1, got 2}}
  %0 = "relax.arange"() {start = [0], end = [4], step = [1]} : () -> tensor<4x1xi64>
  return
}

// -----

func.func @arange_truth_values() {
  // expected-error @+1 {{'relax.arange' op expected a number as result, got i1}}
  %0 = "relax.arange"() {start = [0], end = [4], step = [1]} : () -> tensor<4xi1>
  return
}

// -----

func.func @arange_start() {
  // expected-error @+1 {{'relax.arange' op expected one expression for attribute 'start', got 2}}
  %0 = "relax.arange"() {start = [0, 0], end = [4], step = [1]} : () -> tensor<4xi64>
  return
}

// -----

func.func @arange_step() {
  // expected-error @+1 {{'relax.arange' op expected a step other than 0}}
  %0 = "relax.arange"() {start = [0], end = [4], step = [0]} : () -> tensor<4xi64>
  return
}

// -----

func.func @arange_length() {
  // expected-error @+1 {{'relax.arange' op expected a result of 3 elements, got tensor<4xi64>}}
  %0 = "relax.arange"() {start = [0], end = [5], step = [2]} : () -> tensor<4xi64>
  return
}

// -----

func.func @arange_empty() {
  // expected-error @+1 {{'relax.arange' op expected a result of 0 elements, got tensor<4xi64>}}
  %0 = "relax.arange"() {start = [5], end = [0], step = [1]} : () -> tensor<4xi64>
  return
}

// -----

func.func @arange_symbolic() {
  // expected-error @+1 {{'relax.arange' op expected a result of n elements, got tensor<mxi64>}}
  %0 = "relax.arange"() {start = [0], end = ["n"], step = [1]} : () -> tensor<?xi64, {sym = ["m"]}>
  return
}

// -----

func.func @shape_value_rank() {
  // expected-error @+1 {{'relax.shape_value' op expected result of rank 0, got 1}}
  %0 = "relax.shape_value"() {value = ["n"]} : () -> tensor<1xi64>
  return
}

// -----

func.func @shape_value_count() {
  // expected-error @+1 {{'relax.shape_value' op expected one expression for attribute 'value', got 2}}
  %0 = "relax.shape_value"() {value = ["n", "m"]} : () -> tensor<i64>
  return
}

// -----

func.func @shape_value_truth_value() {
  // expected-error @+1 {{'relax.shape_value' op expected a number as result, got i1}}
  %0 = "relax.shape_value"() {value = ["n"]} : () -> tensor<i1>
  return
}

// -----

func.func @tril_rank(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.tril' op expected an operand of rank 2 or more, got 1}}
  %0 = "relax.tril"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @triu_rank(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.triu' op expected an operand of rank 2 or more, got 1}}
  %0 = "relax.triu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}
