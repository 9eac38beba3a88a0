// RUN: relax-opt %s --relax-to-linalg --split-input-file --verify-diagnostics

module attributes {relax.vdevices = ["cpu:0", "cuda:0"]} {
  func.func @main(%x: tensor<3xf32>) -> tensor<3xf32, {vdevice = "cuda:0"}> {
// expected-error@+1 {{'relax.to_vdevice' op expected a copy within one kind of device, got one from 'cpu' to 'cuda:0'}}
    %0 = "relax.to_vdevice"(%x) {vdevice = "cuda:0"} : (tensor<3xf32>) -> tensor<3xf32, {vdevice = "cuda:0"}>
    return %0 : tensor<3xf32, {vdevice = "cuda:0"}>
  }
}

// -----

func.func @main(%p: !relax.param_provider) -> tensor<3xf32> {
// expected-error@+1 {{'relax.get_param' op expected a module to compile without lazy IO, weights are streamed anyway}}
  %0 = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @main() -> tensor<?xf32, {sym = ["n"]}> {
  // expected-error@+1 {{'relax.full' op expected a dimension that arguments or relax.match_cast define, got 'n'}}
  %0 = "relax.full"() {value = 1.0 : f64} : () -> tensor<?xf32, {sym = ["n"]}>
  return %0 : tensor<?xf32, {sym = ["n"]}>
}

// -----

func.func @main(%x: tensor<4x2xf32>) -> tensor<2xf32> {
  %i = "relax.constant"() {value = dense<4> : tensor<i64>} : () -> tensor<i64>
  // expected-error@+1 {{'relax.take' op expected indices in [-4, 4), got 4}}
  %0 = "relax.take"(%x, %i) : (tensor<4x2xf32>, tensor<i64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// expected-error@+1 {{'func.func' op expected tensors and scalars, got tuple<tensor<4xf32>>: relax-expand-tuple-arguments takes tuples away where it can}}
func.func @main(%p: tuple<tensor<4xf32>>) -> tensor<4xf32> {
  %0 = builtin.unrealized_conversion_cast %p : tuple<tensor<4xf32>> to tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'builtin.unrealized_conversion_cast' op expected tensors and scalars, got tuple<tensor<4xf32>>: relax-expand-tuple-arguments takes tuples away where it can}}
  %0 = builtin.unrealized_conversion_cast %x : tensor<4xf32> to tuple<tensor<4xf32>>
  %1 = builtin.unrealized_conversion_cast %0 : tuple<tensor<4xf32>> to tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func @without_data() -> tensor<2xf32> {
  // expected-error@+1 {{'arith.constant' op expected the data of dense_resource<elsewhere> : tensor<2xf32> in the module, got none}}
  %0 = arith.constant dense_resource<elsewhere> : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @too_short() -> tensor<2xf32> {
  // expected-error@+1 {{'relax.constant' op expected 8 bytes of tensor data, got 4}}
  %0 = "relax.constant"() {value = dense_resource<short> : tensor<2xf32>} : () -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

{-# dialect_resources: { builtin: { short: "0x040000000000803F" } } #-}
