// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @dtypes_differ(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @+1 {{'relax.add' op expected operands of one dtype, got f32 and f16}}
  %0 = "relax.add"(%x, %y) : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @shapes_do_not_broadcast(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @+1 {{'relax.add' op expected broadcastable shapes, got [4] and [5]}}
  %0 = "relax.add"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @symbols_do_not_broadcast(%x: tensor<?xf32, {sym = ["n"]}>, %y: tensor<?xf32, {sym = ["m"]}>) {
  // expected-error @+1 {{'relax.multiply' op expected broadcastable shapes, got [n] and [m]}}
  %0 = "relax.multiply"(%x, %y) : (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["m"]}>)
      -> tensor<?xf32, {sym = ["n"]}>
  return
}

// -----

func.func @constant_and_symbol_do_not_broadcast(%x: tensor<?xf32, {sym = ["n"]}>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'relax.subtract' op expected broadcastable shapes, got [n] and [4]}}
  %0 = "relax.subtract"(%x, %y) : (tensor<?xf32, {sym = ["n"]}>, tensor<4xf32>) -> tensor<?xf32, {sym = ["n"]}>
  return
}

// -----

func.func @add_of_truth_values(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @+1 {{'relax.add' op expected a number as operand, got i1}}
  %0 = "relax.add"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @subtract_of_truth_values(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @+1 {{'relax.subtract' op expected a number as operand, got i1}}
  %0 = "relax.subtract"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @multiply_of_truth_values(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @+1 {{'relax.multiply' op expected a number as operand, got i1}}
  %0 = "relax.multiply"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @divide_of_truth_values(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @+1 {{'relax.divide' op expected a number as operand, got i1}}
  %0 = "relax.divide"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @floor_divide_of_truth_values(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @+1 {{'relax.floor_divide' op expected a number as operand, got i1}}
  %0 = "relax.floor_divide"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @fmod_of_truth_values(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @+1 {{'relax.fmod' op expected a number as operand, got i1}}
  %0 = "relax.fmod"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @mod_of_truth_values(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @+1 {{'relax.mod' op expected a number as operand, got i1}}
  %0 = "relax.mod"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @power_of_truth_values(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @+1 {{'relax.power' op expected a number as operand, got i1}}
  %0 = "relax.power"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @add_of_complex(%x: tensor<4xcomplex<f32>>, %y: tensor<4xcomplex<f32>>) {
  // expected-error @+1 {{'relax.add' op expected a number as operand, got complex<f32>}}
  %0 = "relax.add"(%x, %y) : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return
}

// -----

func.func @bitwise_and_of_floats(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'relax.bitwise_and' op expected an integer operand, got f32}}
  %0 = "relax.bitwise_and"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @bitwise_or_of_floats(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'relax.bitwise_or' op expected an integer operand, got f32}}
  %0 = "relax.bitwise_or"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @bitwise_xor_of_floats(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'relax.bitwise_xor' op expected an integer operand, got f32}}
  %0 = "relax.bitwise_xor"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @left_shift_of_floats(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'relax.left_shift' op expected an integer operand, got f32}}
  %0 = "relax.left_shift"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @right_shift_of_floats(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'relax.right_shift' op expected an integer operand, got f32}}
  %0 = "relax.right_shift"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @shift_of_truth_values(%x: tensor<4xi1>, %y: tensor<4xi1>) {
  // expected-error @+1 {{'relax.left_shift' op expected a number as operand, got i1}}
  %0 = "relax.left_shift"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @equal_gives_truth_values(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'relax.equal' op expected result tensor<4xi1>, got tensor<4xf32>}}
  %0 = "relax.equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @less_gives_truth_values(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'relax.less' op expected result tensor<4xi1>, got tensor<4xf32>}}
  %0 = "relax.less"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @comparison_of_two_dtypes(%x: tensor<4xi32>, %y: tensor<4xi64>) {
  // expected-error @+1 {{'relax.greater' op expected operands of one dtype, got i32 and i64}}
  %0 = "relax.greater"(%x, %y) : (tensor<4xi32>, tensor<4xi64>) -> tensor<4xi1>
  return
}

// -----

func.func @logical_of_two_dtypes(%x: tensor<4xi1>, %y: tensor<4xi8>) {
  // expected-error @+1 {{'relax.logical_and' op expected operands of one dtype, got i1 and i8}}
  %0 = "relax.logical_and"(%x, %y) : (tensor<4xi1>, tensor<4xi8>) -> tensor<4xi1>
  return
}

// -----

func.func @maximum_shape(%x: tensor<2x1xf32>, %y: tensor<3xf32>) {
  // expected-error @+1 {{'relax.maximum' op expected result tensor<2x3xf32>, got tensor<3xf32>}}
  %0 = "relax.maximum"(%x, %y) : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @minimum_shape(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  // expected-error @+1 {{'relax.minimum' op expected broadcastable shapes, got [2] and [3]}}
  %0 = "relax.minimum"(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @not_equal_gives_truth_values(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'relax.not_equal' op expected result tensor<4xi1>, got tensor<4xf32>}}
  %0 = "relax.not_equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @less_equal_gives_truth_values(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'relax.less_equal' op expected result tensor<4xi1>, got tensor<4xf32>}}
  %0 = "relax.less_equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @greater_equal_gives_truth_values(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'relax.greater_equal' op expected result tensor<4xi1>, got tensor<4xf32>}}
  %0 = "relax.greater_equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @logical_or_of_two_dtypes(%x: tensor<4xi1>, %y: tensor<4xi8>) {
  // expected-error @+1 {{'relax.logical_or' op expected operands of one dtype, got i1 and i8}}
  %0 = "relax.logical_or"(%x, %y) : (tensor<4xi1>, tensor<4xi8>) -> tensor<4xi1>
  return
}

// -----

func.func @logical_xor_of_two_dtypes(%x: tensor<4xi1>, %y: tensor<4xi8>) {
  // expected-error @+1 {{'relax.logical_xor' op expected operands of one dtype, got i1 and i8}}
  %0 = "relax.logical_xor"(%x, %y) : (tensor<4xi1>, tensor<4xi8>) -> tensor<4xi1>
  return
}
