// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @abs_of_truth_values(%x: tensor<4xi1>) {
  // expected-error @+1 {{'relax.abs' op expected a number as operand, got i1}}
  %0 = "relax.abs"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @negative_of_truth_values(%x: tensor<4xi1>) {
  // expected-error @+1 {{'relax.negative' op expected a number as operand, got i1}}
  %0 = "relax.negative"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @sign_of_truth_values(%x: tensor<4xi1>) {
  // expected-error @+1 {{'relax.sign' op expected a number as operand, got i1}}
  %0 = "relax.sign"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @square_of_truth_values(%x: tensor<4xi1>) {
  // expected-error @+1 {{'relax.square' op expected a number as operand, got i1}}
  %0 = "relax.square"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @clip_of_truth_values(%x: tensor<4xi1>) {
  // expected-error @+1 {{'relax.clip' op expected a number as operand, got i1}}
  %0 = "relax.clip"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @ceil_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.ceil' op expected a floating-point operand, got i32}}
  %0 = "relax.ceil"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @floor_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.floor' op expected a floating-point operand, got i32}}
  %0 = "relax.floor"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @round_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.round' op expected a floating-point operand, got i32}}
  %0 = "relax.round"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @trunc_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.trunc' op expected a floating-point operand, got i32}}
  %0 = "relax.trunc"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @acos_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.acos' op expected a floating-point operand, got i32}}
  %0 = "relax.acos"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @acosh_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.acosh' op expected a floating-point operand, got i32}}
  %0 = "relax.acosh"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @asin_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.asin' op expected a floating-point operand, got i32}}
  %0 = "relax.asin"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @asinh_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.asinh' op expected a floating-point operand, got i32}}
  %0 = "relax.asinh"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @atan_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.atan' op expected a floating-point operand, got i32}}
  %0 = "relax.atan"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @atanh_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.atanh' op expected a floating-point operand, got i32}}
  %0 = "relax.atanh"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @cosh_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.cosh' op expected a floating-point operand, got i32}}
  %0 = "relax.cosh"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @sinh_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.sinh' op expected a floating-point operand, got i32}}
  %0 = "relax.sinh"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @tan_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.tan' op expected a floating-point operand, got i32}}
  %0 = "relax.tan"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @exp2_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.exp2' op expected a floating-point operand, got i32}}
  %0 = "relax.exp2"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @expm1_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.expm1' op expected a floating-point operand, got i32}}
  %0 = "relax.expm1"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @log10_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.log10' op expected a floating-point operand, got i32}}
  %0 = "relax.log10"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @log1p_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.log1p' op expected a floating-point operand, got i32}}
  %0 = "relax.log1p"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @log2_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.log2' op expected a floating-point operand, got i32}}
  %0 = "relax.log2"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @cos_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.cos' op expected a floating-point operand, got i32}}
  %0 = "relax.cos"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @sin_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.sin' op expected a floating-point operand, got i32}}
  %0 = "relax.sin"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @erf_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.erf' op expected a floating-point operand, got i32}}
  %0 = "relax.erf"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @exp_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.exp' op expected a floating-point operand, got i32}}
  %0 = "relax.exp"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @log_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.log' op expected a floating-point operand, got i32}}
  %0 = "relax.log"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @reciprocal_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.reciprocal' op expected a floating-point operand, got i32}}
  %0 = "relax.reciprocal"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @rsqrt_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.rsqrt' op expected a floating-point operand, got i32}}
  %0 = "relax.rsqrt"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @sigmoid_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.sigmoid' op expected a floating-point operand, got i32}}
  %0 = "relax.sigmoid"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @sqrt_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.sqrt' op expected a floating-point operand, got i32}}
  %0 = "relax.sqrt"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @tanh_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.tanh' op expected a floating-point operand, got i32}}
  %0 = "relax.tanh"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @isfinite_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.isfinite' op expected a floating-point operand, got i32}}
  %0 = "relax.isfinite"(%x) : (tensor<4xi32>) -> tensor<4xi1>
  return
}

// -----

func.func @isinf_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.isinf' op expected a floating-point operand, got i32}}
  %0 = "relax.isinf"(%x) : (tensor<4xi32>) -> tensor<4xi1>
  return
}

// -----

func.func @isnan_of_integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.isnan' op expected a floating-point operand, got i32}}
  %0 = "relax.isnan"(%x) : (tensor<4xi32>) -> tensor<4xi1>
  return
}

// -----

func.func @bitwise_not_of_floats(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.bitwise_not' op expected an integer operand, got f32}}
  %0 = "relax.bitwise_not"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @logical_not_gives_truth_values(%x: tensor<4xi8>) {
  // expected-error @+1 {{'relax.logical_not' op expected result tensor<4xi1>, got tensor<4xi8>}}
  %0 = "relax.logical_not"(%x) : (tensor<4xi8>) -> tensor<4xi8>
  return
}

// -----

func.func @clip_limit_with_a_fraction(%x: tensor<4xi32>) {
  // expected-error @+1 {{'relax.clip' op expected a min that i32 can hold, got 0.5}}
  %0 = "relax.clip"(%x) {min = 0.5 : f64} : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @clip_limit_out_of_range(%x: tensor<4xi8>) {
  // expected-error @+1 {{'relax.clip' op expected a max that i8 can hold, got 300}}
  %0 = "relax.clip"(%x) {max = 300 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  return
}

// -----

func.func @clip_limit_negative_for_unsigned(%x: tensor<4xui8>) {
  // expected-error @+1 {{'relax.clip' op expected a min that ui8 can hold, got -1}}
  %0 = "relax.clip"(%x) {min = -1 : i64} : (tensor<4xui8>) -> tensor<4xui8>
  return
}
