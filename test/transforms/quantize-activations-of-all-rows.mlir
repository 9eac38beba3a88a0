// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-activations{floats=false exact=true})' \
// RUN:   | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-activations{floats=false})' \
// RUN:   | filecheck %s --check-prefix=NONE

module attributes {relax.weight_layouts = {bf16_rows = 2 : i64, columns = 8 : i64, int8_exact = true,
                                           int8_rows = 4 : i64, int8_unsigned = true}} {
  // The first parts of all rows, then the second and the third ones.
  // CHECK-LABEL: @rows
  // CHECK:         "relax.concat"({{.*}}) {axis = 0 : i64} : {{.*}} -> tensor<15x16xi8>
  // CHECK:         %[[Y:.*]] = "relax.quantized_matmul"({{.*}}) {{.*}} -> tensor<15x12xf32>
  // CHECK-NEXT:    %[[PARTS:.*]] = "relax.reshape"(%[[Y]]) : (tensor<15x12xf32>) -> tensor<3x5x12xf32>
  // CHECK-NEXT:    "relax.sum"(%[[PARTS]]) {axis = array<i64: -3>} : (tensor<3x5x12xf32>) -> tensor<5x12xf32>
  // NONE-LABEL:  @rows
  // NONE-NOT:      relax.quantize
  // NONE:          return
  func.func @rows(%x: tensor<5x16xf32> {relax.name = "x"}, %q: tensor<2x16x8xi8> {relax.name = "q"},
      %s: tensor<2x1x8xf32> {relax.name = "s"}) -> tensor<5x12xf32> attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<2x16x8xi8>, tensor<2x1x8xf32>, tensor<i8>) -> tensor<2x16x8xf32>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 12 : i64} : (tensor<5x16xf32>, tensor<2x16x8xf32>)
        -> tensor<5x12xf32>
    return %1 : tensor<5x12xf32>
  }

  // Of how many rows there are is known when it runs.
  // CHECK-LABEL: @symbol
  // CHECK:         %[[Y:.*]] = "relax.quantized_matmul"
  // CHECK:         "relax.sum"({{.*}}) {axis = array<i64: -3>} : (tensor<2x3x?x12xf32, {{.*}}>) -> tensor<2x?x12xf32
  func.func @symbol(%x: tensor<2x?x16xf32, {sym = ["m"]}> {relax.name = "x"},
      %q: tensor<2x16x8xi8> {relax.name = "q"}, %s: tensor<2x1x8xf32> {relax.name = "s"})
      -> tensor<2x?x12xf32, {sym = ["m"]}> attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<2x16x8xi8>, tensor<2x1x8xf32>, tensor<i8>) -> tensor<2x16x8xf32>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 12 : i64}
        : (tensor<2x?x16xf32, {sym = ["m"]}>, tensor<2x16x8xf32>) -> tensor<2x?x12xf32, {sym = ["m"]}>
    return %1 : tensor<2x?x12xf32, {sym = ["m"]}>
  }

  // The weight of @rows has the layout that it has there; one that is multiplied with a single row only stays as it is.
  // CHECK-LABEL: @one_row
  // CHECK:         "relax.quantized_matmul"({{.*}}) {{.*}} -> tensor<3x12xf32>
  // CHECK:         "relax.packed_matmul"
  func.func @one_row(%x: tensor<1x16xf32> {relax.name = "x"}, %q: tensor<2x16x8xi8> {relax.name = "q"},
      %s: tensor<2x1x8xf32> {relax.name = "s"}, %r: tensor<2x16x8xi8> {relax.name = "r"},
      %t: tensor<2x1x8xf32> {relax.name = "t"}) -> (tensor<1x12xf32>, tensor<1x12xf32>)
      attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<2x16x8xi8>, tensor<2x1x8xf32>, tensor<i8>) -> tensor<2x16x8xf32>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 12 : i64} : (tensor<1x16xf32>, tensor<2x16x8xf32>)
        -> tensor<1x12xf32>
    %2 = "relax.dequantize"(%r, %t, %z) : (tensor<2x16x8xi8>, tensor<2x1x8xf32>, tensor<i8>) -> tensor<2x16x8xf32>
    %3 = "relax.packed_matmul"(%x, %2) {layout = "tile 8", n = 12 : i64} : (tensor<1x16xf32>, tensor<2x16x8xf32>)
        -> tensor<1x12xf32>
    return %1, %3 : tensor<1x12xf32>, tensor<1x12xf32>
  }

  // Groups with scales of their own stay products of floats.
  // CHECK-LABEL: @groups
  // CHECK:         "relax.packed_matmul"
  func.func @groups(%x: tensor<5x16xf32> {relax.name = "x"}, %q: tensor<2x16x8xi8> {relax.name = "q"},
      %s: tensor<2x2x8xf32> {relax.name = "s"}) -> tensor<5x12xf32> attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<2x16x8xi8>, tensor<2x2x8xf32>, tensor<i8>) -> tensor<2x16x8xf32>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 12 : i64} : (tensor<5x16xf32>, tensor<2x16x8xf32>)
        -> tensor<5x12xf32>
    return %1 : tensor<5x12xf32>
  }

  // So do rows of bf16, which an instruction multiplies.
  // CHECK-LABEL: @narrow
  // CHECK:         "relax.packed_matmul"
  func.func @narrow(%x: tensor<5x16xbf16> {relax.name = "x"}, %q: tensor<2x16x8xi8> {relax.name = "q"},
      %s: tensor<2x1x8xbf16> {relax.name = "s"}) -> tensor<5x12xbf16> attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<2x16x8xi8>, tensor<2x1x8xbf16>, tensor<i8>) -> tensor<2x16x8xbf16>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 12 : i64} : (tensor<5x16xbf16>, tensor<2x16x8xbf16>)
        -> tensor<5x12xbf16>
    return %1 : tensor<5x12xbf16>
  }
}
