// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-convert-layout,relax-canonicalize)' | filecheck %s

// Convolutions of lines, as 1D convolutions are imported: what is between them stays in the new order without the
// height.
// CHECK-LABEL: @lines
// CHECK:         %[[A:.*]] = "relax.conv2d"
// CHECK-NEXT:    %[[S:.*]] = "relax.squeeze"(%[[A]]) {axis = array<i64: 1>} : (tensor<?x1x9x8xf32, {sym = ["n"]}>)
// CHECK-SAME:    -> tensor<?x9x8xf32, {sym = ["n"]}>
// CHECK-NEXT:    %[[B:.*]] = "relax.add"(%[[S]], %{{.*}}) : (tensor<?x9x8xf32, {sym = ["n"]}>, tensor<1x8xf32>)
// CHECK-NEXT:    %[[E:.*]] = "relax.expand_dims"(%[[B]]) {axis = array<i64: 1>}
// CHECK-NEXT:    %[[C:.*]] = "relax.conv2d"(%[[E]]
// CHECK-NEXT:    %[[R:.*]] = "relax.reshape"(%[[C]]) : (tensor<?x1x5x8xf32, {sym = ["n"]}>)
// CHECK-SAME:    -> tensor<?x5x8xf32, {sym = ["n"]}>
// CHECK-NEXT:    %[[M:.*]] = "relax.softmax"(%[[R]]) {axis = 2 : i64}
// CHECK-NEXT:    return %[[M]]
func.func @lines(%x: tensor<?x4x1x9xf32, {sym = ["n"]}>, %w: tensor<8x4x1x3xf32> {relax.name = "w"},
    %v: tensor<8x8x1x3xf32> {relax.name = "v"}, %b: tensor<8x1xf32> {relax.name = "b"})
    -> tensor<?x5x8xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) {padding = array<i64: 0, 1, 0, 1>}
      : (tensor<?x4x1x9xf32, {sym = ["n"]}>, tensor<8x4x1x3xf32>) -> tensor<?x8x1x9xf32, {sym = ["n"]}>
  %1 = "relax.squeeze"(%0) {axis = array<i64: 2>} : (tensor<?x8x1x9xf32, {sym = ["n"]}>)
      -> tensor<?x8x9xf32, {sym = ["n"]}>
  %2 = "relax.add"(%1, %b) : (tensor<?x8x9xf32, {sym = ["n"]}>, tensor<8x1xf32>) -> tensor<?x8x9xf32, {sym = ["n"]}>
  %3 = "relax.expand_dims"(%2) {axis = array<i64: 2>} : (tensor<?x8x9xf32, {sym = ["n"]}>)
      -> tensor<?x8x1x9xf32, {sym = ["n"]}>
  %4 = "relax.conv2d"(%3, %v) {padding = array<i64: 0, 1, 0, 1>, strides = array<i64: 1, 2>}
      : (tensor<?x8x1x9xf32, {sym = ["n"]}>, tensor<8x8x1x3xf32>) -> tensor<?x8x1x5xf32, {sym = ["n"]}>
  %5 = "relax.reshape"(%4) : (tensor<?x8x1x5xf32, {sym = ["n"]}>) -> tensor<?x8x5xf32, {sym = ["n"]}>
  %6 = "relax.softmax"(%5) {axis = 1 : i64} : (tensor<?x8x5xf32, {sym = ["n"]}>) -> tensor<?x8x5xf32, {sym = ["n"]}>
  %7 = "relax.permute_dims"(%6) {axes = array<i64: 0, 2, 1>} : (tensor<?x8x5xf32, {sym = ["n"]}>)
      -> tensor<?x5x8xf32, {sym = ["n"]}>
  return %7 : tensor<?x5x8xf32, {sym = ["n"]}>
}

// What broadcasts an image of three dimensions to four reads it in the old order; so does a reshape that mixes
// dimensions.
// CHECK-LABEL: @no_lines
// CHECK:         %[[A:.*]] = "relax.conv2d"
// CHECK-NEXT:    %[[O:.*]] = "relax.permute_dims"(%[[A]]) {axes = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT:    %[[L:.*]] = "relax.reshape"(%[[A]]) : (tensor<2x2x6x4xf32>) -> tensor<2x12x4xf32>
// CHECK-NEXT:    %[[P:.*]] = "relax.permute_dims"(%[[L]]) {axes = array<i64: 0, 2, 1>}
// CHECK:         %[[S:.*]] = "relax.add"(%[[P]], %{{.*}}) : (tensor<2x4x12xf32>, tensor<2x2x1x1xf32>)
// CHECK-NEXT:    %[[R:.*]] = "relax.reshape"(%[[O]]) : (tensor<2x4x2x6xf32>) -> tensor<2x2x24xf32>
// CHECK-NEXT:    %[[Y:.*]] = "relax.permute_dims"(%[[A]]) {axes = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT:    return %[[S]], %[[R]], %[[Y]]
func.func @no_lines(%x: tensor<2x4x2x6xf32>, %w: tensor<4x4x1x1xf32> {relax.name = "w"})
    -> (tensor<2x2x4x12xf32>, tensor<2x2x24xf32>, tensor<2x4x2x6xf32>) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) : (tensor<2x4x2x6xf32>, tensor<4x4x1x1xf32>) -> tensor<2x4x2x6xf32>
  %1 = "relax.reshape"(%0) : (tensor<2x4x2x6xf32>) -> tensor<2x4x12xf32>
  %3 = "relax.full"() {value = 2.0 : f64} : () -> tensor<2x2x1x1xf32>
  %4 = "relax.add"(%1, %3) : (tensor<2x4x12xf32>, tensor<2x2x1x1xf32>) -> tensor<2x2x4x12xf32>
  %5 = "relax.reshape"(%0) : (tensor<2x4x2x6xf32>) -> tensor<2x2x24xf32>
  %6 = "relax.reshape"(%1) : (tensor<2x4x12xf32>) -> tensor<2x4x2x6xf32>
  return %4, %5, %6 : tensor<2x2x4x12xf32>, tensor<2x2x24xf32>, tensor<2x4x2x6xf32>
}
