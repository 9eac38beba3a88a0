// RUN: relax-opt %s --split-input-file --verify-diagnostics
// What every op refuses: attributes, operands, encodings and devices (dialect/op.py, attributes.py, struct_info.py).

func.func @unknown_attribute(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.abs' op has no attribute named 'axis'}}
  %0 = "relax.abs"(%x) {axis = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @missing_attribute(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.flip' op expected attribute 'axis'}}
  %0 = "relax.flip"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @discardable_attributes_are_fine(%x: tensor<4xf32>) {
  %0 = "relax.abs"(%x) {relax.note = "mine"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @integer_attribute(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.flip' op expected an integer for attribute 'axis', got "last"}}
  %0 = "relax.flip"(%x) {axis = "last"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @boolean_is_no_integer(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.flip' op expected an integer for attribute 'axis', got true}}
  %0 = "relax.flip"(%x) {axis = true} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @boolean_attribute(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.sum' op expected a boolean for attribute 'keepdims', got 1 : i64}}
  %0 = "relax.sum"(%x) {keepdims = 1 : i64} : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @real_attribute(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.leaky_relu' op expected a number for attribute 'alpha', got "small"}}
  %0 = "relax.leaky_relu"(%x) {alpha = "small"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @string_attribute(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.hint_on_device' op expected a string for attribute 'vdevice', got 0 : i64}}
  %0 = "relax.hint_on_device"(%x) {vdevice = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @integers_attribute(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.permute_dims' op expected an i64 array for attribute 'axes', got [1, 0]}}
  %0 = "relax.permute_dims"(%x) {axes = [1, 0]} : (tensor<4x5xf32>) -> tensor<5x4xf32>
  return
}

// -----

func.func @integers_of_a_length(%x: tensor<1x1x4x4xf32>) {
// expected-error@+1 {{'relax.max_pool2d' op expected an i64 array of 2 for attribute 'pool_size', got array<i64: 2>}}
  %0 = "relax.max_pool2d"(%x) {pool_size = array<i64: 2>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x3x3xf32>
  return
}

// -----

func.func @dims_attribute() {
  // expected-error @+1 {{'relax.shape_value' op expected an array of integers and symbolic expressions for attribute 'value', got 4 : i64}}
  %0 = "relax.shape_value"() {value = 4 : i64} : () -> tensor<i64>
  return
}

// -----

func.func @dims_that_do_not_parse() {
  // expected-error @+1 {{'relax.shape_value' op expected an array of integers and symbolic expressions for attribute 'value', got ["n +"]}}
  %0 = "relax.shape_value"() {value = ["n +"]} : () -> tensor<i64>
  return
}

// -----

func.func @unknown_dims() {
  // expected-error @+1 {{'relax.shape_value' op expected an array of integers and symbolic expressions for attribute 'value', got ["?"]}}
  %0 = "relax.shape_value"() {value = ["?"]} : () -> tensor<i64>
  return
}

// -----

func.func @type_attribute(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.astype' op expected a type for attribute 'dtype', got "f16"}}
  %0 = "relax.astype"(%x) {dtype = "f16"} : (tensor<4xf32>) -> tensor<4xf16>
  return
}

// -----

func.func @scalar_attribute() {
  // expected-error @+1 {{'relax.full' op expected a number for attribute 'value', got "zero"}}
  %0 = "relax.full"() {value = "zero"} : () -> tensor<4xf32>
  return
}

// -----

func.func @elements_attribute() {
  // expected-error @+1 {{'relax.constant' op expected an elements attribute for attribute 'value', got [1]}}
  %0 = "relax.constant"() {value = [1]} : () -> tensor<1xi64>
  return
}

// -----

func.func @too_few_operands(%x: tensor<4xf32>) {
  // expected-error @+1 {{op expects exactly 2 operands, but got 1}}
  %0 = "relax.add"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @too_many_results(%x: tensor<4xf32>) {
  // expected-error @+1 {{op expects exactly 1 results, but got 2}}
  %0:2 = "relax.abs"(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @scalar_operand(%x: f32) {
  // expected-error @+1 {{'relax.abs' op expected a ranked tensor, got f32}}
  %0 = "relax.abs"(%x) : (f32) -> tensor<f32>
  return
}

// -----

func.func @unranked_operand(%x: tensor<*xf32>) {
  // expected-error @+1 {{'relax.abs' op expected a ranked tensor, got tensor<*xf32>}}
  %0 = "relax.abs"(%x) : (tensor<*xf32>) -> tensor<*xf32>
  return
}

// -----

func.func @memref_operand_of_an_op_that_only_checks(%x: memref<4xf32>) {
  // expected-error @+1 {{'relax.reshape' op expected a ranked tensor, got memref<4xf32>}}
  %0 = "relax.reshape"(%x) : (memref<4xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @wrong_result_shape(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.abs' op expected result tensor<4xf32>, got tensor<5xf32>}}
  %0 = "relax.abs"(%x) : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @wrong_result_dtype(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.isnan' op expected result tensor<4xi1>, got tensor<4xf32>}}
  %0 = "relax.isnan"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @wrong_result_symbol(%x: tensor<?xf32, {sym = ["n"]}>) {
  // expected-error @+1 {{'relax.abs' op expected result tensor<nxf32>, got tensor<mxf32>}}
  %0 = "relax.abs"(%x) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["m"]}>
  return
}

// -----

// The canonical forms are compared: `n + n` is `n * 2`.
func.func @equal_symbols(%x: tensor<?xf32, {sym = ["n + n"]}>) {
  %0 = "relax.abs"(%x) : (tensor<?xf32, {sym = ["n + n"]}>) -> tensor<?xf32, {sym = ["2 * n"]}>
  return
}

// -----

func.func @encoding_is_no_dictionary(%x: tensor<4xf32, "cuda:0">) {
  // expected-error @+1 {{'relax.abs' op expected a dictionary encoding with 'sym' or 'vdevice', got "cuda:0"}}
  %0 = "relax.abs"(%x) : (tensor<4xf32, "cuda:0">) -> tensor<4xf32>
  return
}

// -----

func.func @unknown_encoding(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.abs' op expected only 'sym' and 'vdevice' in a tensor encoding, got 'layout'}}
  %0 = "relax.abs"(%x) : (tensor<4xf32>) -> tensor<4xf32, {layout = "nchw"}>
  return
}

// -----

func.func @vdevice_is_no_string(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.abs' op expected a string for 'vdevice', got 0 : i64}}
  %0 = "relax.abs"(%x) : (tensor<4xf32>) -> tensor<4xf32, {vdevice = 0 : i64}>
  return
}

// -----

func.func @sym_is_no_array(%x: tensor<?xf32>) {
  // expected-error @+1 {{'relax.abs' op expected an array of strings for 'sym', got "n"}}
  %0 = "relax.abs"(%x) : (tensor<?xf32>) -> tensor<?xf32, {sym = "n"}>
  return
}

// -----

func.func @sym_counts_dynamic_dimensions(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'relax.abs' op expected one 'sym' expression for each of 1 dynamic dimensions, got 2}}
  %0 = "relax.abs"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32, {sym = ["n", "m"]}>
  return
}

// -----

func.func @sym_is_constant(%x: tensor<?xf32>) {
  // expected-error @+1 {{'relax.abs' op expected a symbolic expression in 'sym', got the constant "2 + 2"}}
  %0 = "relax.abs"(%x) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["2 + 2"]}>
  return
}

// -----

func.func @sym_does_not_parse(%x: tensor<?xf32>) {
  // expected-error @+1 {{'relax.abs' op expected a symbolic dimension such as 'n * 2 + 1', got 'n ** 2'}}
  %0 = "relax.abs"(%x) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["n ** 2"]}>
  return
}

// -----

func.func @sym_divides_by_zero(%x: tensor<?xf32>) {
  // expected-error @+1 {{'relax.abs' op expected a symbolic dimension such as 'n * 2 + 1', got 'n // 0'}}
  %0 = "relax.abs"(%x) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["n // 0"]}>
  return
}

// -----

func.func @two_devices(%x: tensor<4xf32, {vdevice = "cpu:0"}>, %y: tensor<4xf32, {vdevice = "cuda:0"}>) {
  // expected-error @+1 {{'relax.add' op expected all tensors on one device, got 'cpu:0' and 'cuda:0'}}
  %0 = "relax.add"(%x, %y) : (tensor<4xf32, {vdevice = "cpu:0"}>, tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32>
  return
}

// -----

module attributes {relax.vdevices = ["cpu:0"]} {
  func.func @device_that_the_module_lacks(%x: tensor<4xf32, {vdevice = "cuda:0"}>) {
    // expected-error @+1 {{'relax.abs' op expected a device of relax.vdevices, got 'cuda:0'}}
    %0 = "relax.abs"(%x) : (tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32, {vdevice = "cuda:0"}>
    return
  }
}

// -----

module attributes {relax.vdevices = "cpu:0"} {
  func.func @devices_are_no_array(%x: tensor<4xf32, {vdevice = "cpu:0"}>) {
    // expected-error @+1 {{'relax.abs' op expected an array of strings for relax.vdevices, got "cpu:0"}}
    %0 = "relax.abs"(%x) : (tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32, {vdevice = "cpu:0"}>
    return
  }
}

// -----

func.func @index_tensors(%x: tensor<4xindex>) {
  // expected-error @+1 {{'relax.flip' op expected tensors of integers or floats, got tensor<4xindex>}}
  %0 = "relax.flip"(%x) {axis = 0 : i64} : (tensor<4xindex>) -> tensor<4xindex>
  return
}
