// RUN: relax-opt %s --relax-pool-integers --split-input-file | filecheck %s

// The scale may be negative: then all bits turn, which turns the order round.
// CHECK-LABEL: @pool
// CHECK:         %[[NEG:.*]] = "relax.less"(%arg1, %{{\w+}}) : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK:         %[[ALL:.*]] = "relax.full"() {value = 255 : i64} : () -> tensor<ui8>
// CHECK:         %[[M:.*]] = "relax.where"(%[[NEG]], %[[ALL]], %{{\w+}})
// CHECK-NEXT:    %[[X:.*]] = "relax.bitwise_xor"(%arg0, %[[M]])
// CHECK-NEXT:    %[[P:.*]] = "relax.max_pool2d"(%[[X]]) {
// CHECK-SAME:      padding = array<i64: 1, 1, 1, 1>, pool_size = array<i64: 3, 3>, strides = array<i64: 2, 2>
// CHECK-SAME:      (tensor<1x8x9x9xui8>) -> tensor<1x8x5x5xui8>
// CHECK-NEXT:    %[[Y:.*]] = "relax.bitwise_xor"(%[[P]], %[[M]])
// CHECK-NEXT:    %[[D:.*]] = "relax.dequantize"(%[[Y]], %arg1, %arg2) {out_dtype = f32}
// CHECK-NEXT:    return %[[D]]
func.func @pool(%q: tensor<1x8x9x9xui8>, %s: tensor<f32> {relax.name = "s"}, %z: tensor<ui8> {relax.name = "z"})
    -> tensor<1x8x5x5xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<1x8x9x9xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x8x9x9xf32>
  %1 = "relax.max_pool2d"(%0) {padding = array<i64: 1, 1, 1, 1>, pool_size = array<i64: 3, 3>,
      strides = array<i64: 2, 2>} : (tensor<1x8x9x9xf32>) -> tensor<1x8x5x5xf32>
  return %1 : tensor<1x8x5x5xf32>
}

// -----

// Left alone: a scale per channel, one that is an input, windows of padding only, an image of unknown size.
// CHECK-LABEL: @leaves
// CHECK-NOT:     relax.bitwise_xor
// CHECK:         return
func.func @leaves(%q: tensor<1x8x9x9xi8>, %u: tensor<1x8x?x9xi8, {sym = ["h"]}>, %i: tensor<f32>,
    %c: tensor<8xf32> {relax.name = "c"}, %s: tensor<f32> {relax.name = "s"})
    -> (tensor<1x8x9x9xf32>, tensor<1x8x9x9xf32>, tensor<1x8x13x9xf32>, tensor<1x8x?x9xf32, {sym = ["h"]}>)
    attributes {relax.num_input = 3 : i64} {
  %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
  %0 = "relax.dequantize"(%q, %c, %z) {axis = 1 : i64}
      : (tensor<1x8x9x9xi8>, tensor<8xf32>, tensor<i8>) -> tensor<1x8x9x9xf32>
  %1 = "relax.max_pool2d"(%0) {pool_size = array<i64: 1, 1>} : (tensor<1x8x9x9xf32>) -> tensor<1x8x9x9xf32>
  %2 = "relax.dequantize"(%q, %i, %z) : (tensor<1x8x9x9xi8>, tensor<f32>, tensor<i8>) -> tensor<1x8x9x9xf32>
  %3 = "relax.max_pool2d"(%2) {pool_size = array<i64: 1, 1>} : (tensor<1x8x9x9xf32>) -> tensor<1x8x9x9xf32>
  %4 = "relax.dequantize"(%q, %s, %z) : (tensor<1x8x9x9xi8>, tensor<f32>, tensor<i8>) -> tensor<1x8x9x9xf32>
  %5 = "relax.max_pool2d"(%4) {padding = array<i64: 2, 0, 2, 0>, pool_size = array<i64: 1, 1>}
      : (tensor<1x8x9x9xf32>) -> tensor<1x8x13x9xf32>
  %6 = "relax.dequantize"(%u, %s, %z) : (tensor<1x8x?x9xi8, {sym = ["h"]}>, tensor<f32>, tensor<i8>)
      -> tensor<1x8x?x9xf32, {sym = ["h"]}>
  %7 = "relax.max_pool2d"(%6) {pool_size = array<i64: 1, 1>}
      : (tensor<1x8x?x9xf32, {sym = ["h"]}>) -> tensor<1x8x?x9xf32, {sym = ["h"]}>
  return %1, %3, %5, %7 : tensor<1x8x9x9xf32>, tensor<1x8x9x9xf32>, tensor<1x8x13x9xf32>,
      tensor<1x8x?x9xf32, {sym = ["h"]}>
}
