// RUN: relax-opt %s --relax-quantize-activations | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-activations{rows=2 unsigned=false})' \
// RUN:   | filecheck %s --check-prefix=PAIRS
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-activations{rows=1})' \
// RUN:   | filecheck %s --check-prefix=ONE
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-activations,relax-lift-transform-params)' \
// RUN:   | filecheck %s --check-prefix=LIFTED
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-activations{floats=false})' \
// RUN:   | filecheck %s --check-prefix=GIVEN
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-quantize-activations{rows=3})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=THREE

// THREE: error: expected 1, 2 or 4 rows, got 3

// One scale per row where columns have one; the integers of a weight are unsigned, 128 more, and four of them side by
// side. Two products share the rows.
// GIVEN-LABEL: @bytes
// GIVEN-NOT:     relax.quantize
// GIVEN:         return
// CHECK-LABEL: @bytes
// CHECK-NEXT:    %[[ABS:.*]] = "relax.abs"(%arg0)
// CHECK-NEXT:    %[[MAX:.*]] = "relax.max"(%[[ABS]]) {axis = array<i64: -1>, keepdims = true}
// CHECK:         %[[CLAMPED:.*]] = "relax.maximum"(%[[MAX]],
// CHECK-NEXT:    %[[S:.*]] = "relax.multiply"(%[[CLAMPED]],
// CHECK:         %[[X:\w+]] = "relax.quantize"(%arg0, %[[S]], %{{\w+}}) {dtype = i8}
// CHECK-SAME:      : (tensor<?x16xf32, {sym = ["m"]}>, tensor<?x1xf32, {sym = ["m"]}>, tensor<i8>)
// CHECK-SAME:      -> tensor<?x16xi8, {sym = ["m"]}>
// CHECK-NEXT:    %[[WIDE:.*]] = "relax.astype"(%[[X]]) {dtype = i32}
// CHECK-NEXT:    %[[SUM:.*]] = "relax.sum"(%[[WIDE]]) {axis = array<i64: -1>, keepdims = true}
// CHECK:         %[[SCALE:.*]] = "relax.repeat"(%{{.*}}) {axis = 0 : i64, repeats = 2 : i64}
// CHECK:         %[[Z:.*]] = "relax.full"() {value = 131 : i64} : () -> tensor<i32>
// CHECK:         %[[BITS:.*]] = "relax.astype"(%arg1) {dtype = ui8}
// CHECK:         %[[Q:.*]] = "relax.bitwise_xor"(%[[BITS]],
// CHECK-NEXT:    %[[SIDES:.*]] = "relax.reshape"(%[[Q]]) : (tensor<2x16x8xui8>) -> tensor<2x4x4x8xui8>
// CHECK-NEXT:    %[[W:.*]] = "relax.permute_dims"(%[[SIDES]]) {axes = array<i64: 0, 1, 3, 2>}
// CHECK-NEXT:    "relax.quantized_matmul"(%[[X]], %[[S]], %[[SUM]], %[[W]], %[[SCALE]], %[[Z]])
// CHECK-SAME:      {layout = "tile 8, rows 4, offset 128", n = 12 : i64}
// CHECK:         "relax.quantized_matmul"(%[[X]], %[[S]], %[[SUM]], {{[^)]*}})
// CHECK-SAME:      {layout = "tile 8, rows 4", n = 8 : i64, out_dtype = f16}
// CHECK-NOT:     relax.dequantize
// PAIRS-LABEL: @bytes
// PAIRS:         "relax.reshape"(%arg1) : (tensor<2x16x8xi8>) -> tensor<2x8x2x8xi8>
// PAIRS:         "relax.quantized_matmul"({{.*}}) {layout = "tile 8, rows 2", n = 12 : i64}
// PAIRS:         "relax.bitwise_xor"
// PAIRS:         "relax.astype"({{.*}}) {dtype = i8} : (tensor<1x16x8xui8>) -> tensor<1x16x8xi8>
// PAIRS:         "relax.quantized_matmul"({{[^)]*}})
// PAIRS-SAME:      {layout = "tile 8, rows 2, offset -128", n = 8 : i64, out_dtype = f16}
// ONE-LABEL: @bytes
// ONE-NOT:     relax.quantize
// LIFTED-LABEL: @bytes_transform_params
// LIFTED:         "relax.permute_dims"
// LIFTED:         "relax.permute_dims"
// LIFTED-LABEL: func.func @bytes(
// LIFTED-NOT:     relax.permute_dims
// LIFTED:         return
func.func @bytes(%x: tensor<?x16xf32, {sym = ["m"]}> {relax.name = "x"}, %q: tensor<2x16x8xi8> {relax.name = "q"},
    %s: tensor<1x1x8xf32> {relax.name = "s"}, %u: tensor<1x16x8xui8> {relax.name = "u"})
    -> (tensor<?x12xf32, {sym = ["m"]}>, tensor<?x8xf16, {sym = ["m"]}>) attributes {relax.num_input = 1 : i64} {
  %z = "relax.full"() {value = 3 : i64} : () -> tensor<i8>
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<2x16x8xi8>, tensor<1x1x8xf32>, tensor<i8>) -> tensor<2x16x8xf32>
  %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 12 : i64}
      : (tensor<?x16xf32, {sym = ["m"]}>, tensor<2x16x8xf32>) -> tensor<?x12xf32, {sym = ["m"]}>
  %2 = "relax.dequantize"(%u, %s, %z) : (tensor<1x16x8xui8>, tensor<1x1x8xf32>, tensor<i8>) -> tensor<1x16x8xf32>
  %3 = "relax.packed_matmul"(%x, %2) {layout = "tile 8", n = 8 : i64, out_dtype = f16}
      : (tensor<?x16xf32, {sym = ["m"]}>, tensor<1x16x8xf32>) -> tensor<?x8xf16, {sym = ["m"]}>
  return %1, %3 : tensor<?x12xf32, {sym = ["m"]}>, tensor<?x8xf16, {sym = ["m"]}>
}

// Four bits: groups of rows have scales and zero points. Integers of a word are those of four rows, and four more: rows
// 0, 4, 1, 5... of eight.
// CHECK-LABEL: @nibbles
// CHECK:         %[[WIDE:.*]] = "relax.astype"(%arg0) {dtype = f32}
// CHECK:         "relax.reshape"(%{{.*}}) : (tensor<3x16xf32>) -> tensor<3x2x8xf32>
// CHECK:         "relax.quantize"(%[[WIDE]], %{{.*}}) {dtype = i8} : (tensor<3x16xf32>, tensor<3x2xf32>, tensor<i8>)
// CHECK-SAME:      -> tensor<3x16xi8>
// CHECK:         %[[RAISED:.*]] = "relax.add"(%{{.*}}) : (tensor<2x1x8xi8>, tensor<i8>) -> tensor<2x1x8xi8>
// CHECK-NEXT:    %[[ZERO:.*]] = "relax.repeat"(%[[RAISED]]) {axis = 1 : i64, repeats = 2 : i64}
// CHECK:         %[[W:\w+]] = "relax.pack_nibbles"(%{{\w+}}) {axis = 1 : i64, dtype = ui32,
// CHECK-SAME:      layout = "tile 8, rows 4, u4x8, offset 8"} : (tensor<2x16x8xui4>) -> tensor<2x2x8xui32>
// CHECK-NEXT:    "relax.quantized_matmul"(%{{\w+}}, %{{\w+}}, %{{\w+}}, %[[W]], %{{\w+}}, %[[ZERO]])
// CHECK-SAME:      {layout = "tile 8, rows 4, u4x8, offset 8", n = 12 : i64, out_dtype = bf16}
// LIFTED-LABEL: func.func @nibbles_transform_params
// PAIRS-LABEL: @nibbles
// PAIRS:         "relax.pack_nibbles"(%{{\w+}}) {axis = 1 : i64, dtype = ui32, layout
// PAIRS-SAME:      = "tile 8, rows 2, u4x8, offset 8"}
func.func @nibbles(%x: tensor<3x16xbf16> {relax.name = "x"}, %q: tensor<2x16x8xi4> {relax.name = "q"},
    %s: tensor<2x2x8xbf16> {relax.name = "s"}, %z: tensor<2x1x8xi4> {relax.name = "z"}) -> tensor<3x12xbf16>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<2x16x8xi4>, tensor<2x2x8xbf16>, tensor<2x1x8xi4>) -> tensor<2x16x8xbf16>
  %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 12 : i64} : (tensor<3x16xbf16>, tensor<2x16x8xbf16>)
      -> tensor<3x12xbf16>
  return %1 : tensor<3x12xbf16>
}

// Left alone: a weight that something else reads, f64, groups of four rows for words of eight, other integers, a weight
// that is computed when the model runs, a function that does not say what its weights are.
// CHECK-LABEL: @leaves
// CHECK-NOT:     quantized_matmul
// CHECK:         return
func.func @leaves(%x: tensor<3x16xf32> {relax.name = "x"}, %d: tensor<3x16xf64> {relax.name = "d"},
    %r: tensor<2x16x8xi8> {relax.name = "r"}, %q: tensor<2x16x8xi8> {relax.name = "q"}, %n: tensor<2x16x8xi4>
    {relax.name = "n"}, %w: tensor<2x16x8xi16> {relax.name = "w"}, %s: tensor<2x1x8xf32> {relax.name = "s"},
    %t: tensor<2x1x8xf64> {relax.name = "t"}, %u: tensor<2x4x8xf32> {relax.name = "u"})
    -> (tensor<2x16x8xf32>, tensor<3x12xf32>, tensor<3x12xf64>, tensor<3x12xf32>, tensor<3x12xf32>, tensor<3x12xf32>)
    attributes {relax.num_input = 3 : i64} {
  %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<2x16x8xi8>, tensor<2x1x8xf32>, tensor<i8>) -> tensor<2x16x8xf32>
  %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 12 : i64} : (tensor<3x16xf32>, tensor<2x16x8xf32>)
      -> tensor<3x12xf32>
  %2 = "relax.dequantize"(%q, %t, %z) : (tensor<2x16x8xi8>, tensor<2x1x8xf64>, tensor<i8>) -> tensor<2x16x8xf64>
  %3 = "relax.packed_matmul"(%d, %2) {layout = "tile 8", n = 12 : i64} : (tensor<3x16xf64>, tensor<2x16x8xf64>)
      -> tensor<3x12xf64>
  %4 = "relax.dequantize"(%n, %u, %z) : (tensor<2x16x8xi4>, tensor<2x4x8xf32>, tensor<i8>) -> tensor<2x16x8xf32>
  %5 = "relax.packed_matmul"(%x, %4) {layout = "tile 8", n = 12 : i64} : (tensor<3x16xf32>, tensor<2x16x8xf32>)
      -> tensor<3x12xf32>
  %6 = "relax.dequantize"(%w, %s, %z) : (tensor<2x16x8xi16>, tensor<2x1x8xf32>, tensor<i8>) -> tensor<2x16x8xf32>
  %7 = "relax.packed_matmul"(%x, %6) {layout = "tile 8", n = 12 : i64} : (tensor<3x16xf32>, tensor<2x16x8xf32>)
      -> tensor<3x12xf32>
  %8 = "relax.dequantize"(%r, %s, %z) : (tensor<2x16x8xi8>, tensor<2x1x8xf32>, tensor<i8>) -> tensor<2x16x8xf32>
  %9 = "relax.packed_matmul"(%x, %8) {layout = "tile 8", n = 12 : i64} : (tensor<3x16xf32>, tensor<2x16x8xf32>)
      -> tensor<3x12xf32>
  return %0, %1, %3, %5, %7, %9 : tensor<2x16x8xf32>, tensor<3x12xf32>, tensor<3x12xf64>, tensor<3x12xf32>,
      tensor<3x12xf32>, tensor<3x12xf32>
}

// CHECK-LABEL: @unknown
// CHECK-NOT:     quantized_matmul
func.func @unknown(%x: tensor<3x16xf32>, %q: tensor<2x16x8xi8>, %s: tensor<2x1x8xf32>) -> tensor<3x12xf32> {
  %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<2x16x8xi8>, tensor<2x1x8xf32>, tensor<i8>) -> tensor<2x16x8xf32>
  %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 12 : i64} : (tensor<3x16xf32>, tensor<2x16x8xf32>)
      -> tensor<3x12xf32>
  return %1 : tensor<3x12xf32>
}

// Rows that are bytes already: those without a sign get one, and the two products share them. What is taken away for
// the zero point is the scale, times how much the zero point is more, times the sums of columns. Zero points of 0 take
// nothing away.
// GIVEN-LABEL: @given
// GIVEN:         %[[BITS:.*]] = "relax.bitwise_xor"(%arg0,
// GIVEN-NEXT:    %[[X:.*]] = "relax.astype"(%[[BITS]]) {dtype = i8}
// GIVEN-NEXT:    %[[XS:.*]] = "relax.broadcast_to"(%arg2) : (tensor<f32>) -> tensor<2x?x1xf32, {sym = ["m"]}>
// GIVEN-NEXT:    %[[WIDE:.*]] = "relax.astype"(%[[X]]) {dtype = i32}
// GIVEN-NEXT:    %[[SUM:.*]] = "relax.sum"(%[[WIDE]]) {axis = array<i64: -1>, keepdims = true}
// GIVEN:         %[[Y:.*]] = "relax.quantized_matmul"(%[[X]], %[[XS]], %[[SUM]], {{.*}}) {layout = "tile 8, rows 4,
// GIVEN-SAME:      offset 128"
// GIVEN:         %[[LESS:.*]] = "relax.multiply"(%{{\w+}}, %[[V:\w+]]) : (tensor<f32>, tensor<12xf32>) ->
// GIVEN-SAME:      tensor<12xf32>
// GIVEN-NEXT:    "relax.subtract"(%[[Y]], %[[LESS]])
// GIVEN:         "relax.quantized_matmul"(%[[X]], %[[XS]], %[[SUM]],
// GIVEN:         "relax.quantized_matmul"(%arg1,
// GIVEN-NEXT:    return
// CHECK-LABEL: @given
// CHECK-NOT:     relax.quantize"
// CHECK:         return
// ONE-LABEL: @given
// ONE-NOT:     quantized_matmul
// ONE:         return
func.func @given(%r: tensor<2x?x16xui8, {sym = ["m"]}> {relax.name = "r"}, %t: tensor<3x16xi8> {relax.name = "t"},
    %s: tensor<f32> {relax.name = "s"}, %z: tensor<ui8> {relax.name = "z"}, %u: tensor<3x1xf32> {relax.name = "u"},
    %q: tensor<2x16x8xi8> {relax.name = "q"}, %c: tensor<2x1x8xf32> {relax.name = "c"},
    %p: tensor<2x1x8xi8> {relax.name = "p"})
    -> (tensor<2x?x12xf32, {sym = ["m"]}>, tensor<2x?x16xbf16, {sym = ["m"]}>, tensor<3x12xf32>)
    attributes {relax.num_input = 5 : i64} {
  %0 = "relax.dequantize"(%r, %s, %z) : (tensor<2x?x16xui8, {sym = ["m"]}>, tensor<f32>, tensor<ui8>)
      -> tensor<2x?x16xf32, {sym = ["m"]}>
  %1 = "relax.dequantize"(%q, %c, %p) : (tensor<2x16x8xi8>, tensor<2x1x8xf32>, tensor<2x1x8xi8>) -> tensor<2x16x8xf32>
  %2 = "relax.packed_matmul"(%0, %1) {layout = "tile 8", n = 12 : i64}
      : (tensor<2x?x16xf32, {sym = ["m"]}>, tensor<2x16x8xf32>) -> tensor<2x?x12xf32, {sym = ["m"]}>
  %3 = "relax.packed_matmul"(%0, %1) {layout = "tile 8", n = 16 : i64, out_dtype = bf16}
      : (tensor<2x?x16xf32, {sym = ["m"]}>, tensor<2x16x8xf32>) -> tensor<2x?x16xbf16, {sym = ["m"]}>
  %4 = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
  %5 = "relax.dequantize"(%t, %u, %4) : (tensor<3x16xi8>, tensor<3x1xf32>, tensor<i8>) -> tensor<3x16xf32>
  %6 = "relax.packed_matmul"(%5, %1) {layout = "tile 8", n = 12 : i64} : (tensor<3x16xf32>, tensor<2x16x8xf32>)
      -> tensor<3x12xf32>
  return %2, %3, %6 : tensor<2x?x12xf32, {sym = ["m"]}>, tensor<2x?x16xbf16, {sym = ["m"]}>, tensor<3x12xf32>
}

// Not given: a scale for each column or for two rows, and integers of 16 bits.
// GIVEN-LABEL: @not_given
// GIVEN-NOT:     quantized_matmul
// GIVEN:         return
func.func @not_given(%r: tensor<3x16xi8> {relax.name = "r"}, %w: tensor<3x16xi16> {relax.name = "w"},
    %f: tensor<4x16xi8> {relax.name = "f"}, %h: tensor<2x1xf32> {relax.name = "h"},
    %s: tensor<16xf32> {relax.name = "s"}, %q: tensor<2x16x8xi8> {relax.name = "q"}, %c: tensor<f32> {relax.name = "c"})
    -> (tensor<3x12xf32>, tensor<3x12xf32>, tensor<4x12xf32>) attributes {relax.num_input = 5 : i64} {
  %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
  %0 = "relax.dequantize"(%r, %s, %z) : (tensor<3x16xi8>, tensor<16xf32>, tensor<i8>) -> tensor<3x16xf32>
  %1 = "relax.dequantize"(%q, %c, %z) : (tensor<2x16x8xi8>, tensor<f32>, tensor<i8>) -> tensor<2x16x8xf32>
  %2 = "relax.packed_matmul"(%0, %1) {layout = "tile 8", n = 12 : i64} : (tensor<3x16xf32>, tensor<2x16x8xf32>)
      -> tensor<3x12xf32>
  %3 = "relax.dequantize"(%w, %c, %z) : (tensor<3x16xi16>, tensor<f32>, tensor<i8>) -> tensor<3x16xf32>
  %4 = "relax.packed_matmul"(%3, %1) {layout = "tile 8", n = 12 : i64} : (tensor<3x16xf32>, tensor<2x16x8xf32>)
      -> tensor<3x12xf32>
  %5 = "relax.dequantize"(%f, %h, %z) : (tensor<4x16xi8>, tensor<2x1xf32>, tensor<i8>) -> tensor<4x16xf32>
  %6 = "relax.packed_matmul"(%5, %1) {layout = "tile 8", n = 12 : i64} : (tensor<4x16xf32>, tensor<2x16x8xf32>)
      -> tensor<4x12xf32>
  return %2, %4, %6 : tensor<3x12xf32>, tensor<3x12xf32>, tensor<4x12xf32>
}

// Given by groups: rows have a scale for two of the weight's groups, or as many. Not given: eight groups of rows where
// the weight has four, and groups whose zero points take something away.
// GIVEN-LABEL: @given_groups
// GIVEN:         %[[TWICE:.*]] = "relax.repeat"(%arg1) {axis = 1 : i64, repeats = 2 : i64}
// GIVEN:         "relax.quantized_matmul"(%arg0, %[[TWICE]], %{{[0-9]+}},
// GIVEN:         "relax.quantized_matmul"(%arg0, %arg2, %{{[0-9]+}},
// GIVEN-NOT:     quantized_matmul
// GIVEN:         return
func.func @given_groups(%r: tensor<?x16xi8, {sym = ["m"]}> {relax.name = "r"},
    %two: tensor<?x2xf32, {sym = ["m"]}> {relax.name = "two"},
    %four: tensor<?x4xf32, {sym = ["m"]}> {relax.name = "four"},
    %eight: tensor<?x8xf32, {sym = ["m"]}> {relax.name = "eight"},
    %q: tensor<2x16x8xi8> {relax.name = "q"}, %s: tensor<2x4x8xf32> {relax.name = "s"})
    -> (tensor<?x12xf32, {sym = ["m"]}>, tensor<?x12xf32, {sym = ["m"]}>, tensor<?x12xf32, {sym = ["m"]}>,
        tensor<?x12xf32, {sym = ["m"]}>) attributes {relax.num_input = 4 : i64} {
  %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
  %p = "relax.full"() {value = 5 : i64} : () -> tensor<i8>
  %w = "relax.dequantize"(%q, %s, %z) : (tensor<2x16x8xi8>, tensor<2x4x8xf32>, tensor<i8>) -> tensor<2x16x8xf32>
  %0 = "relax.dequantize"(%r, %two, %z) : (tensor<?x16xi8, {sym = ["m"]}>, tensor<?x2xf32, {sym = ["m"]}>, tensor<i8>)
      -> tensor<?x16xf32, {sym = ["m"]}>
  %1 = "relax.packed_matmul"(%0, %w) {layout = "tile 8", n = 12 : i64}
      : (tensor<?x16xf32, {sym = ["m"]}>, tensor<2x16x8xf32>) -> tensor<?x12xf32, {sym = ["m"]}>
  %2 = "relax.dequantize"(%r, %four, %z) : (tensor<?x16xi8, {sym = ["m"]}>, tensor<?x4xf32, {sym = ["m"]}>, tensor<i8>)
      -> tensor<?x16xf32, {sym = ["m"]}>
  %3 = "relax.packed_matmul"(%2, %w) {layout = "tile 8", n = 12 : i64}
      : (tensor<?x16xf32, {sym = ["m"]}>, tensor<2x16x8xf32>) -> tensor<?x12xf32, {sym = ["m"]}>
  %4 = "relax.dequantize"(%r, %eight, %z) : (tensor<?x16xi8, {sym = ["m"]}>, tensor<?x8xf32, {sym = ["m"]}>, tensor<i8>)
      -> tensor<?x16xf32, {sym = ["m"]}>
  %5 = "relax.packed_matmul"(%4, %w) {layout = "tile 8", n = 12 : i64}
      : (tensor<?x16xf32, {sym = ["m"]}>, tensor<2x16x8xf32>) -> tensor<?x12xf32, {sym = ["m"]}>
  %6 = "relax.dequantize"(%r, %two, %p) : (tensor<?x16xi8, {sym = ["m"]}>, tensor<?x2xf32, {sym = ["m"]}>, tensor<i8>)
      -> tensor<?x16xf32, {sym = ["m"]}>
  %7 = "relax.packed_matmul"(%6, %w) {layout = "tile 8", n = 12 : i64}
      : (tensor<?x16xf32, {sym = ["m"]}>, tensor<2x16x8xf32>) -> tensor<?x12xf32, {sym = ["m"]}>
  return %1, %3, %5, %7 : tensor<?x12xf32, {sym = ["m"]}>, tensor<?x12xf32, {sym = ["m"]}>,
      tensor<?x12xf32, {sym = ["m"]}>, tensor<?x12xf32, {sym = ["m"]}>
}
