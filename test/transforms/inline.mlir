// RUN: relax-opt %s --split-input-file --relax-inline="functions=layer,@public" | filecheck %s
// RUN: relax-opt %s --split-input-file --relax-inline="functions=layer,@public" \
// RUN:     --relax-inline="functions=layer,@public" | filecheck %s

// Calls of the named functions are inlined wherever they are, through other functions and several levels.
// CHECK-LABEL: @levels
// CHECK-NEXT:    %0 = "relax.exp"(%arg0)
// CHECK-NEXT:    %1 = scf.if
// CHECK-NEXT:      %3 = "relax.exp"(%0)
// CHECK-NEXT:      %4 = "relax.tanh"(%3)
// CHECK-NEXT:      scf.yield %4
// CHECK:         %2 = call @other(%1)
// CHECK-NEXT:    return %2
// CHECK:       func.func private @layer
// CHECK:       func.func @public
// CHECK-NEXT:    %0 = "relax.exp"(%arg0)
// CHECK-NEXT:    "relax.tanh"(%0)
// CHECK:       func.func private @other
// CHECK-NEXT:    "relax.exp"
func.func @levels(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %0 = call @layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = scf.if %c -> tensor<4xf32> {
    %3 = func.call @public(%0) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  } else {
    scf.yield %0 : tensor<4xf32>
  }
  %2 = call @other(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @public(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Private functions stay, whether or not something still refers to them: symbol-dce erases them, and a second run finds
// them.
// CHECK-LABEL: @referred
// CHECK-NEXT:    return %arg0
// CHECK:       func.func private @layer
// CHECK:       func.func @public
// CHECK:       func.func private @unused
func.func @referred(%x: tensor<4xf32>) -> tensor<4xf32> attributes {keep = [@layer]} {
  %0 = call @layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @public(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// A recursion beside the named functions does no harm.
// CHECK-LABEL: @beside
// CHECK-NEXT:    call @beside(%arg0)
func.func @beside(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @beside(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @public(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
