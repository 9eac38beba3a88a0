// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-activations{floats=false exact=true})' \
// RUN:   | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-activations)' | filecheck %s --check-prefix=ROUNDED

// As many rows as groups are one of each on the average: each becomes three of bytes, one behind the other, ends are
// those of these. Rows that are rounded are as many as before.
// CHECK-LABEL: @one_of_each
// CHECK:         %[[INTEGERS:.*]] = "relax.reshape"({{.*}}) : (tensor<3x3x16xi8>) -> tensor<9x16xi8>
// CHECK:         %[[SCALES:.*]] = "relax.reshape"({{.*}}) : (tensor<3x3x1xf32>) -> tensor<9x1xf32>
// CHECK:         %[[THREE:.*]] = "relax.full"() {value = 3 : i64} : () -> tensor<i64>
// CHECK:         %[[ENDS:.*]] = "relax.multiply"(%{{.*}}, %[[THREE]]) : (tensor<3xi64>, tensor<i64>) -> tensor<3xi64>
// CHECK:         %[[ROWS:.*]] = "relax.quantized_grouped_matmul"(%[[INTEGERS]], %[[SCALES]], {{.*}}, %[[ENDS]])
// CHECK-SAME:      {layout = "tile 8, rows 4, u4x8, offset 8", n = 24 : i64}
// CHECK:         %[[PARTS:.*]] = "relax.reshape"(%[[ROWS]]) : (tensor<9x8xf32>) -> tensor<3x3x8xf32>
// CHECK:         "relax.sum"(%[[PARTS]]) {axis = array<i64: 1>} : (tensor<3x3x8xf32>) -> tensor<3x8xf32>
// ROUNDED-LABEL: @one_of_each
// ROUNDED:         "relax.quantized_grouped_matmul"({{.*}}) {layout = "tile 8, rows 4, u4x8, offset 8", n = 24 : i64}
// ROUNDED-SAME:      -> tensor<3x8xf32>
func.func @one_of_each(%x: tensor<3x16xf32> {relax.name = "x"}, %ends: tensor<3xi64> {relax.name = "ends"},
    %q: tensor<3x16x8xi4> {relax.name = "q"}, %s: tensor<3x2x8xf32> {relax.name = "s"}) -> tensor<3x8xf32>
    attributes {relax.num_input = 2 : i64} {
  %z = "relax.full"() {value = 0 : i64} : () -> tensor<i4>
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<3x16x8xi4>, tensor<3x2x8xf32>, tensor<i4>) -> tensor<3x16x8xf32>
  %1 = "relax.packed_grouped_matmul"(%x, %0, %ends) {layout = "tile 8", n = 24 : i64}
      : (tensor<3x16xf32>, tensor<3x16x8xf32>, tensor<3xi64>) -> tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}

// More rows, or any number, are so many of a group: those are multiplied as floats, or rounded.
// CHECK-LABEL: @more
// CHECK-NOT:     relax.quantize
// CHECK:         return
// ROUNDED-LABEL: @more
// ROUNDED-COUNT-2: "relax.quantized_grouped_matmul"
func.func @more(%x: tensor<4x16xf32> {relax.name = "x"}, %m: tensor<?x16xf32, {sym = ["m"]}> {relax.name = "m"},
    %ends: tensor<3xi64> {relax.name = "ends"}, %q: tensor<3x16x8xi4> {relax.name = "q"},
    %s: tensor<3x2x8xf32> {relax.name = "s"}) -> (tensor<4x8xf32>, tensor<?x8xf32, {sym = ["m"]}>)
    attributes {relax.num_input = 3 : i64} {
  %z = "relax.full"() {value = 0 : i64} : () -> tensor<i4>
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<3x16x8xi4>, tensor<3x2x8xf32>, tensor<i4>) -> tensor<3x16x8xf32>
  %1 = "relax.packed_grouped_matmul"(%x, %0, %ends) {layout = "tile 8", n = 24 : i64}
      : (tensor<4x16xf32>, tensor<3x16x8xf32>, tensor<3xi64>) -> tensor<4x8xf32>
  %2 = "relax.packed_grouped_matmul"(%m, %0, %ends) {layout = "tile 8", n = 24 : i64}
      : (tensor<?x16xf32, {sym = ["m"]}>, tensor<3x16x8xf32>, tensor<3xi64>) -> tensor<?x8xf32, {sym = ["m"]}>
  return %1, %2 : tensor<4x8xf32>, tensor<?x8xf32, {sym = ["m"]}>
}

// Rows that are integers already stay what these stand for: zero points would be taken out by columns of each group.
// ROUNDED-LABEL: @given
// ROUNDED-NOT:     relax.quantized
// ROUNDED:         return
func.func @given(%x: tensor<4x16xi8> {relax.name = "x"}, %t: tensor<f32> {relax.name = "t"},
    %ends: tensor<3xi64> {relax.name = "ends"}, %q: tensor<3x16x8xi4> {relax.name = "q"},
    %s: tensor<3x2x8xf32> {relax.name = "s"}) -> tensor<4x8xf32> attributes {relax.num_input = 3 : i64} {
  %z = "relax.full"() {value = 0 : i64} : () -> tensor<i4>
  %y = "relax.full"() {value = 3 : i64} : () -> tensor<i8>
  %r = "relax.dequantize"(%x, %t, %y) : (tensor<4x16xi8>, tensor<f32>, tensor<i8>) -> tensor<4x16xf32>
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<3x16x8xi4>, tensor<3x2x8xf32>, tensor<i4>) -> tensor<3x16x8xf32>
  %1 = "relax.packed_grouped_matmul"(%r, %0, %ends) {layout = "tile 8", n = 24 : i64}
      : (tensor<4x16xf32>, tensor<3x16x8xf32>, tensor<3xi64>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
