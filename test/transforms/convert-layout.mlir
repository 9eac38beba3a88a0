// RUN: relax-opt %s --relax-convert-layout | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-convert-layout,relax-convert-layout{layout=NCHW},\
// RUN:relax-canonicalize)' | filecheck %s --check-prefix=BACK

// From one convolution to the last everything is in the new order; kernels are reordered where lifting finds them.
// CHECK-LABEL: @convolutions
// CHECK-NEXT:    %[[V:.*]] = "relax.permute_dims"(%arg2) {axes = array<i64: 2, 3, 1, 0>} : (tensor<6x8x1x1xf32>)
// CHECK-SAME:    -> tensor<1x1x8x6xf32>
// CHECK-NEXT:    %[[W:.*]] = "relax.permute_dims"(%arg1) {axes = array<i64: 2, 3, 1, 0>} : (tensor<8x4x3x3xf32>)
// CHECK-SAME:    -> tensor<3x3x4x8xf32>
// CHECK-NEXT:    %[[X:.*]] = "relax.permute_dims"(%arg0) {axes = array<i64: 0, 2, 3, 1>}
// CHECK-SAME:    : (tensor<?x4x8x6xf32, {sym = ["n"]}>) -> tensor<?x8x6x4xf32, {sym = ["n"]}>
// CHECK-NEXT:    %[[A:.*]] = "relax.conv2d"(%[[X]], %[[W]])
// CHECK-SAME:    {data_layout = "NHWC", kernel_layout = "HWIO", padding = array<i64: 1, 1, 1, 1>}
// CHECK-NEXT:    %[[R:.*]] = "relax.relu"(%[[A]])
// CHECK-NEXT:    %[[P:.*]] = "relax.max_pool2d"(%[[R]])
// CHECK-SAME:    {layout = "NHWC", pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>}
// CHECK-SAME:    : (tensor<?x8x6x8xf32, {sym = ["n"]}>) -> tensor<?x4x3x8xf32, {sym = ["n"]}>
// CHECK-NEXT:    %[[N:.*]] = "relax.batch_norm"(%[[P]], %arg3, %arg3, %arg3, %arg3) {axis = 3 : i64}
// CHECK-NEXT:    %[[B:.*]] = "relax.conv2d"(%[[N]], %[[V]]) {data_layout = "NHWC", kernel_layout = "HWIO"}
// CHECK-NEXT:    %[[Y:.*]] = "relax.permute_dims"(%[[B]]) {axes = array<i64: 0, 3, 1, 2>}
// CHECK-SAME:    : (tensor<?x4x3x6xf32, {sym = ["n"]}>) -> tensor<?x6x4x3xf32, {sym = ["n"]}>
// CHECK-NEXT:    return %[[Y]]
// BACK-LABEL: @convolutions
// BACK-NOT:      permute_dims
// BACK:          return
func.func @convolutions(%x: tensor<?x4x8x6xf32, {sym = ["n"]}>, %w: tensor<8x4x3x3xf32> {relax.name = "w"},
    %v: tensor<6x8x1x1xf32> {relax.name = "v"}, %p: tensor<8xf32> {relax.name = "p"})
    -> tensor<?x6x4x3xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) {padding = array<i64: 1, 1, 1, 1>}
      : (tensor<?x4x8x6xf32, {sym = ["n"]}>, tensor<8x4x3x3xf32>) -> tensor<?x8x8x6xf32, {sym = ["n"]}>
  %1 = "relax.relu"(%0) : (tensor<?x8x8x6xf32, {sym = ["n"]}>) -> tensor<?x8x8x6xf32, {sym = ["n"]}>
  %2 = "relax.max_pool2d"(%1) {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>}
      : (tensor<?x8x8x6xf32, {sym = ["n"]}>) -> tensor<?x8x4x3xf32, {sym = ["n"]}>
  %3 = "relax.batch_norm"(%2, %p, %p, %p, %p) {axis = 1 : i64}
      : (tensor<?x8x4x3xf32, {sym = ["n"]}>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
      -> tensor<?x8x4x3xf32, {sym = ["n"]}>
  %4 = "relax.conv2d"(%3, %v) : (tensor<?x8x4x3xf32, {sym = ["n"]}>, tensor<6x8x1x1xf32>)
      -> tensor<?x6x4x3xf32, {sym = ["n"]}>
  return %4 : tensor<?x6x4x3xf32, {sym = ["n"]}>
}

// What is added, compared or chosen along with an image is reordered to fit: a bias per channel, per column, per
// element.
// CHECK-LABEL: @operands
// CHECK-DAG:     %[[COLUMN:.*]] = "relax.expand_dims"(%arg2) {axis = array<i64: 1>} : {{.*}} -> tensor<6x1xf32>
// CHECK-DAG:     %[[CHANNEL:.*]] = "relax.reshape"(%arg3) : (tensor<4x1x1xf32>) -> tensor<1x1x4xf32>
// CHECK-DAG:   %[[ELEMENT:.*]] = "relax.permute_dims"(%arg4) {axes = array<i64: 1, 2, 0>} {{.*}} -> tensor<8x6x4xf32>
// CHECK:         %[[A:.*]] = "relax.conv2d"
// CHECK-NEXT:    %[[B:.*]] = "relax.add"(%[[A]], %[[COLUMN]]) : (tensor<1x8x6x4xf32>, tensor<6x1xf32>)
// CHECK-SAME:    -> tensor<1x8x6x4xf32>
// CHECK-NEXT:    %[[C:.*]] = "relax.multiply"(%[[CHANNEL]], %[[B]])
// CHECK-NEXT:    %[[D:.*]] = "relax.greater"(%[[C]], %[[ELEMENT]])
// CHECK-NEXT:    %[[E:.*]] = "relax.where"(%[[D]], %[[C]], %[[A]])
// CHECK-NEXT:    %[[Y:.*]] = "relax.permute_dims"(%[[E]])
// CHECK-NEXT:    return %[[Y]]
func.func @operands(%x: tensor<1x4x8x6xf32>, %w: tensor<4x4x1x1xf32> {relax.name = "w"}, %b: tensor<6xf32>
    {relax.name = "b"}, %c: tensor<4x1x1xf32> {relax.name = "c"}, %e: tensor<4x8x6xf32> {relax.name = "e"})
    -> tensor<1x4x8x6xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) : (tensor<1x4x8x6xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x8x6xf32>
  %1 = "relax.add"(%0, %b) : (tensor<1x4x8x6xf32>, tensor<6xf32>) -> tensor<1x4x8x6xf32>
  %2 = "relax.multiply"(%c, %1) : (tensor<4x1x1xf32>, tensor<1x4x8x6xf32>) -> tensor<1x4x8x6xf32>
  %3 = "relax.greater"(%2, %e) : (tensor<1x4x8x6xf32>, tensor<4x8x6xf32>) -> tensor<1x4x8x6xi1>
  %4 = "relax.where"(%3, %2, %0) : (tensor<1x4x8x6xi1>, tensor<1x4x8x6xf32>, tensor<1x4x8x6xf32>) -> tensor<1x4x8x6xf32>
  return %4 : tensor<1x4x8x6xf32>
}

// Ops along dimensions follow: the numbers of the dimensions change.
// CHECK-LABEL: @along_dimensions
// CHECK:         %[[S:.*]]:2 = "relax.split"(%{{.*}}) {axis = 3 : i64, sections = 2 : i64}
// CHECK-NEXT:    %[[C:.*]] = "relax.concat"(%[[S]]#1, %[[S]]#0) {axis = 3 : i64}
// CHECK-NEXT:    %[[P:.*]] = "relax.pad"(%[[C]]) {after = array<i64: 0, 0, 2, 0>, before = array<i64: 0, 1, 0, 0>}
// CHECK-NEXT:    %[[L:.*]] = "relax.strided_slice"(%[[P]]) {axes = array<i64: 2, 3>, begin = [1, 0], end = [5, 3]}
// CHECK-SAME:    : (tensor<1x9x8x4xf32>) -> tensor<1x9x4x3xf32>
// CHECK-NEXT:    %[[M:.*]] = "relax.softmax"(%[[L]]) {axis = 2 : i64}
// CHECK-NEXT:    %[[A:.*]] = "relax.adaptive_avg_pool2d"(%[[M]]) {layout = "NHWC", output_size = array<i64: 3, 2>}
// CHECK-NEXT:    %[[V:.*]] = "relax.avg_pool2d"(%[[A]]) {layout = "NHWC", pool_size = array<i64: 2, 1>}
func.func @along_dimensions(%x: tensor<1x4x8x6xf32>, %w: tensor<4x4x1x1xf32> {relax.name = "w"}) -> tensor<1x3x2x2xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) : (tensor<1x4x8x6xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x8x6xf32>
  %1:2 = "relax.split"(%0) {axis = 1 : i64, sections = 2 : i64} : (tensor<1x4x8x6xf32>)
      -> (tensor<1x2x8x6xf32>, tensor<1x2x8x6xf32>)
  %2 = "relax.concat"(%1#1, %1#0) {axis = -3 : i64} : (tensor<1x2x8x6xf32>, tensor<1x2x8x6xf32>) -> tensor<1x4x8x6xf32>
  %3 = "relax.pad"(%2) {before = array<i64: 0, 0, 1, 0>, after = array<i64: 0, 0, 0, 2>} : (tensor<1x4x8x6xf32>)
      -> tensor<1x4x9x8xf32>
  %4 = "relax.strided_slice"(%3) {axes = array<i64: -1, 1>, begin = [1, 0], end = [5, 3]} : (tensor<1x4x9x8xf32>)
      -> tensor<1x3x9x4xf32>
  %5 = "relax.softmax"(%4) : (tensor<1x3x9x4xf32>) -> tensor<1x3x9x4xf32>
  %6 = "relax.adaptive_avg_pool2d"(%5) {output_size = array<i64: 3, 2>} : (tensor<1x3x9x4xf32>) -> tensor<1x3x3x2xf32>
  %7 = "relax.avg_pool2d"(%6) {pool_size = array<i64: 2, 1>} : (tensor<1x3x3x2xf32>) -> tensor<1x3x2x2xf32>
  return %7 : tensor<1x3x2x2xf32>
}

// Rows and columns are taken by a vector of indices; a matrix of them makes other dimensions.
// CHECK-LABEL: @taken
// CHECK:         %[[A:.*]] = "relax.conv2d"
// CHECK-NEXT:    %[[O:.*]] = "relax.permute_dims"(%[[A]]) {axes = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT:    %[[R:.*]] = "relax.take"(%[[A]], %[[I:.*]]) {axis = 1 : i64} : (tensor<1x8x6x4xf32>, tensor<5xi64>)
// CHECK-NEXT:    %[[C:.*]] = "relax.take"(%[[R]], %[[I]]) {axis = 2 : i64}
// CHECK-NEXT:    %[[N:.*]] = "relax.permute_dims"(%[[C]]) {axes = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT:    %[[M:.*]] = "relax.take"(%[[O]], %{{.*}}) {axis = 2 : i64}
// CHECK-NEXT:    return %[[N]], %[[M]]
func.func @taken(%x: tensor<1x4x8x6xf32>, %w: tensor<4x4x1x1xf32> {relax.name = "w"}, %i: tensor<5xi64>,
    %m: tensor<2x3xi64>) -> (tensor<1x4x5x5xf32>, tensor<1x4x2x3x6xf32>) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) : (tensor<1x4x8x6xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x8x6xf32>
  %1 = "relax.take"(%0, %i) {axis = 2 : i64} : (tensor<1x4x8x6xf32>, tensor<5xi64>) -> tensor<1x4x5x6xf32>
  %2 = "relax.take"(%1, %i) {axis = -1 : i64} : (tensor<1x4x5x6xf32>, tensor<5xi64>) -> tensor<1x4x5x5xf32>
  %3 = "relax.take"(%0, %m) {axis = 2 : i64} : (tensor<1x4x8x6xf32>, tensor<2x3xi64>) -> tensor<1x4x2x3x6xf32>
  return %2, %3 : tensor<1x4x5x5xf32>, tensor<1x4x2x3x6xf32>
}

// A mean over height and width leaves batch and channels in order; one over the batch does not, so it reads the old
// order. What is put back in order for two readers is so once; where only dimensions of size one change places, by a
// reshape.
// CHECK-LABEL: @reductions
// CHECK:         %[[A:.*]] = "relax.conv2d"
// CHECK-NEXT:    %[[O:.*]] = "relax.permute_dims"(%[[A]]) {axes = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT:    %[[M:.*]] = "relax.mean"(%[[A]]) {axis = array<i64: 1, 2>} : (tensor<2x8x6x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:    %[[S:.*]] = "relax.sum"(%[[A]]) {axis = array<i64: 1, 2>, keepdims = true} : (tensor<2x8x6x4xf32>)
// CHECK-SAME:    -> tensor<2x1x1x4xf32>
// CHECK-NEXT:    %[[R:.*]] = "relax.reshape"(%[[S]]) : (tensor<2x1x1x4xf32>) -> tensor<2x4x1x1xf32>
// CHECK-NEXT:    %[[B:.*]] = "relax.max"(%[[O]]) {axis = array<i64: 0>}
// CHECK-NEXT:    return %[[M]], %[[R]], %[[B]], %[[O]]
func.func @reductions(%x: tensor<2x4x8x6xf32>, %w: tensor<4x4x1x1xf32> {relax.name = "w"})
    -> (tensor<2x4xf32>, tensor<2x4x1x1xf32>, tensor<4x8x6xf32>, tensor<2x4x8x6xf32>)
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) : (tensor<2x4x8x6xf32>, tensor<4x4x1x1xf32>) -> tensor<2x4x8x6xf32>
  %1 = "relax.mean"(%0) {axis = array<i64: 2, 3>} : (tensor<2x4x8x6xf32>) -> tensor<2x4xf32>
  %2 = "relax.sum"(%0) {axis = array<i64: 2, -1>, keepdims = true} : (tensor<2x4x8x6xf32>) -> tensor<2x4x1x1xf32>
  %3 = "relax.max"(%0) {axis = array<i64: 0>} : (tensor<2x4x8x6xf32>) -> tensor<4x8x6xf32>
  return %1, %2, %3, %0 : tensor<2x4xf32>, tensor<2x4x1x1xf32>, tensor<4x8x6xf32>, tensor<2x4x8x6xf32>
}

// A shortcut around a convolution, in a branch, whose result is in the old order.
// CHECK-LABEL: @branch
// CHECK:         %[[A:.*]] = "relax.conv2d"
// CHECK-NEXT:    %[[O:.*]] = "relax.permute_dims"(%[[A]])
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      %[[B:.*]] = "relax.conv2d"(%[[A]],
// CHECK-NEXT:      %[[C:.*]] = "relax.add"(%[[B]], %[[A]])
// CHECK-NEXT:      %[[Y:.*]] = "relax.permute_dims"(%[[C]])
// CHECK-NEXT:      scf.yield %[[Y]]
// CHECK:           scf.yield %[[O]]
func.func @branch(%x: tensor<1x4x8x6xf32>, %flag: i1, %w: tensor<4x4x1x1xf32> {relax.name = "w"}) -> tensor<1x4x8x6xf32>
    attributes {relax.num_input = 2 : i64} {
  %0 = "relax.conv2d"(%x, %w) : (tensor<1x4x8x6xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x8x6xf32>
  %1 = scf.if %flag -> tensor<1x4x8x6xf32> {
    %2 = "relax.conv2d"(%0, %w) : (tensor<1x4x8x6xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x8x6xf32>
    %3 = "relax.add"(%2, %0) : (tensor<1x4x8x6xf32>, tensor<1x4x8x6xf32>) -> tensor<1x4x8x6xf32>
    scf.yield %3 : tensor<1x4x8x6xf32>
  } else {
    scf.yield %0 : tensor<1x4x8x6xf32>
  }
  return %1 : tensor<1x4x8x6xf32>
}

// Nothing to convert: no convolution in the other layout. To NCHW, a bias of the last dimension gets two more.
// CHECK-LABEL: @channels_last
// CHECK-NEXT:    "relax.max_pool2d"(%arg0) {pool_size = array<i64: 2, 2>}
// CHECK-NEXT:    "relax.conv2d"(%arg1, %arg2) {data_layout = "NHWC", kernel_layout = "HWIO"}
// CHECK-NEXT:    "relax.add"
// CHECK-NEXT:    return
// BACK-LABEL: @channels_last
// BACK-NEXT:     "relax.expand_dims"(%arg3) {axis = array<i64: 1, 2>} : (tensor<4xf32>) -> tensor<4x1x1xf32>
// BACK:          "relax.conv2d"(%{{.*}}, %{{.*}}) {data_layout = "NCHW", kernel_layout = "OIHW"}
func.func @channels_last(%i: tensor<1x4x8x6xf32>, %x: tensor<1x8x6x4xf32>, %w: tensor<1x1x4x4xf32> {relax.name = "w"},
    %b: tensor<4xf32> {relax.name = "b"}) -> (tensor<1x4x7x5xf32>, tensor<1x8x6x4xf32>)
    attributes {relax.num_input = 2 : i64} {
  %0 = "relax.max_pool2d"(%i) {pool_size = array<i64: 2, 2>} : (tensor<1x4x8x6xf32>) -> tensor<1x4x7x5xf32>
  %1 = "relax.conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO"}
      : (tensor<1x8x6x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x8x6x4xf32>
  %2 = "relax.add"(%1, %b) : (tensor<1x8x6x4xf32>, tensor<4xf32>) -> tensor<1x8x6x4xf32>
  return %0, %2 : tensor<1x4x7x5xf32>, tensor<1x8x6x4xf32>
}
