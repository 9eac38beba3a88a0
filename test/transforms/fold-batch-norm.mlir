// RUN: relax-opt %s --relax-fold-batch-norm | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-fold-batch-norm,relax-lift-transform-params)' \
// RUN:   | filecheck %s --check-prefix=LIFTED

// Behind a convolution: the weight is scaled per output channel, the shift becomes a bias.
// CHECK-LABEL: @conv
// CHECK-NEXT:    %[[EPS:.*]] = "relax.full"() {value = 1.000000e-03 : f64} : () -> tensor<f32>
// CHECK-NEXT:    %[[VAR:.*]] = "relax.add"(%arg5, %[[EPS]])
// CHECK-NEXT:    %[[STD:.*]] = "relax.sqrt"(%[[VAR]])
// CHECK-NEXT:    %[[SCALE:.*]] = "relax.divide"(%arg2, %[[STD]])
// CHECK-NEXT:    %[[MEAN:.*]] = "relax.multiply"(%arg4, %[[SCALE]])
// CHECK-NEXT:    %[[SHIFT:.*]] = "relax.subtract"(%arg3, %[[MEAN]])
// CHECK-NEXT:    %[[SPREAD:.*]] = "relax.expand_dims"(%[[SCALE]]) {axis = array<i64: 1, 2, 3>}
// CHECK-NEXT:    %[[W:.*]] = "relax.multiply"(%arg1, %[[SPREAD]])
// CHECK-NEXT:    %[[B:.*]] = "relax.expand_dims"(%[[SHIFT]]) {axis = array<i64: 1, 2>} : (tensor<8xf32>)
// CHECK-SAME:    -> tensor<8x1x1xf32>
// CHECK-NEXT:    %[[Y:.*]] = "relax.conv2d"(%arg0, %[[W]]) {padding = array<i64: 1, 1, 1, 1>}
// CHECK-NEXT:    %[[Z:.*]] = "relax.add"(%[[Y]], %[[B]])
// CHECK-NEXT:    return %[[Z]]
// LIFTED-LABEL: @conv(
// LIFTED-NEXT:   "relax.conv2d"
// LIFTED-NEXT:   "relax.add"
// LIFTED-NEXT:   return
func.func @conv(%x: tensor<?x4x6x6xf32, {sym = ["n"]}>, %w: tensor<8x4x3x3xf32> {relax.name = "w"}, %g: tensor<8xf32>
    {relax.name = "g"}, %b: tensor<8xf32> {relax.name = "b"}, %m: tensor<8xf32> {relax.name = "m"}, %v: tensor<8xf32>
    {relax.name = "v"}) -> tensor<?x8x6x6xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) {padding = array<i64: 1, 1, 1, 1>}
      : (tensor<?x4x6x6xf32, {sym = ["n"]}>, tensor<8x4x3x3xf32>) -> tensor<?x8x6x6xf32, {sym = ["n"]}>
  %1 = "relax.batch_norm"(%0, %g, %b, %m, %v) {axis = 1 : i64, epsilon = 1.0e-3 : f64}
      : (tensor<?x8x6x6xf32, {sym = ["n"]}>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
      -> tensor<?x8x6x6xf32, {sym = ["n"]}>
  return %1 : tensor<?x8x6x6xf32, {sym = ["n"]}>
}

// A bias between the two is merged, on either side of its addition; grouped convolutions are scaled alike.
// CHECK-LABEL: @bias
// CHECK:         %[[FLAT:.*]] = "relax.reshape"(%arg6) : (tensor<8x1x1xf32>) -> tensor<8xf32>
// CHECK-NEXT:    "relax.subtract"(%[[FLAT]], %arg4)
// CHECK:         "relax.conv2d"(%arg0, %{{.*}}) {groups = 2 : i64}
// CHECK-NEXT:    "relax.add"
// CHECK-NEXT:    return
// LIFTED-LABEL: @bias(
// LIFTED-NEXT:   "relax.conv2d"
// LIFTED-NEXT:   "relax.add"
// LIFTED-NEXT:   return
func.func @bias(%x: tensor<1x4x6x6xf32>, %w: tensor<8x2x3x3xf32> {relax.name = "w"}, %g: tensor<8xf32>
    {relax.name = "g"}, %b: tensor<8xf32> {relax.name = "b"}, %m: tensor<8xf32> {relax.name = "m"}, %v: tensor<8xf32>
    {relax.name = "v"}, %c: tensor<8x1x1xf32> {relax.name = "c"}) -> tensor<1x8x4x4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) {groups = 2 : i64} : (tensor<1x4x6x6xf32>, tensor<8x2x3x3xf32>) -> tensor<1x8x4x4xf32>
  %1 = "relax.add"(%c, %0) : (tensor<8x1x1xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %2 = "relax.batch_norm"(%1, %g, %b, %m, %v)
      : (tensor<1x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<1x8x4x4xf32>
  return %2 : tensor<1x8x4x4xf32>
}

// A convolution in one dimension is one in two over a single row, which is dropped in between.
// CHECK-LABEL: @one_dimension
// CHECK:         "relax.conv2d"
// CHECK-NEXT:    "relax.squeeze"
// CHECK-NEXT:    "relax.add"
// CHECK-NEXT:    return
func.func @one_dimension(%x: tensor<2x3x1x9xf32>, %w: tensor<4x3x1x3xf32> {relax.name = "w"}, %g: tensor<4xf32>
    {relax.name = "g"}, %b: tensor<4xf32> {relax.name = "b"}, %m: tensor<4xf32> {relax.name = "m"}, %v: tensor<4xf32>
    {relax.name = "v"}, %c: tensor<4x1xf32> {relax.name = "c"}) -> tensor<2x4x7xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) : (tensor<2x3x1x9xf32>, tensor<4x3x1x3xf32>) -> tensor<2x4x1x7xf32>
  %1 = "relax.squeeze"(%0) {axis = array<i64: 2>} : (tensor<2x4x1x7xf32>) -> tensor<2x4x7xf32>
  %2 = "relax.add"(%1, %c) : (tensor<2x4x7xf32>, tensor<4x1xf32>) -> tensor<2x4x7xf32>
  %3 = "relax.batch_norm"(%2, %g, %b, %m, %v)
      : (tensor<2x4x7xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x7xf32>
  return %3 : tensor<2x4x7xf32>
}

// Behind a linear layer, and between a transposed sequence and one.
// CHECK-LABEL: @linear
// CHECK:         "relax.matmul"
// CHECK-NEXT:    "relax.permute_dims"
// CHECK-NEXT:    "relax.add"
// CHECK-NEXT:    return
func.func @linear(%x: tensor<?x5x4xf32, {sym = ["n"]}>, %w: tensor<4x8xf32> {relax.name = "w"}, %g: tensor<8xf32>
    {relax.name = "g"}, %b: tensor<8xf32> {relax.name = "b"}, %m: tensor<8xf32> {relax.name = "m"}, %v: tensor<8xf32>
    {relax.name = "v"}, %c: tensor<8xf32> {relax.name = "c"}) -> tensor<?x8x5xf32, {sym = ["n"]}>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %w) : (tensor<?x5x4xf32, {sym = ["n"]}>, tensor<4x8xf32>) -> tensor<?x5x8xf32, {sym = ["n"]}>
  %1 = "relax.add"(%0, %c) : (tensor<?x5x8xf32, {sym = ["n"]}>, tensor<8xf32>) -> tensor<?x5x8xf32, {sym = ["n"]}>
  %2 = "relax.permute_dims"(%1) {axes = array<i64: 0, 2, 1>} : (tensor<?x5x8xf32, {sym = ["n"]}>)
      -> tensor<?x8x5xf32, {sym = ["n"]}>
  %3 = "relax.batch_norm"(%2, %g, %b, %m, %v)
      : (tensor<?x8x5xf32, {sym = ["n"]}>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
      -> tensor<?x8x5xf32, {sym = ["n"]}>
  return %3 : tensor<?x8x5xf32, {sym = ["n"]}>
}

// In front of a convolution without padding: the shift passes through the weight, and into the bias behind.
// CHECK-LABEL: @in_front
// CHECK:         %[[ROWS:.*]] = "relax.reshape"(%{{.*}}) : (tensor<4xf32>) -> tensor<2x2xf32>
// CHECK-NEXT:    "relax.repeat"(%[[ROWS]]) {axis = 0 : i64, repeats = 3 : i64} : (tensor<2x2xf32>) -> tensor<6x2xf32>
// CHECK:         "relax.sum"(%{{.*}}) {axis = array<i64: 1, 2, 3>} : (tensor<6x2x3x3xf32>) -> tensor<6xf32>
// CHECK:         "relax.conv2d"(%arg0,
// CHECK:         "relax.add"({{.*}} : (tensor<1x6x4x4xf32>, tensor<6x1x1xf32>)
// CHECK-NEXT:    return
// LIFTED-LABEL: @in_front(
// LIFTED-NEXT:   "relax.conv2d"
// LIFTED-NEXT:   "relax.add"
// LIFTED-NEXT:   return
func.func @in_front(%x: tensor<1x4x6x6xf32>, %w: tensor<6x2x3x3xf32> {relax.name = "w"}, %g: tensor<4xf32>
    {relax.name = "g"}, %b: tensor<4xf32> {relax.name = "b"}, %m: tensor<4xf32> {relax.name = "m"}, %v: tensor<4xf32>
    {relax.name = "v"}, %c: tensor<6x1x1xf32> {relax.name = "c"}) -> tensor<1x6x4x4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.batch_norm"(%x, %g, %b, %m, %v)
      : (tensor<1x4x6x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x6x6xf32>
  %1 = "relax.conv2d"(%0, %w) {groups = 2 : i64} : (tensor<1x4x6x6xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x4x4xf32>
  %2 = "relax.add"(%1, %c) : (tensor<1x6x4x4xf32>, tensor<6x1x1xf32>) -> tensor<1x6x4x4xf32>
  return %2 : tensor<1x6x4x4xf32>
}

// Two in a row, then a linear layer: both go into its weight.
// CHECK-LABEL: @in_front_of_linear
// CHECK-NOT:     batch_norm
// CHECK:         "relax.matmul"(%arg0, %{{.*}}) : (tensor<3x4xf32>, tensor<4x2xf32>)
// CHECK:         "relax.add"({{.*}} : (tensor<3x2xf32>, tensor<2xf32>)
// CHECK-NEXT:    return
func.func @in_front_of_linear(%x: tensor<3x4xf32>, %w: tensor<4x2xf32> {relax.name = "w"}, %g: tensor<4xf32>
    {relax.name = "g"}, %b: tensor<4xf32> {relax.name = "b"}, %m: tensor<4xf32> {relax.name = "m"}, %v: tensor<4xf32>
    {relax.name = "v"}) -> tensor<3x2xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.batch_norm"(%x, %g, %b, %m, %v)
      : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %1 = "relax.batch_norm"(%0, %m, %b, %g, %v)
      : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %2 = "relax.matmul"(%1, %w) : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  return %2 : tensor<3x2xf32>
}

// Narrow weights are scaled in f32 and rounded once.
// CHECK-LABEL: @narrow
// CHECK:         %[[W:.*]] = "relax.astype"(%arg1) {dtype = f32}
// CHECK:         %[[P:.*]] = "relax.multiply"(%[[W]],
// CHECK:         "relax.astype"(%[[P]]) {dtype = bf16}
// CHECK:         "relax.matmul"
// CHECK-NEXT:    "relax.add"
// CHECK-NEXT:    return
func.func @narrow(%x: tensor<3x4xbf16>, %w: tensor<4x2xbf16> {relax.name = "w"}, %g: tensor<2xbf16> {relax.name = "g"},
    %b: tensor<2xbf16> {relax.name = "b"}, %m: tensor<2xbf16> {relax.name = "m"}, %v: tensor<2xbf16> {relax.name = "v"})
    -> tensor<3x2xbf16> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %w) : (tensor<3x4xbf16>, tensor<4x2xbf16>) -> tensor<3x2xbf16>
  %1 = "relax.batch_norm"(%0, %g, %b, %m, %v) {axis = -1 : i64}
      : (tensor<3x2xbf16>, tensor<2xbf16>, tensor<2xbf16>, tensor<2xbf16>, tensor<2xbf16>) -> tensor<3x2xbf16>
  return %1 : tensor<3x2xbf16>
}

// A constant is as good as a weight, and inside of a region a batch norm is folded there.
// CHECK-LABEL: @region
// CHECK:         scf.if
// CHECK-NOT:     batch_norm
// CHECK:         } else {
func.func @region(%x: tensor<3x4xf32>, %flag: i1, %w: tensor<4x2xf32> {relax.name = "w"}) -> tensor<3x2xf32>
    attributes {relax.num_input = 2 : i64} {
  %c = "relax.full"() {value = 2.0 : f64} : () -> tensor<2xf32>
  %0 = "relax.matmul"(%x, %w) : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %1 = scf.if %flag -> tensor<3x2xf32> {
    %2 = "relax.matmul"(%x, %w) : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
    %3 = "relax.batch_norm"(%2, %c, %c, %c, %c)
        : (tensor<3x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
    scf.yield %3 : tensor<3x2xf32>
  } else {
    scf.yield %0 : tensor<3x2xf32>
  }
  return %1 : tensor<3x2xf32>
}

// A weight that is also the bias is scaled as the one and shifted as the other.
// CHECK-LABEL: @weight_as_bias
// CHECK:         %[[W:.*]] = "relax.multiply"(%arg1,
// CHECK:         %[[Y:.*]] = "relax.matmul"(%arg0, %[[W]])
// CHECK-NEXT:    %[[Z:.*]] = "relax.add"(%[[Y]], %{{.*}}) : (tensor<3x8xf32>, tensor<8xf32>)
// CHECK-NEXT:    return %[[Z]]
func.func @weight_as_bias(%x: tensor<3x1xf32>, %w: tensor<1x8xf32> {relax.name = "w"}, %p: tensor<8xf32>
    {relax.name = "p"}) -> tensor<3x8xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %w) : (tensor<3x1xf32>, tensor<1x8xf32>) -> tensor<3x8xf32>
  %1 = "relax.add"(%w, %0) : (tensor<1x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %2 = "relax.batch_norm"(%1, %p, %p, %p, %p)
      : (tensor<3x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  return %2 : tensor<3x8xf32>
}

// Left alone: a result that something else reads, another dimension than the output channels, an activation in between.
// CHECK-LABEL: @leaves
// CHECK-COUNT-3: "relax.batch_norm"
// CHECK:         return
func.func @leaves(%x: tensor<4x4xf32>, %w: tensor<4x4xf32> {relax.name = "w"}, %p: tensor<4xf32> {relax.name = "p"})
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relax.batch_norm"(%0, %p, %p, %p, %p)
      : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %2 = "relax.matmul"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = "relax.batch_norm"(%2, %p, %p, %p, %p) {axis = 0 : i64}
      : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %4 = "relax.matmul"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = "relax.relu"(%4) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %6 = "relax.batch_norm"(%5, %p, %p, %p, %p)
      : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %0, %1, %3, %6 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// Left alone: weights and statistics of run time, a barrier, a padded convolution behind, a batch norm that two ops
// read.
// CHECK-LABEL: @leaves_too
// CHECK-COUNT-5: "relax.batch_norm"
// CHECK:         return
func.func @leaves_too(%x: tensor<1x1x4x4xf32>, %r: tensor<1x1x1x1xf32>, %s: tensor<1xf32>, %w: tensor<1x1x1x1xf32>
    {relax.name = "w"}, %p: tensor<1xf32> {relax.name = "p"})
    -> (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x6x6xf32>, tensor<1x1x4x4xf32>,
    tensor<1x1x4x4xf32>) attributes {relax.num_input = 3 : i64} {
  %0 = "relax.conv2d"(%x, %r) : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x4x4xf32>
  %1 = "relax.batch_norm"(%0, %p, %p, %p, %p)
      : (tensor<1x1x4x4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x4x4xf32>
  %2 = "relax.conv2d"(%x, %w) : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x4x4xf32>
  %3 = "relax.batch_norm"(%2, %p, %p, %s, %p)
      : (tensor<1x1x4x4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x4x4xf32>
  %b = "relax.stop_lift_params"(%w) : (tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  %4 = "relax.conv2d"(%x, %b) : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x4x4xf32>
  %5 = "relax.batch_norm"(%4, %p, %p, %p, %p)
      : (tensor<1x1x4x4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x4x4xf32>
  %6 = "relax.batch_norm"(%x, %p, %p, %p, %p)
      : (tensor<1x1x4x4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x4x4xf32>
  %7 = "relax.conv2d"(%6, %w) {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>)
      -> tensor<1x1x6x6xf32>
  %8 = "relax.batch_norm"(%x, %p, %p, %p, %p)
      : (tensor<1x1x4x4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x4x4xf32>
  %9 = "relax.conv2d"(%8, %w) : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x4x4xf32>
  return %1, %3, %5, %7, %8, %9 : tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x6x6xf32>,
      tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>
}
