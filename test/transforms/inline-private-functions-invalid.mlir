// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-inline-private-functions

// expected-error@+1 {{'func.func' op expected no recursion in a private function, got @self calling itself}}
func.func private @self(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @self(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @odd(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @even(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// expected-error@+1 {{'func.func' op expected no recursion in a private function, got @even calling itself}}
func.func private @even(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @odd(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A public function may be recursive: it is not inlined.
func.func @public(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @public(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
