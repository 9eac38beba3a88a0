// RUN: relax-opt %s --relax-quantize-weights='bits=4 group=4 keep=k*' --relax-report 2>&1 | filecheck %s
// RUN: relax-opt %s --relax-quantize-weights | filecheck %s --check-prefix=EIGHT
// RUN: relax-opt %s --relax-quantize-weights='scale=f16' --relax-canonicalize | filecheck %s --check-prefix=HALF
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-quantize-weights{bits=4 group=4},\
// RUN:relax-pack-weights{tile=4},relax-sink-growth,relax-pack-nibbles,relax-lift-transform-params,relax-canonicalize,\
// RUN:cse)' | filecheck %s --check-prefix=LIFTED

// A scale per four elements of a column, from that of largest magnitude; of narrower floats the product is in f32.
// CHECK-LABEL: @main
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg1)
// CHECK-NEXT:    %1 = "relax.astype"(%0) {dtype = f32}
// CHECK-NEXT:    %2 = "relax.reshape"(%1) : (tensor<8x6xf32>) -> tensor<2x4x6xf32>
// CHECK-NEXT:    %3 = "relax.max"(%2) {axis = array<i64: 1>}
// CHECK-NEXT:    %4 = "relax.min"(%2) {axis = array<i64: 1>}
// CHECK-NEXT:    %5 = "relax.negative"(%4)
// CHECK-NEXT:    %6 = "relax.greater_equal"(%3, %5)
// CHECK-NEXT:    %7 = "relax.where"(%6, %3, %4)
// CHECK-NEXT:    %8 = "relax.full"() {value = -1.250000e-01 : f64}
// CHECK-NEXT:    %9 = "relax.multiply"(%7, %8)
// CHECK-NEXT:    %10 = "relax.full"() {value = 0 : i64}
// CHECK-NEXT:    %11 = "relax.equal"(%9, %10)
// CHECK-NEXT:    %12 = "relax.full"() {value = 1.1754943508222875E-38 : f64}
// CHECK-NEXT:    %[[S:.*]] = "relax.where"(%11, %12, %9)
// CHECK-NEXT:    %[[Z:.*]] = "relax.full"() {value = 0 : i64} : () -> tensor<i4>
// CHECK-NEXT:    %[[Q:.*]] = "relax.quantize"(%0, %[[S]], %[[Z]]) {dtype = i4}
// CHECK-NEXT:    %[[W:.*]] = "relax.dequantize"(%[[Q]], %[[S]], %[[Z]]) {relax.lift = "never"}
// CHECK-SAME:    : (tensor<8x6xi4>, tensor<2x6xf32>, tensor<i4>) -> tensor<8x6xf32>
// CHECK-NEXT:    %[[X:.*]] = "relax.astype"(%arg0) {dtype = f32}
// CHECK-NEXT:    %[[Y:.*]] = "relax.matmul"(%[[X]], %[[W]]) : (tensor<3x8xf32>, tensor<8x6xf32>) -> tensor<3x6xf32>
// CHECK-NEXT:    "relax.astype"(%[[Y]]) {dtype = bf16}
// CHECK:         "relax.matmul"({{.*}}, %[[W]])
// CHECK:         "relax.take"(%arg1, %arg2)
// EIGHT-LABEL: @main
// EIGHT:         "relax.reshape"({{.*}}) : (tensor<8x6xf32>) -> tensor<1x8x6xf32>
// EIGHT-NEXT:    "relax.abs"
// EIGHT-NEXT:    "relax.max"
// EIGHT-NEXT:    "relax.full"() {value = 0.0078740157480314959 : f64}
// EIGHT:         "relax.quantize"({{.*}}) {dtype = i8} : (tensor<8x6xbf16>, tensor<1x6xf32>, tensor<i8>)
// EIGHT-SAME:      -> tensor<8x6xi8>
// Scales are stored in f16, and integers made with these; elements are f32.
// HALF-LABEL: @main
// HALF:         %[[C:.*]] = "relax.clip"({{.*}}) {max = 6.550400e+04 : f64, min = -6.550400e+04 : f64}
// HALF-NEXT:    %[[H:.*]] = "relax.astype"(%[[C]]) {dtype = f16}
// HALF:         %[[S:.*]] = "relax.where"({{.*}}, %[[H]])
// HALF:         %[[Q:.*]] = "relax.quantize"({{.*}}, %[[S]], %{{.*}}) {dtype = i8}
// HALF-NEXT:    "relax.dequantize"(%[[Q]], %[[S]], %{{.*}}) {out_dtype = f32, relax.lift = "never"}
// Names of prepared weights are those of the integers and of their scales.
// LIFTED-LABEL: @main(
// LIFTED-SAME:    tensor<2x1x4xui32> {relax.name
// LIFTED-SAME:    = "w.permute_dims.quantize.pack_weight.astype.bitwise_xor.pack_nibbles"}
func.func @main(%x: tensor<3x8xbf16>, %w: tensor<6x8xbf16> {relax.name = "w"}, %i: tensor<2xi64> {relax.name = "i"})
    -> (tensor<3x6xbf16>, tensor<3x6xbf16>, tensor<2x8xbf16>) attributes {relax.num_input = 1 : i64} {
  %t = "relax.permute_dims"(%w) : (tensor<6x8xbf16>) -> tensor<8x6xbf16>
  %y = "relax.matmul"(%x, %t) : (tensor<3x8xbf16>, tensor<8x6xbf16>) -> tensor<3x6xbf16>
  %z = "relax.matmul"(%x, %t) : (tensor<3x8xbf16>, tensor<8x6xbf16>) -> tensor<3x6xbf16>
  %r = "relax.take"(%w, %i) {axis = 0 : i64} : (tensor<6x8xbf16>, tensor<2xi64>) -> tensor<2x8xbf16>
  return %y, %z, %r : tensor<3x6xbf16>, tensor<3x6xbf16>, tensor<2x8xbf16>
}

// In a loop, the weight is quantized before it.
// CHECK-LABEL: @loop
// CHECK:         "relax.dequantize"
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      "relax.matmul"
func.func @loop(%x: tensor<3x8xf32>, %w: tensor<8x8xf32> {relax.name = "v"}) -> tensor<3x8xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %4 = arith.constant 4 : index
  %y = scf.for %n = %0 to %4 step %1 iter_args(%h = %x) -> tensor<3x8xf32> {
    %z = "relax.matmul"(%h, %w) : (tensor<3x8xf32>, tensor<8x8xf32>) -> tensor<3x8xf32>
    scf.yield %z : tensor<3x8xf32>
  }
  return %y : tensor<3x8xf32>
}

// What stays: run-time factors, weights that are named, no matrices, other dtypes, columns that are no whole groups,
// and those that are integers already.
// CHECK-LABEL: @kept
// CHECK-NOT:     "relax.quantize"(%arg{{[0-57]}}
// CHECK:         return
func.func @kept(%x: tensor<3x8xf32>, %a: tensor<8x8xf32>, %k: tensor<8x8xf32> {relax.name = "k.w"}, %v: tensor<8xf32>
    {relax.name = "v"}, %d: tensor<8x8xf64> {relax.name = "d"}, %q: tensor<8x8xi8> {relax.name = "q"},
    %o: tensor<8x6xf32> {relax.name = "o"}, %p: tensor<6x8xf32> {relax.name = "p"}) -> tensor<3x8xf32>
    attributes {relax.num_input = 2 : i64} {
  %0 = "relax.matmul"(%x, %a) : (tensor<3x8xf32>, tensor<8x8xf32>) -> tensor<3x8xf32>
  %1 = "relax.matmul"(%0, %k) : (tensor<3x8xf32>, tensor<8x8xf32>) -> tensor<3x8xf32>
  %2 = "relax.matmul"(%1, %v) : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3xf32>
  %3 = "relax.astype"(%1) {dtype = f64} : (tensor<3x8xf32>) -> tensor<3x8xf64>
  %4 = "relax.matmul"(%3, %d) : (tensor<3x8xf64>, tensor<8x8xf64>) -> tensor<3x8xf64>
  %5 = "relax.astype"(%4) {dtype = f32} : (tensor<3x8xf64>) -> tensor<3x8xf32>
  %6 = "relax.astype"(%q) {dtype = f32} : (tensor<8x8xi8>) -> tensor<8x8xf32>
  %7 = "relax.matmul"(%5, %6) : (tensor<3x8xf32>, tensor<8x8xf32>) -> tensor<3x8xf32>
  %8 = "relax.matmul"(%7, %o) : (tensor<3x8xf32>, tensor<8x6xf32>) -> tensor<3x6xf32>
  %9 = "relax.matmul"(%8, %p) : (tensor<3x6xf32>, tensor<6x8xf32>) -> tensor<3x8xf32>
  return %9 : tensor<3x8xf32>
}

// A router stays, through what does not change places; the last matrix, which has more columns than rows, does not.
// CHECK-LABEL: @chosen
// CHECK-NOT:     "relax.quantize"(%arg1
// CHECK:         "relax.quantize"(%arg2
// CHECK:         return
func.func @chosen(%x: tensor<3x8xf32>, %r: tensor<8x4xf32> {relax.name = "router"}, %l: tensor<8x12xf32>
    {relax.name = "last"}, %b: tensor<4xf32> {relax.name = "bias"}) -> (tensor<3x4xi64>, tensor<3xi64>)
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %r) : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
  %1 = "relax.add"(%0, %b) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %2 = "relax.softmax"(%1) {axis = 1 : i64} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %3 = "relax.argsort"(%2) {axis = 1 : i64, descending = true} : (tensor<3x4xf32>) -> tensor<3x4xi64>
  %4 = "relax.matmul"(%x, %l) : (tensor<3x8xf32>, tensor<8x12xf32>) -> tensor<3x12xf32>
  %5 = "relax.argmax"(%4) {axis = 1 : i64} : (tensor<3x12xf32>) -> tensor<3xi64>
  return %3, %5 : tensor<3x4xi64>, tensor<3xi64>
}

// Experts that lie one above the other have scales of their own.
// EIGHT-LABEL: @experts
// EIGHT:         "relax.quantize"({{.*}}) {{.*}} : (tensor<8x6xf32>, tensor<2x6xf32>, tensor<i8>) -> tensor<8x6xi8>
func.func @experts(%x: tensor<3x8xf32>, %w: tensor<2x4x6xf32> {relax.name = "k.e"}) -> tensor<3x6xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.reshape"(%w) : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<3x8xf32>, tensor<8x6xf32>) -> tensor<3x6xf32>
  return %1 : tensor<3x6xf32>
}

// CHECK: @main: 1 weight quantized, 96 B -> 72 B, an element is off by at most 1/8 of its group's largest
// CHECK: @loop: 1 weight quantized
// CHECK: @kept: 1 weight quantized, 192 B -> 72 B, {{.*}}; 4 weights kept
// CHECK-NEXT: o  192 B -> 72 B  4 bits in groups of 4
// CHECK: @chosen: 1 weight quantized
// CHECK: router {{.*}} what is computed with it is sorted, or searched for the largest
