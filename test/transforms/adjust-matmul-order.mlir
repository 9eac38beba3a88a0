// RUN: relax-opt %s --relax-adjust-matmul-order | filecheck %s

// x @ (a @ b) of narrow weights: the product would be larger than both, to keep and to multiply with.
// CHECK-LABEL: @narrow_weights(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg0, %arg1) : ({{.*}}) -> tensor<?x4xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%0, %arg2) : ({{.*}}) -> tensor<?x64xf32
// CHECK-NEXT:    return %1
func.func @narrow_weights(%x: tensor<?x64xf32, {sym = ["n"]}> {relax.name = "x"}, %a: tensor<64x4xf32>
    {relax.name = "a"}, %b: tensor<4x64xf32> {relax.name = "b"}) -> tensor<?x64xf32, {sym = ["n"]}>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%a, %b) : (tensor<64x4xf32>, tensor<4x64xf32>) -> tensor<64x64xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<?x64xf32, {sym = ["n"]}>, tensor<64x64xf32>) -> tensor<?x64xf32, {sym = ["n"]}>
  return %1 : tensor<?x64xf32, {sym = ["n"]}>
}

// (x @ a) @ b of wide weights: they are merged, for all numbers of rows.
// CHECK-LABEL: @wide_weights(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg1, %arg2) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %0) : ({{.*}}) -> tensor<?x4xf32
// CHECK-NEXT:    return %1
func.func @wide_weights(%x: tensor<?x4xf32, {sym = ["n"]}> {relax.name = "x"}, %a: tensor<4x64xf32> {relax.name = "a"},
    %b: tensor<64x4xf32> {relax.name = "b"}) -> tensor<?x4xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %a) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x64xf32>) -> tensor<?x64xf32, {sym = ["n"]}>
  %1 = "relax.matmul"(%0, %b) : (tensor<?x64xf32, {sym = ["n"]}>, tensor<64x4xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
  return %1 : tensor<?x4xf32, {sym = ["n"]}>
}

// A chain of square weights becomes one.
// CHECK-LABEL: @square_weights(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg1, %arg2) : ({{.*}}) -> tensor<8x8xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%0, %arg3) : ({{.*}}) -> tensor<8x8xf32
// CHECK-NEXT:    %2 = "relax.matmul"(%arg0, %1) : ({{.*}}) -> tensor<2x8xf32
// CHECK-NEXT:    return %2
func.func @square_weights(%x: tensor<2x8xf32> {relax.name = "x"}, %a: tensor<8x8xf32> {relax.name = "a"},
    %b: tensor<8x8xf32> {relax.name = "b"}, %c: tensor<8x8xf32> {relax.name = "c"}) -> tensor<2x8xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %a) : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %1 = "relax.matmul"(%0, %b) : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %2 = "relax.matmul"(%1, %c) : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  return %2 : tensor<2x8xf32>
}

// A product of weights that lifting leaves to inference costs what it costs there.
// CHECK-LABEL: @not_lifted(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg0, %arg1) : ({{.*}}) -> tensor<?x64xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%0, %arg2) : ({{.*}}) -> tensor<?x64xf32
// CHECK-NEXT:    return %1
func.func @not_lifted(%x: tensor<?x64xf32, {sym = ["n"]}> {relax.name = "x"}, %a: tensor<64x64xf32>
    {relax.name = "a", relax.lift = "never"}, %b: tensor<64x64xf32> {relax.name = "b"})
    -> tensor<?x64xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64, relax.symbol_ranges = {n = [1, 32]}} {
  %0 = "relax.matmul"(%a, %b) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<?x64xf32, {sym = ["n"]}>, tensor<64x64xf32>) -> tensor<?x64xf32, {sym = ["n"]}>
  return %1 : tensor<?x64xf32, {sym = ["n"]}>
}

// Weights on the left as well.
// CHECK-LABEL: @weights_on_the_left(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg2, %arg0) : ({{.*}}) -> tensor<4x2xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%arg1, %0) : ({{.*}}) -> tensor<64x2xf32
// CHECK-NEXT:    return %1
func.func @weights_on_the_left(%x: tensor<64x2xf32> {relax.name = "x"}, %a: tensor<64x4xf32> {relax.name = "a"},
    %b: tensor<4x64xf32> {relax.name = "b"}) -> tensor<64x2xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%a, %b) : (tensor<64x4xf32>, tensor<4x64xf32>) -> tensor<64x64xf32>
  %1 = "relax.matmul"(%0, %x) : (tensor<64x64xf32>, tensor<64x2xf32>) -> tensor<64x2xf32>
  return %1 : tensor<64x2xf32>
}

// The product is transposed, as weights of torch are: x @ (b @ a)^T is (x @ a^T) @ b^T.
// CHECK-LABEL: @transposed(
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg1) {axes = array<i64: 1, 0>}
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %0) : ({{.*}}) -> tensor<2x4xf32
// CHECK-NEXT:    %2 = "relax.permute_dims"(%arg2) {axes = array<i64: 1, 0>}
// CHECK-NEXT:    %3 = "relax.matmul"(%1, %2) : ({{.*}}) -> tensor<2x64xf32
// CHECK-NEXT:    return %3
func.func @transposed(%x: tensor<2x64xf32> {relax.name = "x"}, %a: tensor<4x64xf32> {relax.name = "a"},
    %b: tensor<64x4xf32> {relax.name = "b"}) -> tensor<2x64xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%b, %a) : (tensor<64x4xf32>, tensor<4x64xf32>) -> tensor<64x64xf32>
  %1 = "relax.permute_dims"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "relax.matmul"(%x, %1) : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %2 : tensor<2x64xf32>
}

// Run-time values: few rows, known from the symbol's range; the outer product keeps its accumulator.
// CHECK-LABEL: @few_rows(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg0, %arg1) : ({{.*}}) -> tensor<?x8xf16
// CHECK-NEXT:    %1 = "relax.matmul"(%0, %arg2) {out_dtype = f32} : ({{.*}}) -> tensor<?x64xf32
// CHECK-NEXT:    return %1
func.func @few_rows(%x: tensor<?x64xf16, {sym = ["n"]}> {relax.name = "x"}, %a: tensor<64x8xf16> {relax.name = "a"},
    %b: tensor<8x64xf16> {relax.name = "b"}, %w: tensor<4xf16> {relax.name = "w"}) -> tensor<?x64xf32, {sym = ["n"]}>
    attributes {relax.num_input = 3 : i64, relax.symbol_ranges = {n = [1, 16]}} {
  %0 = "relax.matmul"(%a, %b) : (tensor<64x8xf16>, tensor<8x64xf16>) -> tensor<64x64xf16>
  %1 = "relax.matmul"(%x, %0) {out_dtype = f32} : (tensor<?x64xf16, {sym = ["n"]}>, tensor<64x64xf16>)
      -> tensor<?x64xf32, {sym = ["n"]}>
  return %1 : tensor<?x64xf32, {sym = ["n"]}>
}

// Left alone: which order is better depends on the number of rows.
// CHECK-LABEL: @depends(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg0, %arg1) : ({{.*}}) -> tensor<?x32xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%0, %arg2) : ({{.*}}) -> tensor<?x16xf32
// CHECK-NEXT:    return %1
func.func @depends(%x: tensor<?x16xf32, {sym = ["n"]}> {relax.name = "x"}, %a: tensor<16x32xf32> {relax.name = "a"},
    %b: tensor<32x16xf32> {relax.name = "b"}, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<?x16xf32, {sym = ["n"]}>
    attributes {relax.num_input = 3 : i64} {
  %0 = "relax.matmul"(%x, %a) : (tensor<?x16xf32, {sym = ["n"]}>, tensor<16x32xf32>) -> tensor<?x32xf32, {sym = ["n"]}>
  %1 = "relax.matmul"(%0, %b) : (tensor<?x32xf32, {sym = ["n"]}>, tensor<32x16xf32>) -> tensor<?x16xf32, {sym = ["n"]}>
  return %1 : tensor<?x16xf32, {sym = ["n"]}>
}

// Many rows: the same product, the matrices first.
// CHECK-LABEL: @many_rows(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg1, %arg2) : ({{.*}}) -> tensor<16x16xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %0) : ({{.*}}) -> tensor<?x16xf32
// CHECK-NEXT:    return %1
func.func @many_rows(%x: tensor<?x16xf32, {sym = ["n"]}> {relax.name = "x"}, %a: tensor<16x32xf32> {relax.name = "a"},
    %b: tensor<32x16xf32> {relax.name = "b"}, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<?x16xf32, {sym = ["n"]}>
    attributes {relax.num_input = 3 : i64, relax.symbol_ranges = {n = [32]}} {
  %0 = "relax.matmul"(%x, %a) : (tensor<?x16xf32, {sym = ["n"]}>, tensor<16x32xf32>) -> tensor<?x32xf32, {sym = ["n"]}>
  %1 = "relax.matmul"(%0, %b) : (tensor<?x32xf32, {sym = ["n"]}>, tensor<32x16xf32>) -> tensor<?x16xf32, {sym = ["n"]}>
  return %1 : tensor<?x16xf32, {sym = ["n"]}>
}

// Vectors at the ends, and stacks that broadcast.
// CHECK-LABEL: @vectors_and_stacks(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg0, %arg2) : ({{.*}}) -> tensor<4xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%0, %arg3) : ({{.*}}) -> tensor<64xf32
// CHECK-NEXT:    %2 = "relax.matmul"(%arg3, %arg0) : ({{.*}}) -> tensor<4xf32
// CHECK-NEXT:    %3 = "relax.matmul"(%arg2, %2) : ({{.*}}) -> tensor<64xf32
// CHECK-NEXT:    %4 = "relax.matmul"(%arg1, %arg2) : ({{.*}}) -> tensor<3x2x4xf32
// CHECK-NEXT:    %5 = "relax.matmul"(%4, %arg4) : ({{.*}}) -> tensor<3x2x64xf32
// CHECK-NEXT:    return %1, %3, %5
func.func @vectors_and_stacks(%v: tensor<64xf32> {relax.name = "v"}, %x: tensor<3x2x64xf32> {relax.name = "x"},
    %a: tensor<64x4xf32> {relax.name = "a"}, %b: tensor<4x64xf32> {relax.name = "b"}, %c: tensor<3x4x64xf32>
    {relax.name = "c"}) -> (tensor<64xf32>, tensor<64xf32>, tensor<3x2x64xf32>) attributes {relax.num_input = 2 : i64} {
  %0 = "relax.matmul"(%a, %b) : (tensor<64x4xf32>, tensor<4x64xf32>) -> tensor<64x64xf32>
  %1 = "relax.matmul"(%v, %0) : (tensor<64xf32>, tensor<64x64xf32>) -> tensor<64xf32>
  %2 = "relax.matmul"(%0, %v) : (tensor<64x64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %3 = "relax.matmul"(%a, %c) : (tensor<64x4xf32>, tensor<3x4x64xf32>) -> tensor<3x64x64xf32>
  %4 = "relax.matmul"(%x, %3) : (tensor<3x2x64xf32>, tensor<3x64x64xf32>) -> tensor<3x2x64xf32>
  return %1, %2, %4 : tensor<64xf32>, tensor<64xf32>, tensor<3x2x64xf32>
}

// Left alone: a vector between stacks; a product that is returned too; integers that wrap before they are widened.
// CHECK-LABEL: @stay(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg2, %arg0) : ({{.*}}) -> tensor<2x8xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %arg3) : ({{.*}}) -> tensor<2x2x1xf32
// CHECK-NEXT:    %2 = "relax.matmul"(%1, %arg4) : ({{.*}}) -> tensor<2x2x8xf32
// CHECK-NEXT:    %3 = "relax.matmul"(%arg5, %arg6) : ({{.*}}) -> tensor<8x8xi8
// CHECK-NEXT:    %4 = "relax.matmul"(%arg1, %3) {out_dtype = i32} : ({{.*}}) -> tensor<2x8xi32
// CHECK-NEXT:    %5 = "relax.matmul"(%0, %arg3) : ({{.*}}) -> tensor<2x1xf32
// CHECK-NEXT:    %6 = "relax.matmul"(%5, %arg4) : ({{.*}}) -> tensor<2x8xf32
// CHECK-NEXT:    return %6, %1, %2, %4
func.func @stay(%x: tensor<2x2x8xf32> {relax.name = "x"}, %i: tensor<2x8xi8> {relax.name = "i"}, %v: tensor<2xf32>
    {relax.name = "v"}, %a: tensor<8x1xf32> {relax.name = "a"}, %b: tensor<1x8xf32> {relax.name = "b"},
    %c: tensor<8x1xi8> {relax.name = "c"}, %d: tensor<1x8xi8> {relax.name = "d"})
    -> (tensor<2x8xf32>, tensor<2x2x1xf32>, tensor<2x2x8xf32>, tensor<2x8xi32>) attributes {relax.num_input = 3 : i64} {
  %0 = "relax.matmul"(%v, %x) : (tensor<2xf32>, tensor<2x2x8xf32>) -> tensor<2x8xf32>
  %1 = "relax.matmul"(%x, %a) : (tensor<2x2x8xf32>, tensor<8x1xf32>) -> tensor<2x2x1xf32>
  %2 = "relax.matmul"(%1, %b) : (tensor<2x2x1xf32>, tensor<1x8xf32>) -> tensor<2x2x8xf32>
  %3 = "relax.matmul"(%c, %d) : (tensor<8x1xi8>, tensor<1x8xi8>) -> tensor<8x8xi8>
  %4 = "relax.matmul"(%i, %3) {out_dtype = i32} : (tensor<2x8xi8>, tensor<8x8xi8>) -> tensor<2x8xi32>
  %5 = "relax.matmul"(%0, %a) : (tensor<2x8xf32>, tensor<8x1xf32>) -> tensor<2x1xf32>
  %6 = "relax.matmul"(%5, %b) : (tensor<2x1xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>
  return %6, %1, %2, %4 : tensor<2x8xf32>, tensor<2x2x1xf32>, tensor<2x2x8xf32>, tensor<2x8xi32>
}
