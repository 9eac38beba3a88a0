// RUN: relax-opt %s --relax-check-entries --split-input-file --verify-diagnostics | filecheck %s

// What can be compiled stays as it is.
// CHECK-LABEL: func.func @fine(
// CHECK-NEXT: return
func.func @fine(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{'func.func' op expected no recursion in compiled code, got the calls @main -> @main}}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@unknown {{expected a public function to compile, got none}}
func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @main(%p: !relax.param_provider) -> tensor<4xf32> {
// expected-error@+1 {{'relax.get_param' op expected a module to compile without lazy IO, weights are streamed anyway}}
  %0 = "relax.get_param"(%p) {index = 0 : i64, name = "w"} : (!relax.param_provider) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
// expected-error@+1 {{'memref.alloc' op expected an operation that relaxir compiles, got one of another dialect}}
  %m = memref.alloc() : memref<4xf32>
  return %x : tensor<4xf32>
}
