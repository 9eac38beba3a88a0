// RUN: relax-opt %s --relax-sink-growth --split-input-file | filecheck %s

// A cast commutes with everything that moves data; the narrow weight is moved.
// CHECK-LABEL: @casts
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg1) {{.*}}-> tensor<4x12xbf16>
// CHECK-NEXT:    %1 = "relax.pack_weight"(%0) {layout = "tile 8"} : (tensor<4x12xbf16>) -> tensor<2x4x8xbf16>
// CHECK-NEXT:    %2 = "relax.astype"(%1) {dtype = f32} : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
// CHECK-NEXT:    %3 = "relax.packed_matmul"(%arg0, %2)
func.func @casts(%x: tensor<3x4xf32>, %w: tensor<12x4xbf16> {relax.name = "w"}) -> tensor<3x12xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.astype"(%w) {dtype = f32} : (tensor<12x4xbf16>) -> tensor<12x4xf32>
  %1 = "relax.permute_dims"(%0) {axes = array<i64: 1, 0>} : (tensor<12x4xf32>) -> tensor<4x12xf32>
  %2 = "relax.pack_weight"(%1) {layout = "tile 8"} : (tensor<4x12xf32>) -> tensor<2x4x8xf32>
  %3 = "relax.packed_matmul"(%x, %2) {layout = "tile 8", n = 12 : i64} : (tensor<3x4xf32>, tensor<2x4x8xf32>)
      -> tensor<3x12xf32>
  return %3 : tensor<3x12xf32>
}

// -----

// Per channel: the scales go where the channels go, the scalar zero point stays.
// CHECK-LABEL: @channels
// CHECK-DAG:     %[[S:.*]] = "relax.pack_weight"(%{{.*}}) {layout = "tile 8"} : (tensor<1x16xf32>) -> tensor<2x1x8xf32>
// CHECK-DAG:     %[[Q:.*]] = "relax.pack_weight"(%{{.*}}) {layout = "tile 8"} : (tensor<4x16xi8>) -> tensor<2x4x8xi8>
// CHECK:         "relax.dequantize"(%[[Q]], %[[S]], %arg3) : (tensor<2x4x8xi8>, tensor<2x1x8xf32>, tensor<i8>)
// CHECK-SAME:      -> tensor<2x4x8xf32>
func.func @channels(%x: tensor<3x4xf32>, %q: tensor<16x4xi8> {relax.name = "q"}, %s: tensor<16xf32> {relax.name = "s"},
    %z: tensor<i8> {relax.name = "z"}) -> tensor<2x4x8xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.dequantize"(%q, %s, %z) {axis = 0 : i64} : (tensor<16x4xi8>, tensor<16xf32>, tensor<i8>)
      -> tensor<16x4xf32>
  %1 = "relax.permute_dims"(%0) : (tensor<16x4xf32>) -> tensor<4x16xf32>
  %2 = "relax.pack_weight"(%1) {layout = "tile 8"} : (tensor<4x16xf32>) -> tensor<2x4x8xf32>
  return %2 : tensor<2x4x8xf32>
}

// -----

// Groups that were a dimension of their own become blocks of the merged one.
// CHECK-LABEL: @groups
// CHECK-DAG:     %[[Q:.*]] = "relax.reshape"(%arg0) : (tensor<2x32x8xi4>) -> tensor<64x8xi4>
// CHECK-DAG:     %[[S:.*]] = "relax.reshape"(%arg1) : (tensor<2x1x8xf16>) -> tensor<2x8xf16>
// CHECK-DAG:     %[[Z:.*]] = "relax.reshape"(%arg2) : (tensor<2x1x8xi4>) -> tensor<2x8xi4>
// CHECK:         "relax.dequantize"(%[[Q]], %[[S]], %[[Z]]) : (tensor<64x8xi4>, tensor<2x8xf16>, tensor<2x8xi4>)
// CHECK-SAME:      -> tensor<64x8xf16>
func.func @groups(%q: tensor<2x32x8xi4> {relax.name = "q"}, %s: tensor<2x1x8xf16> {relax.name = "s"},
    %z: tensor<2x1x8xi4> {relax.name = "z"}) -> tensor<64x8xf16> attributes {relax.num_input = 0 : i64} {
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<2x32x8xi4>, tensor<2x1x8xf16>, tensor<2x1x8xi4>) -> tensor<2x32x8xf16>
  %1 = "relax.reshape"(%0) : (tensor<2x32x8xf16>) -> tensor<64x8xf16>
  return %1 : tensor<64x8xf16>
}

// -----

// Blocks that a reshape would tear apart stay where they are, and so does a pack whose padding would not be zero.
// CHECK-LABEL: @stays
// CHECK:         "relax.reshape"(%{{.*}}) : (tensor<4x6xf32>) -> tensor<3x8xf32>
// CHECK:         "relax.pack_weight"(%{{.*}}) {layout = "tile 8"} : (tensor<4x6xf32>)
func.func @stays(%q: tensor<4x6xi8> {relax.name = "q"}, %s: tensor<4x2xf32> {relax.name = "s"}, %z: tensor<i8>
    {relax.name = "z"}) -> (tensor<3x8xf32>, tensor<1x4x8xf32>) attributes {relax.num_input = 0 : i64} {
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<4x6xi8>, tensor<4x2xf32>, tensor<i8>) -> tensor<4x6xf32>
  %1 = "relax.reshape"(%0) : (tensor<4x6xf32>) -> tensor<3x8xf32>
  %2 = "relax.pack_weight"(%0) {layout = "tile 8"} : (tensor<4x6xf32>) -> tensor<1x4x8xf32>
  return %1, %2 : tensor<3x8xf32>, tensor<1x4x8xf32>
}

// -----

// Rows are looked up in the narrow table, and only they grow; the table's other use is a growth of its own.
// CHECK-LABEL: @tied
// CHECK-NEXT:    %0 = "relax.take"(%arg1, %arg0) : (tensor<8x4xf16>, tensor<?xi64, {sym = ["n"]}>)
// CHECK-SAME:    -> tensor<?x4xf16, {sym = ["n"]}>
// CHECK-NEXT:    %1 = "relax.astype"(%0)
// CHECK-NEXT:    %2 = "relax.permute_dims"(%arg1) : (tensor<8x4xf16>)
// CHECK-NEXT:    %3 = "relax.astype"(%2)
// CHECK-NEXT:    %4 = "relax.matmul"(%1, %3)
func.func @tied(%ids: tensor<?xi64, {sym = ["n"]}>, %w: tensor<8x4xf16> {relax.name = "w"})
    -> tensor<?x8xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.astype"(%w) {dtype = f32} : (tensor<8x4xf16>) -> tensor<8x4xf32>
  %1 = "relax.take"(%0, %ids) : (tensor<8x4xf32>, tensor<?xi64, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  %2 = "relax.permute_dims"(%0) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %3 = "relax.matmul"(%1, %2) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  return %3 : tensor<?x8xf32, {sym = ["n"]}>
}

// -----

// Rows of a quantized table take their scales with them; what indices are refused is the same of both.
// CHECK-LABEL: @rows
// CHECK-DAG:     %[[Q:.*]] = "relax.take"(%arg1, %arg0) {wrap_negative_indices = false} : {{.*}} -> tensor<2x3x64xi4>
// CHECK-DAG:     %[[S:\w+]] = "relax.take"(%arg2, %arg0) {axis = 0 : i64, wrap_negative_indices = false}
// CHECK-DAG:     %[[Z:.*]] = "relax.reshape"(%arg3) : (tensor<1x2xi4>) -> tensor<1x1x2xi4>
// CHECK:         "relax.dequantize"(%[[Q]], %[[S]], %[[Z]])
func.func @rows(%ids: tensor<2x3xi64>, %q: tensor<8x64xi4> {relax.name = "q"}, %s: tensor<8x2xf32> {relax.name = "s"},
    %z: tensor<1x2xi4> {relax.name = "z"}) -> tensor<2x3x64xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<8x64xi4>, tensor<8x2xf32>, tensor<1x2xi4>) -> tensor<8x64xf32>
  %1 = "relax.take"(%0, %ids) {wrap_negative_indices = false}
      : (tensor<8x64xf32>, tensor<2x3xi64>) -> tensor<2x3x64xf32>
  return %1 : tensor<2x3x64xf32>
}

// -----

// Two scales of whole tensors become one scale per row of both.
// CHECK-LABEL: @concatenated
// CHECK-DAG:     "relax.repeat"(%{{.*}}) {axis = 0 : i64, repeats = 2 : i64} : (tensor<1x1xf32>) -> tensor<2x1xf32>
// CHECK-DAG:     "relax.repeat"(%{{.*}}) {axis = 0 : i64, repeats = 3 : i64} : (tensor<1x1xf32>) -> tensor<3x1xf32>
// CHECK:         "relax.dequantize"(%{{\w+}}, %{{\w+}}, %arg4) : (tensor<5x4xi8>, tensor<5x1xf32>, tensor<i8>)
// CHECK-SAME:      -> tensor<5x4xf32>
// CHECK-NEXT:    return
func.func @concatenated(%a: tensor<2x4xi8> {relax.name = "a"}, %b: tensor<3x4xi8> {relax.name = "b"}, %s: tensor<f32>
    {relax.name = "s"}, %t: tensor<f32> {relax.name = "t"}, %z: tensor<i8> {relax.name = "z"}) -> tensor<5x4xf32>
    attributes {relax.num_input = 0 : i64} {
  %0 = "relax.dequantize"(%a, %s, %z) : (tensor<2x4xi8>, tensor<f32>, tensor<i8>) -> tensor<2x4xf32>
  %1 = "relax.dequantize"(%b, %t, %z) : (tensor<3x4xi8>, tensor<f32>, tensor<i8>) -> tensor<3x4xf32>
  %2 = "relax.concat"(%0, %1) : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
  return %2 : tensor<5x4xf32>
}

// -----

// Parts of a weight in groups of 32 rows have their own groups; a slice across a group keeps the weight whole.
// CHECK-LABEL: @parts
// CHECK-DAG:     "relax.split"(%arg0) {sections = 2 : i64} : (tensor<128x4xi8>)
// CHECK-DAG:     "relax.split"(%arg1) {axis = 0 : i64, sections = 2 : i64} : (tensor<4x4xf32>)
// CHECK-DAG:     "relax.strided_slice"(%arg0) {{.*}}end = ["96"]{{.*}} -> tensor<64x4xi8>
// CHECK-DAG:     "relax.strided_slice"(%arg1) {{.*}}begin = [1], end = [3]
// CHECK-DAG:     "relax.strided_slice"(%{{.*}}) {{.*}} : (tensor<128x4xf32>) -> tensor<16x4xf32>
func.func @parts(%q: tensor<128x4xi8> {relax.name = "q"}, %s: tensor<4x4xf32> {relax.name = "s"}, %z: tensor<1x4xi8>
    {relax.name = "z"})
    -> (tensor<64x4xf32>, tensor<64x4xf32>, tensor<64x4xf32>, tensor<16x4xf32>) attributes {relax.num_input = 0 : i64} {
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<128x4xi8>, tensor<4x4xf32>, tensor<1x4xi8>) -> tensor<128x4xf32>
  %1:2 = "relax.split"(%0) {sections = 2 : i64} : (tensor<128x4xf32>) -> (tensor<64x4xf32>, tensor<64x4xf32>)
  %2 = "relax.strided_slice"(%0) {axes = array<i64: 0>, begin = ["32"], end = ["96"]} : (tensor<128x4xf32>)
      -> tensor<64x4xf32>
  %3 = "relax.strided_slice"(%0) {axes = array<i64: 0>, begin = ["0"], end = ["16"]} : (tensor<128x4xf32>)
      -> tensor<16x4xf32>
  return %1#0, %1#1, %2, %3 : tensor<64x4xf32>, tensor<64x4xf32>, tensor<64x4xf32>, tensor<16x4xf32>
}

// -----

// Codes of a table move, the table does not; scales of scales move with them, and what is rounded stays so.
// CHECK-LABEL: @codes
// CHECK-DAG:     %[[Q:.*]] = "relax.permute_dims"(%arg0) : (tensor<8x64xui4>) -> tensor<64x8xui4>
// CHECK-DAG:     %[[D:.*]] = "relax.permute_dims"(%arg2) : (tensor<8x2xui8>) -> tensor<2x8xui8>
// CHECK-DAG:     %[[S:.*]] = "relax.dequantize"(%[[D]], %{{\w+}}, %arg4) {out_dtype = f32, relax.lift = "never"}
// CHECK-DAG:     %[[T:.*]] = "relax.look_up"(%[[Q]], %arg1) {relax.lift = "never"}
// CHECK:         "relax.dequantize"(%[[T]], %[[S]], %arg5) {out_dtype = bf16, relax.lift = "never"}
// CHECK-SAME:      -> tensor<64x8xbf16>
// CHECK-NEXT:    return
func.func @codes(%q: tensor<8x64xui4> {relax.name = "q"}, %t: tensor<16xf32> {relax.name = "t"}, %d: tensor<8x2xui8>
    {relax.name = "d"}, %s: tensor<8x1xf16> {relax.name = "s"}, %z: tensor<ui8> {relax.name = "z"}, %l: tensor<f32>
    {relax.name = "l"}) -> tensor<64x8xbf16> attributes {relax.num_input = 0 : i64} {
  %0 = "relax.look_up"(%q, %t) {relax.lift = "never"} : (tensor<8x64xui4>, tensor<16xf32>) -> tensor<8x64xf32>
  %1 = "relax.dequantize"(%d, %s, %z) {out_dtype = f32, relax.lift = "never"}
      : (tensor<8x2xui8>, tensor<8x1xf16>, tensor<ui8>) -> tensor<8x2xf32>
  %2 = "relax.dequantize"(%0, %1, %l) {out_dtype = bf16, relax.lift = "never"}
      : (tensor<8x64xf32>, tensor<8x2xf32>, tensor<f32>) -> tensor<8x64xbf16>
  %3 = "relax.permute_dims"(%2) : (tensor<8x64xbf16>) -> tensor<64x8xbf16>
  return %3 : tensor<64x8xbf16>
}

// -----

// Tables of their own keep codes apart; what moves a value that is lifted always, is, too.
// CHECK-LABEL: @tables
// CHECK:         "relax.concat"(%{{\w+}}, %{{\w+}}) : (tensor<2x4xf32>, tensor<2x4xf32>)
// CHECK:         %[[A:.*]] = "relax.negative"(%{{\w+}}) {relax.lift = "always"}
// CHECK-NEXT:    "relax.permute_dims"(%[[A]]) {relax.lift = "always"}
func.func @tables(%a: tensor<2x4xui4> {relax.name = "a"}, %t: tensor<16xf32> {relax.name = "t"}, %u: tensor<16xf32>
    {relax.name = "u"}, %q: tensor<2x4xi8> {relax.name = "q"})
    -> (tensor<4x4xf32>, tensor<4x2xf32>) attributes {relax.num_input = 0 : i64} {
  %0 = "relax.look_up"(%a, %t) : (tensor<2x4xui4>, tensor<16xf32>) -> tensor<2x4xf32>
  %1 = "relax.look_up"(%a, %u) : (tensor<2x4xui4>, tensor<16xf32>) -> tensor<2x4xf32>
  %2 = "relax.concat"(%0, %1) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %3 = "relax.negative"(%q) {relax.lift = "always"} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  %4 = "relax.astype"(%3) {dtype = f32} : (tensor<2x4xi8>) -> tensor<2x4xf32>
  %5 = "relax.permute_dims"(%4) : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return %2, %5 : tensor<4x4xf32>, tensor<4x2xf32>
}

// -----

// What grows twice is moved while it is smallest.
// CHECK-LABEL: @twice
// CHECK:         "relax.reshape"(%arg0) : (tensor<4xbf16>) -> tensor<1x4xbf16>
// CHECK-NEXT:    "relax.permute_dims"({{.*}}) : (tensor<1x4xbf16>) -> tensor<4x1xbf16>
// CHECK-NEXT:    "relax.broadcast_to"({{.*}}) : (tensor<4x1xbf16>) -> tensor<4x3xbf16>
// CHECK-NEXT:    "relax.astype"
// CHECK-NEXT:    return
func.func @twice(%w: tensor<4xbf16> {relax.name = "w"}) -> tensor<4x3xf32> attributes {relax.num_input = 0 : i64} {
  %0 = "relax.broadcast_to"(%w) : (tensor<4xbf16>) -> tensor<3x4xbf16>
  %1 = "relax.astype"(%0) {dtype = f32} : (tensor<3x4xbf16>) -> tensor<3x4xf32>
  %2 = "relax.permute_dims"(%1) : (tensor<3x4xf32>) -> tensor<4x3xf32>
  return %2 : tensor<4x3xf32>
}

// -----

// Left alone: run-time values, what is behind a barrier, casts that make smaller, a function that names no weights.
// CHECK-LABEL: @leaves
// CHECK-COUNT-3: "relax.permute_dims"({{.*}}) : (tensor<2x3xf32>)
// CHECK:         "relax.permute_dims"({{.*}}) : (tensor<2x3xf16>)
func.func @leaves(%x: tensor<2x3xf16>, %w: tensor<2x3xf16> {relax.name = "w"}, %v: tensor<2x3xf32> {relax.name = "v"})
    -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf16>) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.astype"(%x) {dtype = f32} : (tensor<2x3xf16>) -> tensor<2x3xf32>
  %1 = "relax.permute_dims"(%0) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = "relax.stop_lift_params"(%w) : (tensor<2x3xf16>) -> tensor<2x3xf16>
  %3 = "relax.astype"(%2) {dtype = f32} : (tensor<2x3xf16>) -> tensor<2x3xf32>
  %4 = "relax.permute_dims"(%3) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %5 = "relax.permute_dims"(%v) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %6 = "relax.astype"(%v) {dtype = f16} : (tensor<2x3xf32>) -> tensor<2x3xf16>
  %7 = "relax.permute_dims"(%6) : (tensor<2x3xf16>) -> tensor<3x2xf16>
  return %1, %4, %5, %7 : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf16>
}

// CHECK-LABEL: @no_weights
// CHECK:         "relax.permute_dims"({{.*}}) : (tensor<2x3xf32>)
func.func @no_weights(%x: tensor<2x3xf16>) -> tensor<3x2xf32> {
  %0 = "relax.astype"(%x) {dtype = f32} : (tensor<2x3xf16>) -> tensor<2x3xf32>
  %1 = "relax.permute_dims"(%0) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// -----

// A look-up in a loop casts the rows that it finds; what is moved there as a whole has grown once, before.
// CHECK-LABEL: @loops
// CHECK:         "relax.astype"(%arg2)
// CHECK:         scf.for
// CHECK:           "relax.take"(%arg2, %arg1) {{.*}} -> tensor<2x4xf16>
// CHECK-NEXT:      "relax.astype"({{.*}}) {dtype = f32} : (tensor<2x4xf16>)
// CHECK:           "relax.permute_dims"({{.*}}) : (tensor<4x4xf32>)
func.func @loops(%x: tensor<2x4xf32>, %ids: tensor<2xi64>, %w: tensor<4x4xf16> {relax.name = "w"}) -> tensor<2x4xf32>
    attributes {relax.num_input = 2 : i64} {
  %w0 = "relax.astype"(%w) {dtype = f32} : (tensor<4x4xf16>) -> tensor<4x4xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> (tensor<2x4xf32>) {
    %0 = "relax.take"(%w0, %ids) : (tensor<4x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
    %1 = "relax.permute_dims"(%w0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = "relax.matmul"(%a, %1) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %3 = "relax.add"(%2, %0) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    scf.yield %3 : tensor<2x4xf32>
  }
  return %r : tensor<2x4xf32>
}
