// RUN: relax-opt %s --relax-quantize-activations | filecheck %s

// Of a target whose kernels sum bytes, and scale sums: columns lie along k, integers are signed, others stay.
// CHECK-LABEL: @bytes
// CHECK: "relax.quantized_matmul"({{.*}}) {layout = "tile 1, rows 4", n = 6 : i64}
// CHECK-SAME: tensor<6x4x1x4xi8>
// CHECK-LABEL: @nibbles
// CHECK-NOT: quantized_matmul
// CHECK-LABEL: @groups
// CHECK-NOT: quantized_matmul
module attributes {relax.weight_layouts = {bf16_rows = 1 : i64, columns = 1 : i64, int8_groups = false,
                                           int8_rows = 4 : i64, int8_unsigned = false, panels = false}} {
  func.func @bytes(%x: tensor<3x16xf32>, %q: tensor<6x16x1xi8>, %s: tensor<6x1x1xf32>) -> tensor<3x6xf32>
      attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<6x16x1xi8>, tensor<6x1x1xf32>, tensor<i8>) -> tensor<6x16x1xf32>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 1", n = 6 : i64} : (tensor<3x16xf32>, tensor<6x16x1xf32>)
        -> tensor<3x6xf32>
    return %1 : tensor<3x6xf32>
  }
  func.func @nibbles(%x: tensor<3x16xf32>, %q: tensor<6x16x1xi4>, %s: tensor<6x1x1xf32>) -> tensor<3x6xf32>
      attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<6x16x1xi4>, tensor<6x1x1xf32>, tensor<i8>) -> tensor<6x16x1xf32>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 1", n = 6 : i64} : (tensor<3x16xf32>, tensor<6x16x1xf32>)
        -> tensor<3x6xf32>
    return %1 : tensor<3x6xf32>
  }
  func.func @groups(%x: tensor<3x16xf32>, %q: tensor<6x16x1xi8>, %s: tensor<6x2x1xf32>) -> tensor<3x6xf32>
      attributes {relax.num_input = 1 : i64} {
    %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
    %0 = "relax.dequantize"(%q, %s, %z) : (tensor<6x16x1xi8>, tensor<6x2x1xf32>, tensor<i8>) -> tensor<6x16x1xf32>
    %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 1", n = 6 : i64} : (tensor<3x16xf32>, tensor<6x16x1xf32>)
        -> tensor<3x6xf32>
    return %1 : tensor<3x6xf32>
  }
}
