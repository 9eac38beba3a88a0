// RUN: relax-opt %s --split-input-file --relax-expand-tuple-arguments | filecheck %s
// RUN: relax-opt %s --split-input-file --relax-expand-tuple-arguments=public=true | filecheck %s --check-prefix=PUBLIC

// Tuples of private functions become their elements at every call, nested ones too; the names say where they were. A
// tuple that is packed to be passed on is gone.
// CHECK-LABEL: @main(%arg0: tensor<4xf32>, %arg1: tensor<2xf32>, %arg2: i1)
// CHECK-NEXT:    %0 = call @f(%arg0, %arg2, %arg1, %arg0) {note}
// CHECK-NEXT:    %1 = scf.if %arg2 -> (tensor<2xf32>) {
// CHECK-NEXT:      %2 = func.call @f(%0, %arg2, %arg1, %arg0)
// CHECK:         return %1
// CHECK:       @f(%arg0: tensor<4xf32> {relax.name = "p.1.1"}, %arg1: i1 {relax.name = "p.0"}, %arg2: tensor<2xf32>
// CHECK-SAME:       {relax.name = "p.1.0"}, %arg3: tensor<4xf32> {relax.name = "p.1.1_"}
// CHECK-SAME:      relax.num_input = 4 : i64
// CHECK-NEXT:    %0 = "relax.add"(%arg0, %arg3)
// CHECK-NEXT:    return %0
func.func @main(%x: tensor<4xf32>, %y: tensor<2xf32>, %c: i1) -> tensor<2xf32> {
  %0 = builtin.unrealized_conversion_cast %y, %x : tensor<2xf32>, tensor<4xf32> to tuple<tensor<2xf32>, tensor<4xf32>>
  %1 = builtin.unrealized_conversion_cast %c, %0 : i1, tuple<tensor<2xf32>, tensor<4xf32>> to
      tuple<i1, tuple<tensor<2xf32>, tensor<4xf32>>>
  %2 = call @f(%x, %1) {note} : (tensor<4xf32>, tuple<i1, tuple<tensor<2xf32>, tensor<4xf32>>>) -> tensor<4xf32>
  %3 = scf.if %c -> tensor<2xf32> {
    %4 = func.call @f(%2, %1) : (tensor<4xf32>, tuple<i1, tuple<tensor<2xf32>, tensor<4xf32>>>) -> tensor<4xf32>
    scf.yield %y : tensor<2xf32>
  } else {
    scf.yield %y : tensor<2xf32>
  }
  return %3 : tensor<2xf32>
}
func.func private @f(%x: tensor<4xf32> {relax.name = "p.1.1"}, %p: tuple<i1, tuple<tensor<2xf32>, tensor<4xf32>>>
    {relax.name = "p"}) -> tensor<4xf32>
    attributes {relax.num_input = 2 : i64} {
  %0:2 = builtin.unrealized_conversion_cast %p : tuple<i1, tuple<tensor<2xf32>, tensor<4xf32>>> to i1,
      tuple<tensor<2xf32>, tensor<4xf32>>
  %1:2 = builtin.unrealized_conversion_cast %0#1 : tuple<tensor<2xf32>, tensor<4xf32>> to tensor<2xf32>, tensor<4xf32>
  %2 = "relax.add"(%x, %1#1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// Results as well; what a public function takes and returns stays, or goes with public=true.
// CHECK-LABEL: @results
// CHECK-SAME:      (%arg0: tuple<tensor<4xf32>, tensor<2xf32>> {relax.name = "p"})
// CHECK-SAME:      -> (tuple<tensor<4xf32>, tensor<2xf32>> {relax.name = "r"})
// CHECK-NEXT:    %0:2 = builtin.unrealized_conversion_cast %arg0
// CHECK-NEXT:    %1:2 = call @swap(%0#0, %0#1) : (tensor<4xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<4xf32>)
// CHECK-NEXT:    %2 = builtin.unrealized_conversion_cast %1#1, %1#0
// CHECK-NEXT:    return %2
// CHECK:       @swap(%arg0: tensor<4xf32>, %arg1: tensor<2xf32>) -> (tensor<2xf32>, tensor<4xf32>)
// CHECK-NEXT:    return %arg1, %arg0
// PUBLIC-LABEL: @results
// PUBLIC-SAME:     (%arg0: tensor<4xf32> {relax.name = "p.0"}, %arg1: tensor<2xf32> {relax.name = "p.1"})
// PUBLIC-SAME:     -> (tensor<4xf32> {relax.name = "r.0"}, tensor<2xf32> {relax.name = "r.1"})
// PUBLIC-NEXT:    %0:2 = call @swap(%arg0, %arg1)
// PUBLIC-NEXT:    return %0#1, %0#0
func.func @results(%p: tuple<tensor<4xf32>, tensor<2xf32>> {relax.name = "p"})
    -> (tuple<tensor<4xf32>, tensor<2xf32>> {relax.name = "r"}) {
  %0 = call @swap(%p) : (tuple<tensor<4xf32>, tensor<2xf32>>) -> tuple<tensor<2xf32>, tensor<4xf32>>
  %1:2 = builtin.unrealized_conversion_cast %0 : tuple<tensor<2xf32>, tensor<4xf32>> to tensor<2xf32>, tensor<4xf32>
  %2 = builtin.unrealized_conversion_cast %1#1, %1#0 : tensor<4xf32>, tensor<2xf32> to
      tuple<tensor<4xf32>, tensor<2xf32>>
  return %2 : tuple<tensor<4xf32>, tensor<2xf32>>
}
func.func private @swap(%p: tuple<tensor<4xf32>, tensor<2xf32>>) -> tuple<tensor<2xf32>, tensor<4xf32>> {
  %0:2 = builtin.unrealized_conversion_cast %p : tuple<tensor<4xf32>, tensor<2xf32>> to tensor<4xf32>, tensor<2xf32>
  %1 = builtin.unrealized_conversion_cast %0#1, %0#0 : tensor<2xf32>, tensor<4xf32> to
      tuple<tensor<2xf32>, tensor<4xf32>>
  return %1 : tuple<tensor<2xf32>, tensor<4xf32>>
}

// -----

// A recursion; symbols of elements; empty tuples vanish, and a tuple that something else needs is packed again.
// CHECK-LABEL: @recursive
// CHECK-NEXT:    %0 = builtin.unrealized_conversion_cast %arg1, %arg0
// CHECK-NEXT:    %1 = call @again(%arg0, %arg1, %arg0)
// CHECK-NEXT:    return %1, %0
// CHECK:       @again(%arg0: tensor<?xf32, {sym = ["n"]}>, %arg1: i1, %arg2: tensor<?xf32, {sym = ["n"]}>)
// CHECK:           func.call @again(%arg0, %arg1, %arg2)
func.func @recursive(%x: tensor<?xf32, {sym = ["n"]}>, %c: i1)
    -> (tensor<?xf32, {sym = ["n"]}>, tuple<i1, tensor<?xf32, {sym = ["n"]}>>) {
  %e = builtin.unrealized_conversion_cast to tuple<>
  %0 = builtin.unrealized_conversion_cast %c, %x : i1, tensor<?xf32, {sym = ["n"]}> to
      tuple<i1, tensor<?xf32, {sym = ["n"]}>>
  %1 = call @again(%x, %e, %0) : (tensor<?xf32, {sym = ["n"]}>, tuple<>, tuple<i1, tensor<?xf32, {sym = ["n"]}>>)
      -> tensor<?xf32, {sym = ["n"]}>
  return %1, %0 : tensor<?xf32, {sym = ["n"]}>, tuple<i1, tensor<?xf32, {sym = ["n"]}>>
}
func.func private @again(%x: tensor<?xf32, {sym = ["n"]}>, %e: tuple<>, %p: tuple<i1, tensor<?xf32, {sym = ["n"]}>>)
    -> tensor<?xf32, {sym = ["n"]}> {
  %0:2 = builtin.unrealized_conversion_cast %p : tuple<i1, tensor<?xf32, {sym = ["n"]}>> to i1,
      tensor<?xf32, {sym = ["n"]}>
  %1 = scf.if %0#0 -> tensor<?xf32, {sym = ["n"]}> {
    %2 = func.call @again(%x, %e, %p) : (tensor<?xf32, {sym = ["n"]}>, tuple<>, tuple<i1, tensor<?xf32, {sym = ["n"]}>>)
        -> tensor<?xf32, {sym = ["n"]}>
    scf.yield %2 : tensor<?xf32, {sym = ["n"]}>
  } else {
    scf.yield %0#1 : tensor<?xf32, {sym = ["n"]}>
  }
  return %1 : tensor<?xf32, {sym = ["n"]}>
}

// -----

// Declarations and functions that an attribute names keep their tuples, and so do the calls of them.
// CHECK-LABEL: @stays
// CHECK-NEXT:    call @declared(%arg0) : (tuple<tensor<4xf32>>) -> ()
// CHECK-NEXT:    call @named(%arg0) : (tuple<tensor<4xf32>>) -> ()
func.func @stays(%p: tuple<tensor<4xf32>>) attributes {uses = [@named]} {
  call @declared(%p) : (tuple<tensor<4xf32>>) -> ()
  call @named(%p) : (tuple<tensor<4xf32>>) -> ()
  return
}
func.func private @declared(tuple<tensor<4xf32>>)
func.func private @named(%p: tuple<tensor<4xf32>>) {
  return
}

// -----

// A weight without a name goes by its position, which a tuple in front of it moves: it gets the name that it had.
// PUBLIC-LABEL: @behind(
// PUBLIC-SAME:    %arg0: tensor<4xf32> {relax.name = "p.0"}, %arg1: tensor<2xf32> {relax.name = "p.1"}
// PUBLIC-SAME:    %arg2: tensor<3xf32> {relax.name = "weight1"})
func.func @behind(%p: tuple<tensor<4xf32>, tensor<2xf32>> {relax.name = "p"}, %c: tensor<3xf32>) -> tensor<3xf32>
    attributes {relax.num_input = 0 : i64} {
  return %c : tensor<3xf32>
}

// -----

// No function takes tuples any more, as when those that did were inlined: what is packed and taken apart goes, too.
// CHECK-LABEL: @inlined(
// CHECK-NEXT:    return %arg0 : tensor<4xf32>
func.func @inlined(%x: tensor<4xf32>) -> tensor<4xf32> {
  %t = builtin.unrealized_conversion_cast %x : tensor<4xf32> to tuple<tensor<4xf32>>
  %a = builtin.unrealized_conversion_cast %t : tuple<tensor<4xf32>> to tensor<4xf32>
  return %a : tensor<4xf32>
}
