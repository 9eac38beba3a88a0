// RUN: relax-opt %s --relax-adjust-matmul-order | filecheck %s --check-prefix=ORDER
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-expand-matmul-of-sum{always=true})' \
// RUN:   | filecheck %s --check-prefix=SUM
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-reorder-take-after-matmul{always=true})' \
// RUN:   | filecheck %s --check-prefix=TAKE
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-combine-parallel-matmul{always=true})' \
// RUN:   | filecheck %s --check-prefix=COMBINE
// RUN: relax-opt %s --relax-combine-parallel-matmul | filecheck %s --check-prefix=APART
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-adjust-matmul-order{functions=hidden})' \
// RUN:   | filecheck %s --check-prefix=HIDDEN

// Functions without weights, and without relax.num_input: all comes when the model runs.

// ORDER-LABEL: @vector_first(
// ORDER-NEXT:    %0 = "relax.matmul"(%arg0, %arg1) : ({{.*}}) -> tensor<2xf32>
// ORDER-NEXT:    %1 = "relax.matmul"(%0, %arg2) : ({{.*}}) -> tensor<32xf32>
func.func @vector_first(%x: tensor<16xf32>, %a: tensor<16x2xf32>, %b: tensor<2x32xf32>) -> tensor<32xf32> {
  %0 = "relax.matmul"(%a, %b) : (tensor<16x2xf32>, tensor<2x32xf32>) -> tensor<16x32xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<16xf32>, tensor<16x32xf32>) -> tensor<32xf32>
  return %1 : tensor<32xf32>
}

// ORDER-LABEL: @vector_last(
// ORDER-NEXT:    %0 = "relax.matmul"(%arg2, %arg0) : ({{.*}}) -> tensor<?xf32
// ORDER-NEXT:    %1 = "relax.matmul"(%arg1, %0) : ({{.*}}) -> tensor<32xf32>
func.func @vector_last(%x: tensor<16xf32>, %a: tensor<32x?xf32, {sym = ["r"]}>, %b: tensor<?x16xf32, {sym = ["r"]}>)
    -> tensor<32xf32> attributes {relax.num_input = 3 : i64} {
  %0 = "relax.matmul"(%a, %b) : (tensor<32x?xf32, {sym = ["r"]}>, tensor<?x16xf32, {sym = ["r"]}>) -> tensor<32x16xf32>
  %1 = "relax.matmul"(%0, %x) : (tensor<32x16xf32>, tensor<16xf32>) -> tensor<32xf32>
  return %1 : tensor<32xf32>
}

// Batches: few rows go through both matrices, many through their product; stacks are multiplied stack by stack.
// ORDER-LABEL: @batches(
// ORDER-NEXT:    %0 = "relax.matmul"(%arg0, %arg2) : ({{.*}}) -> tensor<4x1x16xf32>
// ORDER-NEXT:    %1 = "relax.matmul"(%0, %arg3) : ({{.*}}) -> tensor<4x1x32xf32>
// ORDER-NEXT:    %2 = "relax.matmul"(%arg2, %arg3) : ({{.*}}) -> tensor<16x32xf32>
// ORDER-NEXT:    %3 = "relax.matmul"(%arg1, %2) : ({{.*}}) -> tensor<64x1x32xf32>
// ORDER-NEXT:    %4 = "relax.matmul"(%arg4, %arg5) : ({{.*}}) -> tensor<2x1x2xf32>
// ORDER-NEXT:    %5 = "relax.matmul"(%4, %arg6) : ({{.*}}) -> tensor<2x1x3xf32>
func.func @batches(%x: tensor<4x1x16xf32>, %y: tensor<64x1x16xf32>, %a: tensor<16x16xf32>, %b: tensor<16x32xf32>,
    %c: tensor<2x1x1xf32>, %d: tensor<2x1x2xf32>, %e: tensor<2x2x3xf32>)
    -> (tensor<4x1x32xf32>, tensor<64x1x32xf32>, tensor<2x1x3xf32>) {
  %0 = "relax.matmul"(%a, %b) : (tensor<16x16xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<4x1x16xf32>, tensor<16x32xf32>) -> tensor<4x1x32xf32>
  %2 = "relax.matmul"(%y, %a) : (tensor<64x1x16xf32>, tensor<16x16xf32>) -> tensor<64x1x16xf32>
  %3 = "relax.matmul"(%2, %b) : (tensor<64x1x16xf32>, tensor<16x32xf32>) -> tensor<64x1x32xf32>
  %4 = "relax.matmul"(%d, %e) : (tensor<2x1x2xf32>, tensor<2x2x3xf32>) -> tensor<2x1x3xf32>
  %5 = "relax.matmul"(%c, %4) : (tensor<2x1x1xf32>, tensor<2x1x3xf32>) -> tensor<2x1x3xf32>
  return %1, %3, %5 : tensor<4x1x32xf32>, tensor<64x1x32xf32>, tensor<2x1x3xf32>
}

// Transposed, with symbols that have greatest values.
// ORDER-LABEL: @bounded(
// ORDER-NEXT:    %0 = "relax.permute_dims"(%arg2)
// ORDER-NEXT:    %1 = "relax.matmul"(%arg0, %0) : ({{.*}}) -> tensor<?x?xf32
// ORDER-NEXT:    %2 = "relax.permute_dims"(%arg1)
// ORDER-NEXT:    %3 = "relax.matmul"(%1, %2) : ({{.*}}) -> tensor<?x4096xf32
func.func @bounded(%x: tensor<?x4096xf32, {sym = ["n"]}>, %a: tensor<4096x?xf32, {sym = ["r"]}>,
    %b: tensor<?x4096xf32, {sym = ["r"]}>) -> tensor<?x4096xf32, {sym = ["n"]}>
    attributes {relax.symbol_ranges = {n = [1, 2048], r = [1, 2048]}} {
  %0 = "relax.matmul"(%a, %b) : (tensor<4096x?xf32, {sym = ["r"]}>, tensor<?x4096xf32, {sym = ["r"]}>)
      -> tensor<4096x4096xf32>
  %1 = "relax.permute_dims"(%0) : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %2 = "relax.matmul"(%x, %1) : (tensor<?x4096xf32, {sym = ["n"]}>, tensor<4096x4096xf32>)
      -> tensor<?x4096xf32, {sym = ["n"]}>
  return %2 : tensor<?x4096xf32, {sym = ["n"]}>
}

// Without bounds it depends: left alone.
// ORDER-LABEL: @depends(
// ORDER-NEXT:    %0 = "relax.matmul"(%arg1, %arg2)
// ORDER-NEXT:    %1 = "relax.matmul"(%arg0, %0)
func.func @depends(%x: tensor<?x1x16xf32, {sym = ["n"]}>, %a: tensor<16x?xf32, {sym = ["r"]}>,
    %b: tensor<?x32xf32, {sym = ["r"]}>) -> tensor<?x1x32xf32, {sym = ["n"]}> {
  %0 = "relax.matmul"(%a, %b) : (tensor<16x?xf32, {sym = ["r"]}>, tensor<?x32xf32, {sym = ["r"]}>) -> tensor<16x32xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<?x1x16xf32, {sym = ["n"]}>, tensor<16x32xf32>)
      -> tensor<?x1x32xf32, {sym = ["n"]}>
  return %1 : tensor<?x1x32xf32, {sym = ["n"]}>
}

// Private functions are rewritten when they are named: others are inlined first, where more is known.
// ORDER-LABEL:  @hidden(
// ORDER-NEXT:     %0 = "relax.matmul"(%arg1, %arg2)
// HIDDEN-LABEL: @vector_first(
// HIDDEN-NEXT:    %0 = "relax.matmul"(%arg1, %arg2)
// HIDDEN-LABEL: @hidden(
// HIDDEN-NEXT:    %0 = "relax.matmul"(%arg0, %arg1)
func.func private @hidden(%x: tensor<16xf32>, %a: tensor<16x2xf32>, %b: tensor<2x32xf32>) -> tensor<32xf32> {
  %0 = "relax.matmul"(%a, %b) : (tensor<16x2xf32>, tensor<2x32xf32>) -> tensor<16x32xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<16xf32>, tensor<16x32xf32>) -> tensor<32xf32>
  return %1 : tensor<32xf32>
}

// SUM-LABEL: @sum(
// SUM-NEXT:    %0 = "relax.matmul"(%arg0, %arg1)
// SUM-NEXT:    %1 = "relax.matmul"(%arg0, %arg2)
// SUM-NEXT:    %2 = "relax.add"(%0, %1)
// SUM-NEXT:    return %2
func.func @sum(%x: tensor<16xf32>, %a: tensor<16x32xf32>, %b: tensor<16x32xf32>) -> tensor<32xf32> {
  %0 = "relax.add"(%a, %b) : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<16xf32>, tensor<16x32xf32>) -> tensor<32xf32>
  return %1 : tensor<32xf32>
}

// A sum that is transposed, also of one that is.
// SUM-LABEL: @transposed_sum(
// SUM-NEXT:    %0 = "relax.permute_dims"(%arg1) {axes = array<i64: 1, 0>}
// SUM-NEXT:    %1 = "relax.permute_dims"(%arg2) {axes = array<i64: 1, 0>}
// SUM-NEXT:    %2 = "relax.matmul"(%arg0, %0)
// SUM-NEXT:    %3 = "relax.matmul"(%arg0, %1)
// SUM-NEXT:    %4 = "relax.matmul"(%arg0, %arg3)
// SUM-NEXT:    %5 = "relax.add"(%2, %3)
// SUM-NEXT:    %6 = "relax.add"(%5, %4)
// SUM-NEXT:    return %6
func.func @transposed_sum(%x: tensor<16xf32>, %a: tensor<32x16xf32>, %b: tensor<32x16xf32>, %c: tensor<16x32xf32>)
    -> tensor<32xf32> {
  %0 = "relax.add"(%a, %b) : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  %1 = "relax.permute_dims"(%0) : (tensor<32x16xf32>) -> tensor<16x32xf32>
  %2 = "relax.add"(%1, %c) : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  %3 = "relax.matmul"(%x, %2) : (tensor<16xf32>, tensor<16x32xf32>) -> tensor<32xf32>
  return %3 : tensor<32xf32>
}

// TAKE-LABEL: @table(
// TAKE-NEXT:    %0 = "relax.matmul"(%arg0, %arg1) : ({{.*}}) -> tensor<?x1x?xf32
// TAKE-NEXT:    %1 = "relax.take"(%0, %arg2) {axis = 2 : i64}
func.func @table(%x: tensor<?x1x16xf32, {sym = ["n"]}>, %t: tensor<16x?xf32, {sym = ["k"]}>, %i: tensor<32xi64>)
    -> tensor<?x1x32xf32, {sym = ["n"]}> {
  %0 = "relax.take"(%t, %i) {axis = 1 : i64} : (tensor<16x?xf32, {sym = ["k"]}>, tensor<32xi64>) -> tensor<16x32xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<?x1x16xf32, {sym = ["n"]}>, tensor<16x32xf32>)
      -> tensor<?x1x32xf32, {sym = ["n"]}>
  return %1 : tensor<?x1x32xf32, {sym = ["n"]}>
}

// A table of unknown length, and a matrix of it for each row.
// TAKE-LABEL: @matrix_each(
// TAKE-NEXT:    %0 = "relax.permute_dims"(%arg1) {axes = array<i64: 1, 0, 2>}
// TAKE-NEXT:    %1 = "relax.reshape"(%0)
// TAKE-NEXT:    %2 = "relax.matmul"(%arg0, %1)
// TAKE:         "relax.gather_nd"
func.func @matrix_each(%x: tensor<?x1x16xf32, {sym = ["n"]}>, %t: tensor<?x16x32xf32, {sym = ["k"]}>,
    %i: tensor<?xi64, {sym = ["n"]}>) -> tensor<?x1x32xf32, {sym = ["n"]}> {
  %0 = "relax.take"(%t, %i) {axis = 0 : i64} : (tensor<?x16x32xf32, {sym = ["k"]}>, tensor<?xi64, {sym = ["n"]}>)
      -> tensor<?x16x32xf32, {sym = ["n"]}>
  %1 = "relax.matmul"(%x, %0) : (tensor<?x1x16xf32, {sym = ["n"]}>, tensor<?x16x32xf32, {sym = ["n"]}>)
      -> tensor<?x1x32xf32, {sym = ["n"]}>
  return %1 : tensor<?x1x32xf32, {sym = ["n"]}>
}

// Adapters that come with each call, one of unknown width, with biases; by default they are not copied together.
// COMBINE-LABEL: @parallel(
// COMBINE-NEXT:    %0 = "relax.concat"(%arg1, %arg2) {axis = 1 : i64}
// COMBINE-NEXT:    %1 = "relax.matmul"(%arg0, %0)
// COMBINE-NEXT:    %2 = "relax.concat"(%arg3, %arg4) {axis = 0 : i64}
// COMBINE-NEXT:    %3 = "relax.add"(%1, %2)
// COMBINE-NEXT:    %4 = "relax.strided_slice"(%3)
// COMBINE-NEXT:    %5 = "relax.strided_slice"(%3)
// COMBINE-NEXT:    return %4, %5
// APART-LABEL:   @parallel(
// APART-NEXT:      "relax.matmul"
// APART-NEXT:      "relax.matmul"
func.func @parallel(%x: tensor<2x8x16xf32>, %a: tensor<16x?xf32, {sym = ["m"]}>, %b: tensor<16x4xf32>,
    %u: tensor<?xf32, {sym = ["m"]}>, %v: tensor<4xf32>)
    -> (tensor<2x8x?xf32, {sym = ["m"]}>, tensor<2x8x4xf32>) {
  %0 = "relax.matmul"(%x, %a) : (tensor<2x8x16xf32>, tensor<16x?xf32, {sym = ["m"]}>)
      -> tensor<2x8x?xf32, {sym = ["m"]}>
  %1 = "relax.matmul"(%x, %b) : (tensor<2x8x16xf32>, tensor<16x4xf32>) -> tensor<2x8x4xf32>
  %2 = "relax.add"(%0, %u) : (tensor<2x8x?xf32, {sym = ["m"]}>, tensor<?xf32, {sym = ["m"]}>)
      -> tensor<2x8x?xf32, {sym = ["m"]}>
  %3 = "relax.add"(%1, %v) : (tensor<2x8x4xf32>, tensor<4xf32>) -> tensor<2x8x4xf32>
  return %2, %3 : tensor<2x8x?xf32, {sym = ["m"]}>, tensor<2x8x4xf32>
}

// A matrix that is made after the first product, perhaps of it, is not there in time.
// COMBINE-LABEL: @later(
// COMBINE-NEXT:    %0 = "relax.matmul"(%arg0, %arg1)
// COMBINE-NEXT:    %1 = "relax.exp"(%0)
// COMBINE-NEXT:    %2 = "relax.matmul"(%arg0, %1)
// COMBINE-NEXT:    return %2
func.func @later(%x: tensor<4x4xf32>, %a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "relax.matmul"(%x, %a) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relax.exp"(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "relax.matmul"(%x, %1) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
