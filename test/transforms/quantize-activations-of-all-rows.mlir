// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-activations{floats=false exact=true})' \
// RUN:   | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-activations{floats=false})' \
// RUN:   | filecheck %s --check-prefix=NONE

module attributes {relax.weight_layouts = {bf16_rows = 2 : i64, columns = 8 : i64, int8_exact = 16 : i64,
                                           int8_rows = 4 : i64, int8_unsigned = true}} {
  // The first parts of all rows, the second and the third ones, whose products the kernel adds.
  // CHECK-LABEL: @rows
  // CHECK:         "relax.concat"({{.*}}) {axis = 0 : i64} : {{.*}} -> tensor<3x5x16xi8>
  // CHECK:         %[[SCALES:.*]] = "relax.concat"({{.*}}) {axis = 0 : i64} : {{.*}} -> tensor<3x5x1xf32>
  // CHECK:         "relax.quantized_matmul"(%{{.*}}, %[[SCALES]],
  // CHECK-SAME:      {layout = "tile 8, rows 4, offset 128", n = 260 : i64, parts = true}
  // CHECK-SAME:      -> tensor<5x260xf32>
  // NONE-LABEL:  @rows
  // NONE-NOT:      relax.quantize
  // NONE:          return
  func.func @rows(%x: tensor<5x16xf32> {relax.name = "x"}, %q: tensor<33x16x8xi8> {relax.name = "q"},
      %s: tensor<33x1x8xf32> {relax.name = "s"}) -> tensor<5x260xf32> attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<33x16x8xi8>, tensor<33x1x8xf32>, tensor<i8>) -> tensor<33x16x8xf32>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 260 : i64} : (tensor<5x16xf32>, tensor<33x16x8xf32>)
        -> tensor<5x260xf32>
    return %1 : tensor<5x260xf32>
  }

  // Of how many rows there are is known when it runs.
  // CHECK-LABEL: @symbol
  // CHECK:         "relax.quantized_matmul"({{.*}}) {{.*}}parts = true} : (tensor<3x2x?x16xi8,
  // CHECK-SAME:      -> tensor<2x?x260xf32
  func.func @symbol(%x: tensor<2x?x16xf32, {sym = ["m"]}> {relax.name = "x"},
      %q: tensor<33x16x8xi8> {relax.name = "q"}, %s: tensor<33x1x8xf32> {relax.name = "s"})
      -> tensor<2x?x260xf32, {sym = ["m"]}> attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<33x16x8xi8>, tensor<33x1x8xf32>, tensor<i8>) -> tensor<33x16x8xf32>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 260 : i64}
        : (tensor<2x?x16xf32, {sym = ["m"]}>, tensor<33x16x8xf32>) -> tensor<2x?x260xf32, {sym = ["m"]}>
    return %1 : tensor<2x?x260xf32, {sym = ["m"]}>
  }

  // Of one row, too.
  // CHECK-LABEL: @one_row
  // CHECK:         %[[Y:.*]] = "relax.quantized_matmul"({{.*}}) {layout = "tile 8, rows 4, offset 128", n = 260 : i64}
  // CHECK-SAME:      -> tensor<3x260xf32>
  // CHECK-NEXT:    "relax.sum"(%[[Y]]) {axis = array<i64: -2>, keepdims = true}
  // CHECK-SAME:      -> tensor<1x260xf32>
  func.func @one_row(%x: tensor<1x16xf32> {relax.name = "x"}, %q: tensor<33x16x8xi8> {relax.name = "r"},
      %s: tensor<33x1x8xf32> {relax.name = "t"}) -> tensor<1x260xf32> attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<33x16x8xi8>, tensor<33x1x8xf32>, tensor<i8>) -> tensor<33x16x8xf32>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 260 : i64} : (tensor<1x16xf32>, tensor<33x16x8xf32>)
        -> tensor<1x260xf32>
    return %1 : tensor<1x260xf32>
  }

  // Of two rows the parts are rows: a tile reads the weight once.
  // CHECK-LABEL: @two_rows
  // CHECK:         %[[Y:.*]] = "relax.quantized_matmul"({{.*}}) {layout = "tile 8, rows 4, offset 128", n = 260 : i64}
  // CHECK-SAME:      -> tensor<6x260xf32>
  // CHECK-NEXT:    %[[PARTS:.*]] = "relax.reshape"(%[[Y]]) : (tensor<6x260xf32>) -> tensor<3x2x260xf32>
  // CHECK-NEXT:    "relax.sum"(%[[PARTS]]) {axis = array<i64: -3>} : (tensor<3x2x260xf32>) -> tensor<2x260xf32>
  func.func @two_rows(%x: tensor<2x16xf32> {relax.name = "x"}, %q: tensor<33x16x8xi8> {relax.name = "q2"},
      %s: tensor<33x1x8xf32> {relax.name = "s2"}) -> tensor<2x260xf32> attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<33x16x8xi8>, tensor<33x1x8xf32>, tensor<i8>) -> tensor<33x16x8xf32>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 260 : i64} : (tensor<2x16xf32>, tensor<33x16x8xf32>)
        -> tensor<2x260xf32>
    return %1 : tensor<2x260xf32>
  }

  // Rows in groups have parts, too, and end where they did; one of each group on the average is three side by side.
  // CHECK-LABEL: @rows_of_groups
  // CHECK:         "relax.quantized_grouped_matmul"({{.*}}, %arg2)
  // CHECK-SAME:      {layout = "tile 8, rows 4, offset 128", n = 512 : i64, parts = true}
  // CHECK-SAME:      : (tensor<3x?x16xi8, {{.*}} -> tensor<?x256xf32
  // CHECK:         "relax.quantized_grouped_matmul"({{.*}}) {layout = "tile 8, rows 4, offset 128", n = 512 : i64}
  // CHECK-SAME:      -> tensor<6x256xf32>
  func.func @rows_of_groups(%x: tensor<?x16xf32, {sym = ["m"]}> {relax.name = "x"},
      %y: tensor<2x16xf32> {relax.name = "y"}, %ends: tensor<2xi64> {relax.name = "ends"},
      %q: tensor<64x16x8xi8> {relax.name = "g"}, %s: tensor<64x1x8xf32> {relax.name = "gs"})
      -> (tensor<?x256xf32, {sym = ["m"]}>, tensor<2x256xf32>)
      attributes {relax.num_input = 3 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<64x16x8xi8>, tensor<64x1x8xf32>, tensor<i8>) -> tensor<64x16x8xf32>
    %1 = "relax.packed_grouped_matmul"(%x, %0, %ends) {layout = "tile 8", n = 512 : i64}
        : (tensor<?x16xf32, {sym = ["m"]}>, tensor<64x16x8xf32>, tensor<2xi64>) -> tensor<?x256xf32, {sym = ["m"]}>
    %2 = "relax.packed_grouped_matmul"(%y, %0, %ends) {layout = "tile 8", n = 512 : i64}
        : (tensor<2x16xf32>, tensor<64x16x8xf32>, tensor<2xi64>) -> tensor<2x256xf32>
    return %1, %2 : tensor<?x256xf32, {sym = ["m"]}>, tensor<2x256xf32>
  }

  // Of few columns rows stay floats: to split them takes longer than is gained.
  // CHECK-LABEL: @few_columns
  // CHECK-NOT:     relax.quantize
  // CHECK:         return
  func.func @few_columns(%x: tensor<5x16xf32> {relax.name = "x"}, %q: tensor<31x16x8xi8> {relax.name = "f"},
      %s: tensor<31x1x8xf32> {relax.name = "h"}) -> tensor<5x248xf32> attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<31x16x8xi8>, tensor<31x1x8xf32>, tensor<i8>) -> tensor<31x16x8xf32>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 248 : i64} : (tensor<5x16xf32>, tensor<31x16x8xf32>)
        -> tensor<5x248xf32>
    return %1 : tensor<5x248xf32>
  }

  // Integers of four bits in groups, as long as layouts want them. A row has one scale for all groups.
  // CHECK-LABEL: @long_groups
  // CHECK:         %[[SCALES:.*]] = "relax.concat"({{.*}}) {axis = 0 : i64} : {{.*}} -> tensor<3x5x1xf32>
  // CHECK:         %[[SUMS:.*]] = "relax.sum"({{.*}}) {{.*}} -> tensor<3x5x2xi32>
  // CHECK:         "relax.quantized_matmul"(%{{.*}}, %[[SCALES]], %[[SUMS]],
  // CHECK-SAME:      {layout = "tile 8, rows 4, u4x8, offset 8", n = 260 : i64, parts = true}
  func.func @long_groups(%x: tensor<5x32xf32> {relax.name = "x"}, %q: tensor<33x32x8xi4> {relax.name = "l"},
      %s: tensor<33x2x8xf32> {relax.name = "ls"}) -> tensor<5x260xf32> attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i4>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<33x32x8xi4>, tensor<33x2x8xf32>, tensor<i4>) -> tensor<33x32x8xf32>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 260 : i64} : (tensor<5x32xf32>, tensor<33x32x8xf32>)
        -> tensor<5x260xf32>
    return %1 : tensor<5x260xf32>
  }

  // Shorter ones stay products of floats.
  // CHECK-LABEL: @groups
  // CHECK:         "relax.packed_matmul"
  func.func @groups(%x: tensor<5x16xf32> {relax.name = "x"}, %q: tensor<33x16x8xi8> {relax.name = "q"},
      %s: tensor<33x2x8xf32> {relax.name = "s"}) -> tensor<5x260xf32> attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<33x16x8xi8>, tensor<33x2x8xf32>, tensor<i8>) -> tensor<33x16x8xf32>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 260 : i64} : (tensor<5x16xf32>, tensor<33x16x8xf32>)
        -> tensor<5x260xf32>
    return %1 : tensor<5x260xf32>
  }

  // So do rows of bf16, which an instruction multiplies.
  // CHECK-LABEL: @narrow
  // CHECK:         "relax.packed_matmul"
  func.func @narrow(%x: tensor<5x16xbf16> {relax.name = "x"}, %q: tensor<33x16x8xi8> {relax.name = "q"},
      %s: tensor<33x1x8xbf16> {relax.name = "s"}) -> tensor<5x260xbf16> attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<33x16x8xi8>, tensor<33x1x8xbf16>, tensor<i8>) -> tensor<33x16x8xbf16>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 260 : i64} : (tensor<5x16xbf16>, tensor<33x16x8xbf16>)
        -> tensor<5x260xbf16>
    return %1 : tensor<5x260xbf16>
  }
}
