// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-inline-private-functions | filecheck %s

// Recursive private functions stay, and so do calls of them; everything else is inlined, into them as well.
// CHECK-LABEL: @direct
// CHECK-NEXT:    %0 = call @self(%arg0)
// CHECK-NEXT:    %1 = "relax.exp"(%0)
// CHECK-NEXT:    return %1
// CHECK:       func.func private @self
// CHECK-NEXT:    %0 = "relax.exp"(%arg0)
// CHECK-NEXT:    %1 = call @self(%0)
// CHECK-NEXT:    return %1
// CHECK-NOT:   @helper
func.func @direct(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @self(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @helper(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
// expected-warning@+1 {{'func.func' op is recursive, calls of @self are not inlined}}
func.func private @self(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @helper(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @self(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Functions that call each other; one that only calls a recursive one is inlined.
// CHECK-LABEL: @mutual
// CHECK-NEXT:    %0 = call @even(%arg0)
// CHECK-NEXT:    return %0
// CHECK:       func.func private @odd
// CHECK-NEXT:    call @even
// CHECK:       func.func private @even
// CHECK-NEXT:    call @odd
// CHECK-NOT:   @outside
func.func @mutual(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @outside(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @outside(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @even(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// expected-warning@+1 {{'func.func' op is recursive, calls of @odd are not inlined}}
func.func private @odd(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @even(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// expected-warning@+1 {{'func.func' op is recursive, calls of @even are not inlined}}
func.func private @even(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @odd(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A public function may be recursive without a word: it would not be inlined. A recursion that nothing reaches goes.
// CHECK-LABEL: @public
// CHECK-NEXT:    call @public
// CHECK-NOT:   @unreached
func.func @public(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @public(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @unreached(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @unreached(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
