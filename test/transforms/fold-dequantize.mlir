// RUN: relax-opt %s --relax-fold-dequantize --split-input-file | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-fold-dequantize,relax-pack-weights{tile=8},\
// RUN:relax-sink-growth)' --split-input-file | filecheck %s --check-prefix=PACKED

// Groups of 32 rows with zero points, as an ordinary expression: packed as integers, scales and zero points alike.
// CHECK-LABEL: @groups
// CHECK-NEXT:    %0 = "relax.reshape"(%arg1)
// CHECK-NEXT:    %1 = "relax.dequantize"(%0, %arg2, %arg3) : (tensor<2x32x8xi4>, tensor<2x1x8xf32>, tensor<2x1x8xi4>)
// CHECK-SAME:    -> tensor<2x32x8xf32>
// CHECK-NEXT:    %2 = "relax.reshape"(%1)
// PACKED-LABEL: @groups
// PACKED:        "relax.dequantize"(%{{\w+}}, %{{\w+}}, %{{\w+}})
// PACKED-SAME:      : (tensor<1x64x8xi4>, tensor<1x2x8xf32>, tensor<1x2x8xi4>) -> tensor<1x64x8xf32>
// PACKED-NEXT:   "relax.packed_matmul"
func.func @groups(%x: tensor<3x64xf32>, %q: tensor<64x8xi4> {relax.name = "q"}, %s: tensor<2x1x8xf32>
    {relax.name = "s"}, %z: tensor<2x1x8xi4> {relax.name = "z"}) -> tensor<3x8xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.reshape"(%q) : (tensor<64x8xi4>) -> tensor<2x32x8xi4>
  %1 = "relax.astype"(%0) {dtype = f32} : (tensor<2x32x8xi4>) -> tensor<2x32x8xf32>
  %2 = "relax.astype"(%z) {dtype = f32} : (tensor<2x1x8xi4>) -> tensor<2x1x8xf32>
  %3 = "relax.subtract"(%1, %2) : (tensor<2x32x8xf32>, tensor<2x1x8xf32>) -> tensor<2x32x8xf32>
  %4 = "relax.multiply"(%3, %s) : (tensor<2x32x8xf32>, tensor<2x1x8xf32>) -> tensor<2x32x8xf32>
  %5 = "relax.reshape"(%4) : (tensor<2x32x8xf32>) -> tensor<64x8xf32>
  %6 = "relax.matmul"(%x, %5) : (tensor<3x64xf32>, tensor<64x8xf32>) -> tensor<3x8xf32>
  return %6 : tensor<3x8xf32>
}

// -----

// Without a zero point, the scale on the left, of fewer dimensions, broadcast before.
// CHECK-LABEL: @scales
// CHECK-NEXT:    %0 = "relax.reshape"(%arg1) : (tensor<8xbf16>) -> tensor<1x8xbf16>
// CHECK-NEXT:    %1 = "relax.full"() {value = 0 : i64} : () -> tensor<ui8>
// CHECK-NEXT:    %2 = "relax.dequantize"(%arg0, %0, %1) : (tensor<4x8xui8>, tensor<1x8xbf16>, tensor<ui8>)
// CHECK-SAME:    -> tensor<4x8xbf16>
// CHECK-NEXT:    return %2
func.func @scales(%q: tensor<4x8xui8> {relax.name = "q"}, %s: tensor<8xbf16> {relax.name = "s"}) -> tensor<4x8xbf16>
    attributes {relax.num_input = 0 : i64} {
  %0 = "relax.astype"(%q) {dtype = bf16} : (tensor<4x8xui8>) -> tensor<4x8xbf16>
  %1 = "relax.broadcast_to"(%s) : (tensor<8xbf16>) -> tensor<4x8xbf16>
  %2 = "relax.multiply"(%1, %0) : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16>
  return %2 : tensor<4x8xbf16>
}

// -----

// Left alone: integers that a float need not hold, a product of another shape, a zero point that is a float, run-time
// values.
// CHECK-LABEL: @leaves
// CHECK-NOT:     relax.dequantize
func.func @leaves(%x: tensor<4x8xi8>, %a: tensor<4x8xi32> {relax.name = "a"}, %b: tensor<1x8xi8> {relax.name = "b"},
    %c: tensor<4x8xi8> {relax.name = "c"}, %s: tensor<4x8xf32> {relax.name = "s"})
    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.astype"(%a) {dtype = f32} : (tensor<4x8xi32>) -> tensor<4x8xf32>
  %1 = "relax.multiply"(%0, %s) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "relax.astype"(%b) {dtype = f32} : (tensor<1x8xi8>) -> tensor<1x8xf32>
  %3 = "relax.multiply"(%2, %s) : (tensor<1x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = "relax.astype"(%c) {dtype = f32} : (tensor<4x8xi8>) -> tensor<4x8xf32>
  %5 = "relax.subtract"(%4, %s) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = "relax.multiply"(%5, %s) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %7 = "relax.astype"(%x) {dtype = f32} : (tensor<4x8xi8>) -> tensor<4x8xf32>
  %8 = "relax.multiply"(%7, %s) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1, %3, %6, %8 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
