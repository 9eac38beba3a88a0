// RUN: relax-opt %s --split-input-file --relax-remove-unused-parameters | filecheck %s

// Unused parameters go, with their names, from the function and from every call; public functions keep theirs.
// CHECK-LABEL: @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>)
// CHECK-NEXT:    %0:2 = call @f(%arg0) {note = "kept"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:    %1:2 = call @f(%0#1) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK:       @f(%arg0: tensor<4xf32> {relax.name = "x"})
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>, %u: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:2 = call @f(%w, %x, %x) {note = "kept"} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>)
  %1:2 = call @f(%w, %0#1, %w) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %1#0, %0#0 : tensor<4xf32>, tensor<4xf32>
}
func.func private @f(%a: tensor<4xf32> {relax.name = "a"}, %x: tensor<4xf32> {relax.name = "x"}, %b: tensor<4xf32>
    {relax.name = "b"}) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

// A parameter that is only passed on to an unused one is unused; so is one that only a recursion passes on.
// CHECK-LABEL: @chain(%arg0: tensor<4xf32>)
// CHECK-NEXT:    %0 = call @outer(%arg0)
// CHECK:       @outer(%arg0: tensor<4xf32>)
// CHECK-NEXT:    %0 = call @inner(%arg0)
// CHECK:       @inner(%arg0: tensor<4xf32>)
// CHECK-NEXT:    %0 = "relax.exp"(%arg0)
// CHECK-NEXT:    call @inner(%0) : (tensor<4xf32>)
func.func @chain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @outer(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @outer(%x: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @inner(%u, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @inner(%u: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @inner(%u, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A parameter that alone defines a symbol that the function mentions stays, wherever it comes from; of two, one is
// enough.
// CHECK-LABEL: @symbol(
// CHECK-NEXT:    call @sized_outer(%arg0) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<i64>
// CHECK:       @sized_outer(%arg0: tensor<?xf32, {sym = ["n"]}>)
// CHECK:       @sized(%arg0: tensor<?xf32, {sym = ["n"]}>)
func.func @symbol(%x: tensor<?xf32, {sym = ["n"]}>, %y: tensor<?xf32, {sym = ["m"]}>) -> tensor<i64> {
  %0 = call @sized_outer(%x, %x, %y) : (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>,
      tensor<?xf32, {sym = ["m"]}>) -> tensor<i64>
  return %0 : tensor<i64>
}
func.func private @sized_outer(%x: tensor<?xf32, {sym = ["n"]}>, %z: tensor<?xf32, {sym = ["n"]}>,
    %y: tensor<?xf32, {sym = ["m"]}>) -> tensor<i64> {
  %0 = call @sized(%x, %z, %y) : (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>,
      tensor<?xf32, {sym = ["m"]}>) -> tensor<i64>
  return %0 : tensor<i64>
}
func.func private @sized(%x: tensor<?xf32, {sym = ["n"]}>, %z: tensor<?xf32, {sym = ["n"]}>,
    %y: tensor<?xf32, {sym = ["m"]}>) -> tensor<i64> {
  %0 = "relax.shape_value"() {value = ["n * 2"]} : () -> tensor<i64>
  return %0 : tensor<i64>
}

// -----

// Functions whose signature someone else may rely on stay: public ones, declarations, those that an attribute names.
// CHECK-LABEL: @stays
// CHECK-NEXT:    call @public(%arg0)
// CHECK-NEXT:    call @declared(%arg0)
// CHECK-NEXT:    call @named(%arg0)
func.func @stays(%x: tensor<4xf32>) attributes {uses = [{f = @named}]} {
  call @public(%x) : (tensor<4xf32>) -> ()
  call @declared(%x) : (tensor<4xf32>) -> ()
  call @named(%x) : (tensor<4xf32>) -> ()
  return
}
func.func @public(%x: tensor<4xf32>) {
  return
}
func.func private @declared(tensor<4xf32>)
func.func private @named(%x: tensor<4xf32>) {
  return
}

// -----

// relax.num_input counts what is left.
// CHECK-LABEL: @counted
// CHECK:       @inputs(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32>
// CHECK-SAME:       attributes {relax.num_input = 1 : i64}
func.func @counted(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @inputs(%x, %x, %x, %x) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @inputs(%u: tensor<4xf32>, %x: tensor<4xf32>, %v: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32>
    attributes {relax.num_input = 2 : i64} {
  %0 = "relax.add"(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A function of several blocks.
// CHECK-LABEL: @blocks
// CHECK-NEXT:    call @several(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK:       @several(%arg0: tensor<4xf32>) -> tensor<4xf32>
func.func @blocks(%x: tensor<4xf32>, %y: tensor<2xf32>) -> tensor<4xf32> {
  %0 = call @several(%y, %x) : (tensor<2xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @several(%u: tensor<2xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^end
^end:
  return %x : tensor<4xf32>
}

// -----

// A tuple defines the symbols of what is in it.
// CHECK-LABEL: @tuple
// CHECK:       @of_tuple(%arg0: tuple<tensor<?xf32, {sym = ["n"]}>>)
func.func @tuple(%p: tuple<tensor<?xf32, {sym = ["n"]}>>, %q: tuple<tensor<?xf32, {sym = ["n"]}>>) -> index {
  %0 = call @of_tuple(%p, %q) : (tuple<tensor<?xf32, {sym = ["n"]}>>, tuple<tensor<?xf32, {sym = ["n"]}>>) -> index
  return %0 : index
}
func.func private @of_tuple(%p: tuple<tensor<?xf32, {sym = ["n"]}>>, %q: tuple<tensor<?xf32, {sym = ["n"]}>>) -> index {
  %0 = "relax.prim_value"() {value = ["n"]} : () -> index
  return %0 : index
}
