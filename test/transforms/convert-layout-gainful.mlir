// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-convert-layout{gainful=true})' | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-convert-layout)' | filecheck %s --check-prefix=ALWAYS

// A pointwise convolution alone: reordering its image and its result takes longer than reading the image as it is.
// CHECK-LABEL: @pointwise
// CHECK-NOT:     permute_dims
// CHECK:         return
// ALWAYS-LABEL: @pointwise
// ALWAYS-COUNT-3: permute_dims
func.func @pointwise(%x: tensor<1x16x8x8xf32>, %w: tensor<16x16x1x1xf32> {relax.name = "w"}) -> tensor<1x16x8x8xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  return %0 : tensor<1x16x8x8xf32>
}

// Three in a row share the edges.
// CHECK-LABEL: @row
// CHECK-COUNT-3: data_layout = "NHWC"
func.func @row(%x: tensor<1x16x8x8xf32>, %w: tensor<16x16x1x1xf32> {relax.name = "w"}) -> tensor<1x16x8x8xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  %1 = "relax.relu"(%0) : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %2 = "relax.conv2d"(%1, %w) : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  %3 = "relax.conv2d"(%2, %w) : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  return %3 : tensor<1x16x8x8xf32>
}

// With something in between that does not follow they are three regions. What the caller transposes need not be
// reordered.
// CHECK-LABEL: @regions
// CHECK:         %[[A:.*]] = "relax.conv2d"(%arg0, %{{.*}}) : (tensor<1x16x8x8xf32>
// CHECK-NEXT:    %[[B:.*]] = "relax.tril"(%[[A]])
// CHECK-NEXT:    "relax.conv2d"(%[[B]], %{{.*}}) : (tensor<1x16x8x8xf32>
// CHECK:         "relax.conv2d"(%{{.*}}, %{{.*}}) {data_layout = "NHWC"
func.func @regions(%x: tensor<1x16x8x8xf32>, %y: tensor<1x8x8x16xf32>, %w: tensor<16x16x1x1xf32> {relax.name = "w"})
    -> (tensor<1x16x8x8xf32>, tensor<1x8x8x16xf32>) attributes {relax.num_input = 2 : i64} {
  %0 = "relax.conv2d"(%x, %w) : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  %1 = "relax.tril"(%0) : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %2 = "relax.conv2d"(%1, %w) : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  %3 = "relax.permute_dims"(%y) {axes = array<i64: 0, 3, 1, 2>} : (tensor<1x8x8x16xf32>) -> tensor<1x16x8x8xf32>
  %4 = "relax.conv2d"(%3, %w) : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  %5 = "relax.permute_dims"(%4) {axes = array<i64: 0, 2, 3, 1>} : (tensor<1x16x8x8xf32>) -> tensor<1x8x8x16xf32>
  return %2, %5 : tensor<1x16x8x8xf32>, tensor<1x8x8x16xf32>
}

// A depthwise convolution has no product; between two that gain it goes along. Filters of 3 by 3 elements always gain.
// CHECK-LABEL: @depthwise
// CHECK:         "relax.conv2d"(%arg0, %arg2) {groups = 16 : i64, padding
// CHECK:         {data_layout = "NHWC", kernel_layout = "HWIO"}
// CHECK:         {data_layout = "NHWC", groups = 16 : i64, kernel_layout = "HWIO", padding
func.func @depthwise(%x: tensor<1x16x8x8xf32>, %v: tensor<16x16x3x3xf32> {relax.name = "v"}, %w: tensor<16x1x3x3xf32>
    {relax.name = "w"}) -> (tensor<1x16x8x8xf32>, tensor<1x16x6x6xf32>) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) {groups = 16 : i64, padding = array<i64: 1, 1, 1, 1>}
      : (tensor<1x16x8x8xf32>, tensor<16x1x3x3xf32>) -> tensor<1x16x8x8xf32>
  %1 = "relax.conv2d"(%x, %v) : (tensor<1x16x8x8xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x6x6xf32>
  %2 = "relax.conv2d"(%1, %w) {groups = 16 : i64, padding = array<i64: 1, 1, 1, 1>}
      : (tensor<1x16x6x6xf32>, tensor<16x1x3x3xf32>) -> tensor<1x16x6x6xf32>
  return %0, %2 : tensor<1x16x8x8xf32>, tensor<1x16x6x6xf32>
}

// Sizes that are not known count as 32. A value that other ops read in the old order, too, is put back once.
// CHECK-LABEL: @symbolic
// CHECK-COUNT-2: data_layout = "NHWC"
func.func @symbolic(%x: tensor<?x4x?x?xf32, {sym = ["n", "h", "w"]}>, %w: tensor<4x4x3x3xf32> {relax.name = "w"})
    -> tensor<?x4x?x?xf32, {sym = ["n", "h", "w"]}> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) {padding = array<i64: 1, 1, 1, 1>}
      : (tensor<?x4x?x?xf32, {sym = ["n", "h", "w"]}>, tensor<4x4x3x3xf32>)
      -> tensor<?x4x?x?xf32, {sym = ["n", "h", "w"]}>
  %1 = "relax.tril"(%0) : (tensor<?x4x?x?xf32, {sym = ["n", "h", "w"]}>) -> tensor<?x4x?x?xf32, {sym = ["n", "h", "w"]}>
  %2 = "relax.triu"(%0) : (tensor<?x4x?x?xf32, {sym = ["n", "h", "w"]}>) -> tensor<?x4x?x?xf32, {sym = ["n", "h", "w"]}>
  %3 = "relax.add"(%1, %2) : (tensor<?x4x?x?xf32, {sym = ["n", "h", "w"]}>,
      tensor<?x4x?x?xf32, {sym = ["n", "h", "w"]}>) -> tensor<?x4x?x?xf32, {sym = ["n", "h", "w"]}>
  %4 = "relax.conv2d"(%3, %w) {padding = array<i64: 1, 1, 1, 1>}
      : (tensor<?x4x?x?xf32, {sym = ["n", "h", "w"]}>, tensor<4x4x3x3xf32>)
      -> tensor<?x4x?x?xf32, {sym = ["n", "h", "w"]}>
  return %4 : tensor<?x4x?x?xf32, {sym = ["n", "h", "w"]}>
}
