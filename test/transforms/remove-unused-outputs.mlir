// RUN: relax-opt %s --split-input-file --relax-remove-unused-outputs | filecheck %s

// A result that no caller uses goes, with its name; what computed it stays. One caller that uses it is enough to keep
// it.
// CHECK-LABEL: @main
// CHECK-NEXT:    %0:2 = call @f(%arg0) {note = "kept"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:    %1:2 = call @f(%0#1)
// CHECK-NEXT:    return %1#0, %0#1
// CHECK:       @f(%arg0: tensor<4xf32>) -> (tensor<4xf32> {relax.name = "a"}, tensor<4xf32>)
// CHECK-NEXT:    %0 = "relax.exp"
// CHECK-NEXT:    %1 = "relax.tanh"
// CHECK-NEXT:    return %0, %arg0
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:3 = call @f(%x) {note = "kept"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %1:3 = call @f(%0#2) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %1#0, %0#2 : tensor<4xf32>, tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> (tensor<4xf32> {relax.name = "a"}, tensor<4xf32> {relax.name = "b"},
    tensor<4xf32>) {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Results that are the same value are one, also where a callee's are, and where only the second is used.
// CHECK-LABEL: @repeated
// CHECK-NEXT:    %0 = call @outer(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    return %0, %0
// CHECK:       @outer(%arg0: tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %0 = call @inner(%arg0)
// CHECK-NEXT:    return %0 :
// CHECK:       @inner(%arg0: tensor<4xf32>) -> tensor<4xf32>
// CHECK:         return %0 :
func.func @repeated(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:3 = call @outer(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#1, %0#2 : tensor<4xf32>, tensor<4xf32>
}
func.func private @outer(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0:2 = call @inner(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
func.func private @inner(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %0 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A result that is only passed on as an unused one, or by a recursion to itself, is unused. All results may go.
// CHECK-LABEL: @chain
// CHECK-NEXT:    %0 = call @passes_on(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    call @none(%arg0) : (tensor<4xf32>) -> ()
// CHECK-NEXT:    return %0
// CHECK:       @passes_on(%arg0: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    call @source(%arg0) : (tensor<4xf32>) -> ()
// CHECK-NEXT:    %0 = call @passes_on(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    return %arg0
// CHECK:       @source(%arg0: tensor<4xf32>) {
// CHECK:       @none(%arg0: tensor<4xf32>) {
func.func @chain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0:3 = call @passes_on(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %1 = call @none(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0#1 : tensor<4xf32>
}
func.func private @passes_on(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = call @source(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1:3 = call @passes_on(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0, %x, %1#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
func.func private @source(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @none(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// Functions whose signature someone else may rely on stay: public ones, declarations, those that an attribute names; so
// do functions of several blocks.
// CHECK-LABEL: @stays
// CHECK-NEXT:    call @public(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    call @declared(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    call @named(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    call @blocks(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
func.func @stays(%x: tensor<4xf32>) attributes {uses = [{f = @named}]} {
  %0 = call @public(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @declared(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = call @named(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = call @blocks(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}
func.func @public(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
func.func private @named(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^end
^end:
  return %x : tensor<4xf32>
}

// -----

// Symbolic sizes: what is left keeps the sizes it had.
// CHECK-LABEL: @symbols
// CHECK-NEXT:    %0 = call @sized(%arg0) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}>
func.func @symbols(%x: tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}> {
  %0:2 = call @sized(%x) : (tensor<?xf32, {sym = ["n"]}>) -> (tensor<i64>, tensor<?xf32, {sym = ["n"]}>)
  return %0#1 : tensor<?xf32, {sym = ["n"]}>
}
func.func private @sized(%x: tensor<?xf32, {sym = ["n"]}>) -> (tensor<i64>, tensor<?xf32, {sym = ["n"]}>) {
  %0 = "relax.shape_value"() {value = ["n"]} : () -> tensor<i64>
  %1 = "relax.exp"(%x) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}>
  return %0, %1 : tensor<i64>, tensor<?xf32, {sym = ["n"]}>
}
