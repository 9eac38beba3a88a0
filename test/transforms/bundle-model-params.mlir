// RUN: relax-opt %s --split-input-file --relax-bundle-model-params | filecheck %s
// RUN: relax-opt %s --split-input-file --relax-bundle-model-params=tuple-name=p | filecheck %s --check-prefix=NAME
// RUN: relax-opt %s --split-input-file --relax-bundle-model-params --relax-expand-tuple-arguments=public=true \
// RUN:   | filecheck %s --check-prefix=UNDO

// Weights become one tuple that remembers their names; the functions that are called inside are as they were.
// CHECK-LABEL: @main
// CHECK-SAME:      (%arg0: tensor<4xf32> {relax.name = "x"}, %arg1: tuple<tensor<4xf32>, tensor<4xf32>>
// CHECK-SAME:      {relax.bundled = [{relax.name = "a"}, {relax.name = "weight2"}], relax.name = "model_params"})
// CHECK-SAME:      attributes {relax.num_input = 1 : i64}
// CHECK-NEXT:    %0:2 = builtin.unrealized_conversion_cast %arg1
// CHECK-SAME:    : tuple<tensor<4xf32>, tensor<4xf32>> to tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:    %1 = "relax.add"(%arg0, %0#0)
// CHECK-NEXT:    %2 = call @inner(%1, %0#1)
// CHECK:       func.func private @inner(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>)
// NAME-LABEL:  @main
// NAME-SAME:       relax.name = "p"
// UNDO-LABEL:  @main(%arg0: tensor<4xf32> {relax.name = "x"}, %arg1: tensor<4xf32> {relax.name = "a"},
// UNDO-SAME:  %arg2: tensor<4xf32> {relax.name = "weight2"})
// UNDO-SAME:       attributes {relax.num_input = 1 : i64}
// UNDO-NEXT:     %0 = "relax.add"(%arg0, %arg1)
// UNDO-NEXT:     %1 = call @inner(%0, %arg2)
func.func @main(%x: tensor<4xf32> {relax.name = "x"}, %a: tensor<4xf32> {relax.name = "a"}, %b: tensor<4xf32>)
    -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.add"(%x, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = call @inner(%0, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @inner(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.multiply"(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// No weights: an empty tuple. Without relax.num_input nothing is a weight.
// CHECK-LABEL: @none(%arg0: tensor<4xf32>, %arg1: tuple<> {relax.bundled = [], relax.name = "model_params"})
// CHECK-LABEL: @plain(%arg0: tensor<4xf32>)
// UNDO-LABEL:  @none(%arg0: tensor<4xf32>)
func.func @none(%x: tensor<4xf32>) -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
  return %x : tensor<4xf32>
}
func.func @plain(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// Symbolic sizes that one weight defines and another uses; a call of the function packs what it passes; transform
// functions too.
// CHECK-LABEL: @symbols
// CHECK-SAME:      tuple<tensor<?xf32, {sym = ["m"]}>, tensor<?x3xf32, {sym = ["m * 2"]}>>
// CHECK:         "relax.shape_value"() {value = ["m"]}
// CHECK-LABEL: @caller
// CHECK-NEXT:    %0 = builtin.unrealized_conversion_cast %arg0, %arg1
// CHECK-SAME:    : tensor<?xf32, {sym = ["m"]}>, tensor<?x3xf32, {sym = ["m * 2"]}> to tuple<
// CHECK-NEXT:    %1 = call @symbols(%0) {note} : (tuple<
// CHECK-NEXT:    return %1
// UNDO-LABEL:  @caller
// UNDO-NEXT:     call @symbols(%arg0, %arg1) {note}
func.func @symbols(%a: tensor<?xf32, {sym = ["m"]}>, %b: tensor<?x3xf32, {sym = ["m * 2"]}>) -> tensor<i64>
    attributes {relax.num_input = 0 : i64} {
  %0 = "relax.shape_value"() {value = ["m"]} : () -> tensor<i64>
  return %0 : tensor<i64>
}
func.func @caller(%a: tensor<?xf32, {sym = ["m"]}>, %b: tensor<?x3xf32, {sym = ["m * 2"]}>) -> tensor<i64> {
  %0 = call @symbols(%a, %b) {note} : (tensor<?xf32, {sym = ["m"]}>, tensor<?x3xf32, {sym = ["m * 2"]}>) -> tensor<i64>
  return %0 : tensor<i64>
}

// -----

// What is a tuple already, or comes from a provider, stays.
// CHECK-LABEL: @bundled
// CHECK-SAME:      (%arg0: tuple<tensor<4xf32>> {relax.name = "mine"})
// CHECK-LABEL: @lazy
// CHECK-SAME:      (%arg0: !relax.param_provider)
func.func @bundled(%p: tuple<tensor<4xf32>> {relax.name = "mine"}) -> tensor<4xf32>
    attributes {relax.num_input = 0 : i64} {
  %0 = builtin.unrealized_conversion_cast %p : tuple<tensor<4xf32>> to tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @lazy(%p: !relax.param_provider) -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.get_param"(%p) {index = 0 : i64, name = "w"} : (!relax.param_provider) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A function of several blocks.
// CHECK-LABEL: @blocks
// CHECK-SAME:      tuple<tensor<4xf32>>
// CHECK-SAME:      -> (tensor<4xf32> {relax.name = "y"})
// UNDO-LABEL:  @blocks(%arg0: tensor<4xf32> {relax.name = "w"}) -> (tensor<4xf32> {relax.name = "y"})
func.func @blocks(%w: tensor<4xf32> {relax.name = "w"}) -> (tensor<4xf32> {relax.name = "y"})
    attributes {relax.num_input = 0 : i64} {
  cf.br ^end
^end:
  return %w : tensor<4xf32>
}
