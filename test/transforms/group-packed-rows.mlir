// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-group-packed-rows{bf16=2})' | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-group-packed-rows)' | filecheck %s --check-prefix=ONE
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-pack-weights{tile=8},relax-sink-growth,\
// RUN:relax-group-packed-rows{bf16=2},\
// RUN:relax-lift-transform-params{max-growth=1.9 growth-slack=0 max-total-growth=0})' \
// RUN:   | filecheck %s --check-prefix=LIFTED
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-group-packed-rows{bf16=0})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=ZERO

// ZERO: error: expected a positive number of rows, got 0

// All products of a weight read the groups; a loop, too. Rows of an odd number are filled up with zeros.
// CHECK-LABEL: @groups
// CHECK-NEXT:    %[[P:.*]] = "relax.pack_weight"(%arg1) {layout = "tile 8, rows 2"} : (tensor<5x12xbf16>)
// CHECK-SAME:    -> tensor<2x3x8x2xbf16>
// CHECK-NEXT:    "relax.packed_matmul"(%arg0, %[[P]]) {layout = "tile 8, rows 2", n = 12 : i64}
// CHECK-SAME:    : (tensor<4x5xbf16>, tensor<2x3x8x2xbf16>) -> tensor<4x12xbf16>
// CHECK:           "relax.packed_matmul"(%arg0, %[[P]]) {layout = "tile 8, rows 2", n = 12 : i64, out_dtype = f32}
// ONE-LABEL: @groups
// ONE-NOT:     rows 2
func.func @groups(%x: tensor<4x5xbf16>, %w: tensor<5x12xbf16> {relax.name = "w"})
    -> (tensor<4x12xbf16>, tensor<4x12xf32>) attributes {relax.num_input = 1 : i64} {
  %p = "relax.pack_weight"(%w) {layout = "tile 8"} : (tensor<5x12xbf16>) -> tensor<2x5x8xbf16>
  %0 = "relax.packed_matmul"(%x, %p) {layout = "tile 8", n = 12 : i64} : (tensor<4x5xbf16>, tensor<2x5x8xbf16>)
      -> tensor<4x12xbf16>
  %true = arith.constant true
  %1 = scf.if %true -> tensor<4x12xf32> {
    %2 = "relax.packed_matmul"(%x, %p) {layout = "tile 8", n = 12 : i64, out_dtype = f32}
        : (tensor<4x5xbf16>, tensor<2x5x8xbf16>) -> tensor<4x12xf32>
    scf.yield %2 : tensor<4x12xf32>
  } else {
    %2 = "relax.full"() {value = 0.0 : f64} : () -> tensor<4x12xf32>
    scf.yield %2 : tensor<4x12xf32>
  }
  return %0, %1 : tensor<4x12xbf16>, tensor<4x12xf32>
}

// Neighbours of filters are channels; of an odd number, of a group in a narrow panel, or of an image that has an
// unknown number, they stay apart.
// CHECK-LABEL: @filters
// CHECK:         "relax.pack_weight"(%arg3) {layout = "tile 16, rows 2"} : (tensor<36x16xbf16>)
// CHECK-SAME:    -> tensor<1x18x16x2xbf16>
// CHECK-NEXT:    "relax.packed_conv2d"({{.*}}layout = "tile 16, rows 2"{{.*}} -> tensor<1x6x6x16xbf16>
// CHECK-NOT:     rows 2
func.func @filters(%x: tensor<1x8x8x4xbf16>, %y: tensor<1x8x8x3xbf16>, %z: tensor<1x8x8x?xbf16>,
    %w: tensor<36x16xbf16> {relax.name = "w"}, %v: tensor<27x16xbf16> {relax.name = "v"},
    %u: tensor<18x8xbf16> {relax.name = "u"}, %t: tensor<36x16xbf16> {relax.name = "t"})
    -> (tensor<1x6x6x16xbf16>, tensor<1x6x6x16xbf16>, tensor<1x6x6x8xbf16>, tensor<1x6x6x16xbf16>)
    attributes {relax.num_input = 3 : i64} {
  %p = "relax.pack_weight"(%w) {layout = "tile 16"} : (tensor<36x16xbf16>) -> tensor<1x36x16xbf16>
  %0 = "relax.packed_conv2d"(%x, %p) {channels = 16 : i64, kernel_size = array<i64: 3, 3>, layout = "tile 16"}
      : (tensor<1x8x8x4xbf16>, tensor<1x36x16xbf16>) -> tensor<1x6x6x16xbf16>
  %q = "relax.pack_weight"(%v) {layout = "tile 16"} : (tensor<27x16xbf16>) -> tensor<1x27x16xbf16>
  %1 = "relax.packed_conv2d"(%y, %q) {channels = 16 : i64, kernel_size = array<i64: 3, 3>, layout = "tile 16"}
      : (tensor<1x8x8x3xbf16>, tensor<1x27x16xbf16>) -> tensor<1x6x6x16xbf16>
  %r = "relax.pack_weight"(%u) {layout = "tile 4"} : (tensor<18x8xbf16>) -> tensor<2x18x4xbf16>
  %2 = "relax.packed_conv2d"(%x, %r)
      {channels = 8 : i64, groups = 2 : i64, kernel_size = array<i64: 3, 3>, layout = "tile 4"}
      : (tensor<1x8x8x4xbf16>, tensor<2x18x4xbf16>) -> tensor<1x6x6x8xbf16>
  %s = "relax.pack_weight"(%t) {layout = "tile 16"} : (tensor<36x16xbf16>) -> tensor<1x36x16xbf16>
  %3 = "relax.packed_conv2d"(%z, %s) {channels = 16 : i64, kernel_size = array<i64: 3, 3>, layout = "tile 16"}
      : (tensor<1x8x8x?xbf16>, tensor<1x36x16xbf16>) -> tensor<1x6x6x16xbf16>
  return %0, %1, %2, %3 : tensor<1x6x6x16xbf16>, tensor<1x6x6x16xbf16>, tensor<1x6x6x8xbf16>, tensor<1x6x6x16xbf16>
}

// Left alone: other dtypes, a weight that is returned, too, one that nothing reads, a single row, groups that are there
// already.
// CHECK-LABEL: @leaves
// CHECK-NOT:     rows 2
// CHECK:         rows 3
// CHECK-NOT:     rows 2
func.func @leaves(%x: tensor<4x5xf32>, %y: tensor<4x5xbf16>, %z: tensor<4x1xbf16>, %w: tensor<5x12xf32>
    {relax.name = "w"}, %v: tensor<5x12xbf16> {relax.name = "v"}, %u: tensor<1x12xbf16> {relax.name = "u"})
    -> (tensor<4x12xf32>, tensor<2x5x8xbf16>, tensor<4x12xbf16>, tensor<4x12xbf16>, tensor<4x12xbf16>)
        attributes {relax.num_input = 3 : i64} {
  %p = "relax.pack_weight"(%w) {layout = "tile 8"} : (tensor<5x12xf32>) -> tensor<2x5x8xf32>
  %0 = "relax.packed_matmul"(%x, %p) {layout = "tile 8", n = 12 : i64} : (tensor<4x5xf32>, tensor<2x5x8xf32>)
      -> tensor<4x12xf32>
  %q = "relax.pack_weight"(%v) {layout = "tile 8"} : (tensor<5x12xbf16>) -> tensor<2x5x8xbf16>
  %1 = "relax.packed_matmul"(%y, %q) {layout = "tile 8", n = 12 : i64} : (tensor<4x5xbf16>, tensor<2x5x8xbf16>)
      -> tensor<4x12xbf16>
  %unread = "relax.pack_weight"(%v) {layout = "tile 4"} : (tensor<5x12xbf16>) -> tensor<3x5x4xbf16>
  %r = "relax.pack_weight"(%u) {layout = "tile 8"} : (tensor<1x12xbf16>) -> tensor<2x1x8xbf16>
  %2 = "relax.packed_matmul"(%z, %r) {layout = "tile 8", n = 12 : i64} : (tensor<4x1xbf16>, tensor<2x1x8xbf16>)
      -> tensor<4x12xbf16>
  %s = "relax.pack_weight"(%v) {layout = "tile 8, rows 3"} : (tensor<5x12xbf16>) -> tensor<2x2x8x3xbf16>
  %3 = "relax.packed_matmul"(%y, %s) {layout = "tile 8, rows 3", n = 12 : i64}
      : (tensor<4x5xbf16>, tensor<2x2x8x3xbf16>) -> tensor<4x12xbf16>
  return %0, %q, %1, %2, %3 : tensor<4x12xf32>, tensor<2x5x8xbf16>, tensor<4x12xbf16>, tensor<4x12xbf16>,
      tensor<4x12xbf16>
}

// A weight that grows behind its packing stays narrow; what is bf16 itself is grouped when weights are prepared.
// LIFTED-LABEL: @grows_transform_params
// LIFTED:        "relax.pack_weight"({{.*}}) {layout = "tile 8"} : (tensor<5x12xi8>) -> tensor<2x5x8xi8>
// LIFTED:        "relax.pack_weight"({{.*}}) {layout = "tile 8, rows 2"} : (tensor<5x12xbf16>) -> tensor<2x3x8x2xbf16>
// LIFTED-LABEL: @grows(
// LIFTED-SAME:     tensor<2x5x8xi8>
// LIFTED-SAME:     tensor<2x3x8x2xbf16>
func.func @grows(%x: tensor<4x5xbf16>, %q: tensor<5x12xi8> {relax.name = "q"}, %w: tensor<12x5xbf16> {relax.name = "w"})
    -> (tensor<4x12xbf16>, tensor<4x12xbf16>) attributes {relax.num_input = 1 : i64} {
  %v = "relax.astype"(%q) {dtype = bf16} : (tensor<5x12xi8>) -> tensor<5x12xbf16>
  %0 = "relax.matmul"(%x, %v) : (tensor<4x5xbf16>, tensor<5x12xbf16>) -> tensor<4x12xbf16>
  %t = "relax.permute_dims"(%w) : (tensor<12x5xbf16>) -> tensor<5x12xbf16>
  %1 = "relax.matmul"(%x, %t) : (tensor<4x5xbf16>, tensor<5x12xbf16>) -> tensor<4x12xbf16>
  return %0, %1 : tensor<4x12xbf16>, tensor<4x12xbf16>
}

// Products of rows in groups read pairs, too.
// CHECK-LABEL: @grouped
// CHECK:         %[[PACKED:.*]] = "relax.pack_weight"({{.*}}) {layout = "tile 8, rows 2"}
// CHECK:         "relax.packed_grouped_matmul"(%{{.*}}, %[[PACKED]], %{{.*}}) {layout = "tile 8, rows 2", n = 24 : i64}
func.func @grouped(%x: tensor<4x5xbf16>, %ends: tensor<3xi64>, %w: tensor<5x24xbf16> {relax.name = "w"})
    -> tensor<4x8xbf16> attributes {relax.num_input = 2 : i64} {
  %p = "relax.pack_weight"(%w) {layout = "tile 8"} : (tensor<5x24xbf16>) -> tensor<3x5x8xbf16>
  %0 = "relax.packed_grouped_matmul"(%x, %p, %ends) {layout = "tile 8", n = 24 : i64}
      : (tensor<4x5xbf16>, tensor<3x5x8xbf16>, tensor<3xi64>) -> tensor<4x8xbf16>
  return %0 : tensor<4x8xbf16>
}
