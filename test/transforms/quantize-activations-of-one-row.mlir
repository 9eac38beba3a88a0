// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-activations{floats=false exact=true})' \
// RUN:   | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-activations{floats=false})' \
// RUN:   | filecheck %s --check-prefix=NONE
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-activations{rows=2 floats=false exact=true})' \
// RUN:   | filecheck %s --check-prefix=NONE
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-activations{exact=true})' \
// RUN:   | filecheck %s --check-prefix=ROUNDED

// A row as three of integers, each of what the one before left; two products share them.
// CHECK-LABEL: @decode
// CHECK:         %[[ABS:.*]] = "relax.abs"(%arg0)
// CHECK-NEXT:    %[[MAX:.*]] = "relax.max"(%[[ABS]]) {axis = array<i64: -1>, keepdims = true}
// CHECK-SAME:      -> tensor<1x1x1xf32>
// CHECK:         %[[CLAMPED:.*]] = "relax.maximum"(%[[MAX]]
// CHECK:         %[[S0:.*]] = "relax.multiply"(%[[CLAMPED]]
// CHECK-NEXT:    %[[Q0:.*]] = "relax.quantize"(%arg0, %[[S0]], %[[ZERO:.*]]) {dtype = i8}
// CHECK-NEXT:    %[[X0:.*]] = "relax.dequantize"(%[[Q0]], %[[S0]], %[[ZERO]])
// CHECK-NEXT:    %[[R0:.*]] = "relax.subtract"(%arg0, %[[X0]])
// CHECK:         %[[S1:.*]] = "relax.multiply"(%[[S0]]
// CHECK-NEXT:    %[[Q1:.*]] = "relax.quantize"(%[[R0]], %[[S1]], %[[ZERO]]) {dtype = i8}
// CHECK-NEXT:    %[[X1:.*]] = "relax.dequantize"(%[[Q1]], %[[S1]], %[[ZERO]])
// CHECK-NEXT:    %[[R1:.*]] = "relax.subtract"(%[[R0]], %[[X1]])
// CHECK:         %[[S2:.*]] = "relax.multiply"(%[[S1]]
// CHECK-NEXT:    %[[Q2:.*]] = "relax.quantize"(%[[R1]], %[[S2]], %[[ZERO]]) {dtype = i8}
// CHECK-NEXT:    %[[Q01:.*]] = "relax.concat"(%[[Q0]], %[[Q1]]) {axis = 1 : i64}
// CHECK-NEXT:    %[[Q:.*]] = "relax.concat"(%[[Q01]], %[[Q2]]) {axis = 1 : i64} : {{.*}} -> tensor<1x3x16xi8>
// CHECK-NEXT:    %[[S01:.*]] = "relax.concat"(%[[S0]], %[[S1]]) {axis = 1 : i64}
// CHECK-NEXT:    %[[S:.*]] = "relax.concat"(%[[S01]], %[[S2]]) {axis = 1 : i64} : {{.*}} -> tensor<1x3x1xf32>
// CHECK:         %[[SUM:.*]] = "relax.sum"({{.*}}) {axis = array<i64: -1>} : {{.*}} -> tensor<1x3x2xi32>
// CHECK:         %[[W:.*]] = "relax.pack_nibbles"({{.*}}) {{{.*}}layout = "tile 8, rows 4, u4x8, offset 8"}
// CHECK:         %[[Y:.*]] = "relax.quantized_matmul"(%[[Q]], %[[S]], %[[SUM]], %[[W]], %arg2
// CHECK-SAME:      {layout = "tile 8, rows 4, u4x8, offset 8", n = 12 : i64}
// CHECK-NEXT:    "relax.sum"(%[[Y]]) {axis = array<i64: -2>, keepdims = true}
// CHECK-SAME:      (tensor<1x3x12xf32>) -> tensor<1x1x12xf32>
// CHECK:         "relax.quantized_matmul"(%[[Q]], %[[S]], %[[SUM]]
// CHECK-NEXT:    "relax.sum"
// NONE-LABEL:  @decode
// NONE-NOT:      relax.quantize
// NONE:          return
// ROUNDED-LABEL: @decode
// ROUNDED:       "relax.quantized_matmul"({{.*}}) {{.*}} -> tensor<1x1x12xf32>
func.func @decode(%x: tensor<1x1x16xf32> {relax.name = "x"}, %q: tensor<2x16x8xi4> {relax.name = "q"},
    %s: tensor<2x2x8xf32> {relax.name = "s"}, %r: tensor<1x16x8xi4> {relax.name = "r"},
    %t: tensor<1x2x8xf32> {relax.name = "t"}) -> (tensor<1x1x12xf32>, tensor<1x1x8xf32>)
    attributes {relax.num_input = 1 : i64} {
  %z = "relax.full"() {value = 0 : i64} : () -> tensor<i4>
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<2x16x8xi4>, tensor<2x2x8xf32>, tensor<i4>) -> tensor<2x16x8xf32>
  %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 12 : i64} : (tensor<1x1x16xf32>, tensor<2x16x8xf32>)
      -> tensor<1x1x12xf32>
  %2 = "relax.dequantize"(%r, %t, %z) : (tensor<1x16x8xi4>, tensor<1x2x8xf32>, tensor<i4>) -> tensor<1x16x8xf32>
  %3 = "relax.packed_matmul"(%x, %2) {layout = "tile 8", n = 8 : i64} : (tensor<1x1x16xf32>, tensor<1x16x8xf32>)
      -> tensor<1x1x8xf32>
  return %1, %3 : tensor<1x1x12xf32>, tensor<1x1x8xf32>
}

// Two say as much as bf16 does. The sum is rounded once.
// CHECK-LABEL: @narrow
// CHECK:         %[[Y:.*]] = "relax.quantized_matmul"({{.*}}) {{.*}} -> tensor<2x12xf32>
// CHECK-NEXT:    %[[SUM:.*]] = "relax.sum"(%[[Y]]) {axis = array<i64: -2>, keepdims = true}
// CHECK-NEXT:    "relax.astype"(%[[SUM]]) {dtype = bf16}
func.func @narrow(%x: tensor<1x16xbf16> {relax.name = "x"}, %q: tensor<2x16x8xi4> {relax.name = "q"},
    %s: tensor<2x2x8xbf16> {relax.name = "s"}) -> tensor<1x12xbf16> attributes {relax.num_input = 1 : i64} {
  %z = "relax.full"() {value = 0 : i64} : () -> tensor<i4>
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<2x16x8xi4>, tensor<2x2x8xbf16>, tensor<i4>) -> tensor<2x16x8xbf16>
  %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 12 : i64} : (tensor<1x16xbf16>, tensor<2x16x8xbf16>)
      -> tensor<1x12xbf16>
  return %1 : tensor<1x12xbf16>
}

// Left alone: several rows, rows of unknown number, f64, a weight of bytes.
// CHECK-LABEL: @leaves
// CHECK-NOT:     relax.quantize
// CHECK:         return
func.func @leaves(%x: tensor<2x16xf32> {relax.name = "x"}, %m: tensor<?x16xf32, {sym = ["m"]}> {relax.name = "m"},
    %d: tensor<1x16xf64> {relax.name = "d"}, %o: tensor<1x16xf32> {relax.name = "o"},
    %q: tensor<2x16x8xi4> {relax.name = "q"}, %b: tensor<2x16x8xi8> {relax.name = "b"},
    %s: tensor<2x2x8xf32> {relax.name = "s"}, %t: tensor<2x2x8xf64> {relax.name = "t"})
    -> (tensor<2x12xf32>, tensor<?x12xf32, {sym = ["m"]}>, tensor<1x12xf64>, tensor<1x12xf32>)
    attributes {relax.num_input = 4 : i64} {
  %z = "relax.full"() {value = 0 : i64} : () -> tensor<i4>
  %y = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<2x16x8xi4>, tensor<2x2x8xf32>, tensor<i4>) -> tensor<2x16x8xf32>
  %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 12 : i64} : (tensor<2x16xf32>, tensor<2x16x8xf32>)
      -> tensor<2x12xf32>
  %2 = "relax.packed_matmul"(%m, %0) {layout = "tile 8", n = 12 : i64}
      : (tensor<?x16xf32, {sym = ["m"]}>, tensor<2x16x8xf32>) -> tensor<?x12xf32, {sym = ["m"]}>
  %3 = "relax.dequantize"(%q, %t, %z) : (tensor<2x16x8xi4>, tensor<2x2x8xf64>, tensor<i4>) -> tensor<2x16x8xf64>
  %4 = "relax.packed_matmul"(%d, %3) {layout = "tile 8", n = 12 : i64} : (tensor<1x16xf64>, tensor<2x16x8xf64>)
      -> tensor<1x12xf64>
  %5 = "relax.dequantize"(%b, %s, %y) : (tensor<2x16x8xi8>, tensor<2x2x8xf32>, tensor<i8>) -> tensor<2x16x8xf32>
  %6 = "relax.packed_matmul"(%o, %5) {layout = "tile 8", n = 12 : i64} : (tensor<1x16xf32>, tensor<2x16x8xf32>)
      -> tensor<1x12xf32>
  return %1, %2, %4, %6 : tensor<2x12xf32>, tensor<?x12xf32, {sym = ["m"]}>, tensor<1x12xf64>, tensor<1x12xf32>
}
