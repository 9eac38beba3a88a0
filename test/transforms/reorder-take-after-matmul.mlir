// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-reorder-take-after-matmul{always=true})' | filecheck %s
// RUN: relax-opt %s --relax-reorder-take-after-matmul | filecheck %s --check-prefix=PROVEN

// Columns of a weight.
// PROVEN-LABEL: @columns(
// PROVEN-NEXT:    "relax.take"
// CHECK-LABEL: @columns(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg0, %arg2) : ({{.*}}) -> tensor<?x8xf32
// CHECK-NEXT:    %1 = "relax.take"(%0, %arg1) {axis = 1 : i64}
// CHECK-NEXT:    return %1
func.func @columns(%x: tensor<?x4xf32, {sym = ["n"]}> {relax.name = "x"}, %i: tensor<3xi64> {relax.name = "i"},
    %w: tensor<4x8xf32> {relax.name = "w"}) -> tensor<?x3xf32, {sym = ["n"]}> attributes {relax.num_input = 2 : i64} {
  %0 = "relax.take"(%w, %i) {axis = 1 : i64} : (tensor<4x8xf32>, tensor<3xi64>) -> tensor<4x3xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x3xf32>) -> tensor<?x3xf32, {sym = ["n"]}>
  return %1 : tensor<?x3xf32, {sym = ["n"]}>
}

// What indices are refused goes along.
// CHECK-LABEL: @from_the_start(
// CHECK:         "relax.take"({{.*}}) {axis = 1 : i64, wrap_negative_indices = false} : {{.*}} -> tensor<?x3xf32
func.func @from_the_start(%x: tensor<?x4xf32, {sym = ["n"]}> {relax.name = "x"}, %i: tensor<3xi64> {relax.name = "i"},
    %w: tensor<4x8xf32> {relax.name = "w"}) -> tensor<?x3xf32, {sym = ["n"]}> attributes {relax.num_input = 2 : i64} {
  %0 = "relax.take"(%w, %i) {axis = 1 : i64, wrap_negative_indices = false}
      : (tensor<4x8xf32>, tensor<3xi64>) -> tensor<4x3xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x3xf32>) -> tensor<?x3xf32, {sym = ["n"]}>
  return %1 : tensor<?x3xf32, {sym = ["n"]}>
}

// One column, of weight math.
// CHECK-LABEL: @one_column(
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg2)
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %0) : ({{.*}}) -> tensor<2x8xf32
// CHECK-NEXT:    %2 = "relax.take"(%1, %arg1) {axis = 1 : i64}
// CHECK-NEXT:    return %2
func.func @one_column(%x: tensor<2x4xf32> {relax.name = "x"}, %i: tensor<i64> {relax.name = "i"}, %w: tensor<8x4xf32>
    {relax.name = "w"}) -> tensor<2xf32> attributes {relax.num_input = 2 : i64} {
  %t = "relax.permute_dims"(%w) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %0 = "relax.take"(%t, %i) {axis = -1 : i64} : (tensor<4x8xf32>, tensor<i64>) -> tensor<4xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// Matrices of a stack for one value: with more requests than adapters that takes fewer operations.
// PROVEN-LABEL: @stack(
// PROVEN-NEXT:    "relax.matmul"(%arg0, %arg2)
// PROVEN-NEXT:    "relax.take"
// CHECK-LABEL: @stack(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg0, %arg2) : ({{.*}}) -> tensor<3x1x2xf32
// CHECK-NEXT:    %1 = "relax.take"(%0, %arg1) {axis = 0 : i64}
// CHECK-NEXT:    return %1
func.func @stack(%x: tensor<1x4xf32> {relax.name = "x"}, %i: tensor<?xi64, {sym = ["b"]}> {relax.name = "i"},
    %w: tensor<3x4x2xf32> {relax.name = "w"}) -> tensor<?x1x2xf32, {sym = ["b"]}>
    attributes {relax.num_input = 2 : i64, relax.symbol_ranges = {b = [3, 64]}} {
  %0 = "relax.take"(%w, %i) : (tensor<3x4x2xf32>, tensor<?xi64, {sym = ["b"]}>) -> tensor<?x4x2xf32, {sym = ["b"]}>
  %1 = "relax.matmul"(%x, %0) : (tensor<1x4xf32>, tensor<?x4x2xf32, {sym = ["b"]}>) -> tensor<?x1x2xf32, {sym = ["b"]}>
  return %1 : tensor<?x1x2xf32, {sym = ["b"]}>
}

// An adapter for each request: one wide weight, of whose product each row keeps a part.
// PROVEN-LABEL: @adapter_each(
// PROVEN-NEXT:    "relax.take"
// CHECK-LABEL: @adapter_each(
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg2) {axes = array<i64: 1, 0, 2>}
// CHECK-NEXT:    %1 = "relax.reshape"(%0)
// CHECK-NEXT:    %2 = "relax.matmul"(%arg0, %1) {out_dtype = f32} : ({{.*}}) -> tensor<?x1x6xf32
// CHECK-NEXT:    %3 = "relax.reshape"(%2)
// CHECK-NEXT:    %4 = "relax.permute_dims"(%3) {axes = array<i64: 0, 2, 1, 3>}
// CHECK-NEXT:    %5 = "relax.reshape"(%arg1)
// CHECK-NEXT:    %6 = "relax.gather_nd"(%4, %5) {batch_dims = 1 : i64}
// CHECK-NEXT:    return %6
func.func @adapter_each(%x: tensor<?x1x4xf32, {sym = ["b"]}> {relax.name = "x"}, %i: tensor<?xi64, {sym = ["b"]}>
    {relax.name = "i"}, %w: tensor<3x4x2xf32> {relax.name = "w"}) -> tensor<?x1x2xf32, {sym = ["b"]}>
    attributes {relax.num_input = 2 : i64} {
  %0 = "relax.take"(%w, %i) : (tensor<3x4x2xf32>, tensor<?xi64, {sym = ["b"]}>) -> tensor<?x4x2xf32, {sym = ["b"]}>
  %1 = "relax.matmul"(%x, %0) {out_dtype = f32} : (tensor<?x1x4xf32, {sym = ["b"]}>, tensor<?x4x2xf32, {sym = ["b"]}>)
      -> tensor<?x1x2xf32, {sym = ["b"]}>
  return %1 : tensor<?x1x2xf32, {sym = ["b"]}>
}

// Left alone: indices and table known ahead, rows that are summed over, gathered weights that are read twice. A table
// that comes at run time is not.
// CHECK-LABEL: @stay(
// CHECK-NEXT:    %0 = "relax.take"(%arg2, %arg3) {axis = 1 : i64}
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %0) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %2 = "relax.matmul"(%arg0, %arg0) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %3 = "relax.take"(%2, %arg1) {axis = 1 : i64}
// CHECK-NEXT:    %4 = "relax.take"(%arg2, %arg1)
// CHECK-NEXT:    %5 = "relax.matmul"(%arg0, %4) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %6 = "relax.take"(%arg2, %arg1) {axis = 1 : i64}
// CHECK-NEXT:    %7 = "relax.matmul"(%arg0, %6) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    return %1, %3, %5, %6, %7
func.func @stay(%x: tensor<4x4xf32> {relax.name = "x"}, %i: tensor<4xi64> {relax.name = "i"}, %w: tensor<4x4xf32>
    {relax.name = "w"}, %j: tensor<4xi64> {relax.name = "j"})
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>)
    attributes {relax.num_input = 2 : i64} {
  %0 = "relax.take"(%w, %j) {axis = 1 : i64} : (tensor<4x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "relax.take"(%x, %i) {axis = 1 : i64} : (tensor<4x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
  %3 = "relax.matmul"(%x, %2) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = "relax.take"(%w, %i) : (tensor<4x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
  %5 = "relax.matmul"(%x, %4) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %6 = "relax.take"(%w, %i) {axis = 1 : i64} : (tensor<4x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
  %7 = "relax.matmul"(%x, %6) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1, %3, %5, %6, %7 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
