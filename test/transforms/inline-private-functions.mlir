// RUN: relax-opt %s --split-input-file --relax-inline-private-functions | filecheck %s

// Every call gets its own copy, through several levels; the private functions go.
// CHECK-LABEL: @levels(%arg0: tensor<2x4xf32>, %arg1: tensor<4x4xf32>)
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg1)
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %0)
// CHECK-NEXT:    %2 = "relax.permute_dims"(%arg1)
// CHECK-NEXT:    %3 = "relax.matmul"(%1, %2)
// CHECK-NEXT:    return %3, %arg0
// CHECK-NOT:   private
func.func private @transposed(%w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %t = "relax.permute_dims"(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %t : tensor<4x4xf32>
}
func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %t = call @transposed(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = "relax.matmul"(%x, %t) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y, %x : tensor<2x4xf32>, tensor<2x4xf32>
}
func.func @levels(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0:2 = call @layer(%x, %w) : (tensor<2x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %1:2 = call @layer(%0#0, %w) : (tensor<2x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  return %1#0, %0#1 : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// A call in a branch is inlined there; a region of the callee comes along.
// CHECK-LABEL: @regions
// CHECK:         scf.if %arg1
// CHECK:           scf.for
// CHECK:             "relax.exp"
// CHECK:         else
// CHECK-NEXT:      scf.yield %arg0
func.func @regions(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %0 = scf.if %c -> tensor<4xf32> {
    %1 = func.call @loop(%x) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
func.func private @loop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %0 = scf.for %i = %i0 to %i1 step %i1 iter_args(%c = %x) -> (tensor<4xf32>) {
    %n = "relax.exp"(%c) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// A symbol that the callee defines is renamed from the second call on, everywhere it occurs: types and attributes. The result
// is matched with the name that the caller knows it by. Symbols of arguments are the caller's own.
// CHECK-LABEL: @symbols
// CHECK:         %0 = "relax.match_cast"(%arg0) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k"]}>
// CHECK-NEXT:    %1 = "relax.shape_value"() {value = ["n + k"]}
// CHECK-NEXT:    %2 = "relax.match_cast"(%arg1) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k_1"]}>
// CHECK-NEXT:    %3 = "relax.shape_value"() {value = ["k_1 + n"]}
// CHECK-NEXT:    %4 = "relax.match_cast"(%2) : (tensor<?xf32, {sym = ["k_1"]}>) -> tensor<?xf32, {sym = ["k"]}>
// CHECK-NEXT:    return %0, %4, %1, %3
func.func @symbols(%a: tensor<?xf32>, %b: tensor<?xf32>, %x: tensor<?xf32, {sym = ["n"]}>)
    -> (tensor<?xf32, {sym = ["k"]}>, tensor<?xf32, {sym = ["k"]}>, tensor<i64>, tensor<i64>) {
  %0:2 = call @sized(%a, %x) : (tensor<?xf32>, tensor<?xf32, {sym = ["n"]}>) -> (tensor<?xf32, {sym = ["k"]}>, tensor<i64>)
  %1:2 = call @sized(%b, %x) : (tensor<?xf32>, tensor<?xf32, {sym = ["n"]}>) -> (tensor<?xf32, {sym = ["k"]}>, tensor<i64>)
  return %0#0, %1#0, %0#1, %1#1 : tensor<?xf32, {sym = ["k"]}>, tensor<?xf32, {sym = ["k"]}>, tensor<i64>, tensor<i64>
}
func.func private @sized(%a: tensor<?xf32>, %x: tensor<?xf32, {sym = ["n"]}>) -> (tensor<?xf32, {sym = ["k"]}>, tensor<i64>) {
  %0 = "relax.match_cast"(%a) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k"]}>
  %1 = "relax.shape_value"() {value = ["n + k"]} : () -> tensor<i64>
  return %0, %1 : tensor<?xf32, {sym = ["k"]}>, tensor<i64>
}

// -----

// Public functions, declarations and functions marked no_inline stay, and so does what an attribute refers to.
// CHECK-LABEL: @stays
// CHECK-NEXT:    call @public
// CHECK-NEXT:    call @declared
// CHECK-NEXT:    call @marked
// CHECK:       func.func @public
// CHECK:       func.func private @declared
// CHECK:       func.func private @marked
// CHECK-NOT:   @unused
// CHECK:       func.func private @named
func.func @stays(%x: tensor<4xf32>) -> tensor<4xf32> attributes {keep = [@named]} {
  %0 = call @public(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @declared(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = call @marked(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func @public(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
func.func private @marked(%x: tensor<4xf32>) -> tensor<4xf32> attributes {no_inline} {
  return %x : tensor<4xf32>
}
func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @named(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
