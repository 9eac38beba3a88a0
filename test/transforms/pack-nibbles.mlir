// RUN: relax-opt %s --relax-pack-nibbles | filecheck %s
// RUN: relax-opt %s --relax-pack-nibbles --relax-lift-transform-params | filecheck %s --check-prefix=LIFTED

// Unsigned integers are packed as they are, once for all that widen them. Zero points of half a byte become bytes.
// CHECK-LABEL: @unsigned
// CHECK-NEXT:    %0 = "relax.pack_nibbles"(%arg1) {axis = 1 : i64, dtype = ui32, layout = "tile 8, rows 4, u4x8"}
// CHECK-SAME:      (tensor<2x5x8xui4>) -> tensor<2x1x8xui32>
// CHECK-NEXT:    %1 = "relax.unpack_nibbles"(%0)
// CHECK-SAME:      {axis = 1 : i64, dtype = ui4, layout = "tile 8, rows 4, u4x8", relax.lift = "never", size = 5 : i64}
// CHECK-SAME:      (tensor<2x1x8xui32>) -> tensor<2x5x8xui4>
// CHECK-NEXT:    %2 = "relax.astype"(%arg3) {dtype = i8} : (tensor<ui4>) -> tensor<i8>
// CHECK-NEXT:    %3 = "relax.dequantize"(%1, %arg2, %2)
// CHECK-NEXT:    %4 = "relax.astype"(%1)
// CHECK-NEXT:    "relax.packed_matmul"(%arg0, %3)
// CHECK-NEXT:    "relax.packed_matmul"(%arg0, %4)
// LIFTED-LABEL: @unsigned_transform_params
// LIFTED-SAME:    tensor<2x1x8xui32> {relax.name = "q.pack_nibbles"}
// LIFTED-LABEL: @unsigned
// LIFTED:         "relax.unpack_nibbles"
func.func @unsigned(%x: tensor<3x5xf32>, %q: tensor<2x5x8xui4> {relax.name = "q"}, %s: tensor<2x1x8xf32>
    {relax.name = "s"}, %z: tensor<ui4> {relax.name = "z"}) -> (tensor<3x12xf32>, tensor<3x12xf32>)
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<2x5x8xui4>, tensor<2x1x8xf32>, tensor<ui4>) -> tensor<2x5x8xf32>
  %1 = "relax.astype"(%q) {dtype = f32} : (tensor<2x5x8xui4>) -> tensor<2x5x8xf32>
  %2 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 12 : i64} : (tensor<3x5xf32>, tensor<2x5x8xf32>)
      -> tensor<3x12xf32>
  %3 = "relax.packed_matmul"(%x, %1) {layout = "tile 8", n = 12 : i64} : (tensor<3x5xf32>, tensor<2x5x8xf32>)
      -> tensor<3x12xf32>
  return %2, %3 : tensor<3x12xf32>, tensor<3x12xf32>
}

// Signed ones become 8 more, and so does the zero point: one that is known stays known.
// CHECK-LABEL: @signed
// CHECK:         %[[RAISED:.*]] = "relax.full"() {value = 9 : i64} : () -> tensor<i8>
// CHECK:         %[[BITS:.*]] = "relax.astype"(%arg1) {dtype = ui4}
// CHECK:         %[[EIGHT:.*]] = "relax.full"() {value = 8 : i64} : () -> tensor<ui4>
// CHECK:         %[[Q:.*]] = "relax.bitwise_xor"(%[[BITS]], %[[EIGHT]])
// CHECK:         %[[PACKED:.*]] = "relax.pack_nibbles"(%[[Q]])
// CHECK-SAME:      {axis = 1 : i64, dtype = ui32, layout = "tile 8, rows 4, u4x8, offset 8"}
// CHECK:         %[[BACK:.*]] = "relax.unpack_nibbles"(%[[PACKED]])
// CHECK-SAME:      {axis = 1 : i64, dtype = ui4, layout = "tile 8, rows 4, u4x8, offset 8", relax.lift = "never",
// CHECK-SAME:      size = 4 : i64}
// CHECK:         "relax.dequantize"(%[[BACK]], %arg2, %[[RAISED]])
// CHECK:         %[[WIDE:.*]] = "relax.astype"(%arg3) {dtype = i8} : (tensor<2x1x8xi4>) -> tensor<2x1x8xi8>
// CHECK:         %[[MORE:.*]] = "relax.full"() {value = 8 : i64} : () -> tensor<i8>
// CHECK:         %[[ZERO:.*]] = "relax.add"(%[[WIDE]], %[[MORE]])
// CHECK:         "relax.dequantize"(%[[BACK]], %arg2, %[[ZERO]])
func.func @signed(%x: tensor<3x4xf32>, %q: tensor<2x4x8xi4> {relax.name = "q"}, %s: tensor<2x1x8xf32>
    {relax.name = "s"}, %z: tensor<2x1x8xi4> {relax.name = "z"}) -> (tensor<3x12xf32>, tensor<3x12xf32>)
    attributes {relax.num_input = 1 : i64} {
  %one = "relax.full"() {value = 1 : i64} : () -> tensor<i4>
  %0 = "relax.dequantize"(%q, %s, %one) : (tensor<2x4x8xi4>, tensor<2x1x8xf32>, tensor<i4>) -> tensor<2x4x8xf32>
  %1 = "relax.dequantize"(%q, %s, %z) : (tensor<2x4x8xi4>, tensor<2x1x8xf32>, tensor<2x1x8xi4>) -> tensor<2x4x8xf32>
  %2 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 12 : i64} : (tensor<3x4xf32>, tensor<2x4x8xf32>)
      -> tensor<3x12xf32>
  %3 = "relax.packed_matmul"(%x, %1) {layout = "tile 8", n = 12 : i64} : (tensor<3x4xf32>, tensor<2x4x8xf32>)
      -> tensor<3x12xf32>
  return %2, %3 : tensor<3x12xf32>, tensor<3x12xf32>
}

// Bytes of six bits, by the ops that make them, are in words of four bits and of two.
// CHECK-LABEL: @six_bits
// CHECK:         %[[Q:.*]] = "relax.bitwise_and"(%arg1
// CHECK:         %[[LOW:.*]] = "relax.pack_nibbles"({{.*}}) {axis = 1 : i64, dtype = ui32, layout = "tile 8, u4x8"}
// CHECK-SAME:      (tensor<2x20x8xui4>) -> tensor<2x3x8xui32>
// CHECK:         %[[HIGH:.*]] = "relax.pack_nibbles"({{.*}}) {axis = 1 : i64, dtype = ui32
// CHECK-SAME:      layout = "tile 8, rows 8, u2x16"} : (tensor<2x20x8xui4>) -> tensor<2x2x8xui32>
// CHECK:         %[[BACK:.*]] = "relax.unpack_planes"(%[[LOW]], %[[HIGH]])
// CHECK-SAME:      {layout = "tile 8, rows 8, u2x16", relax.lift = "never", size = 20 : i64}
// CHECK:         "relax.dequantize"(%[[BACK]], %arg2, %arg3)
// LIFTED-LABEL: @six_bits(
// LIFTED-NOT:    "relax.pack_nibbles"
// LIFTED:        "relax.unpack_planes"
func.func @six_bits(%x: tensor<3x20xf32>, %q: tensor<2x20x8xui8> {relax.name = "q"}, %s: tensor<2x1x8xf32>
    {relax.name = "s"}, %z: tensor<ui8> {relax.name = "z"}) -> tensor<3x12xf32> attributes {relax.num_input = 1 : i64} {
  %most = "relax.full"() {value = 63 : i64} : () -> tensor<ui8>
  %0 = "relax.bitwise_and"(%q, %most) : (tensor<2x20x8xui8>, tensor<ui8>) -> tensor<2x20x8xui8>
  %1 = "relax.dequantize"(%0, %s, %z) : (tensor<2x20x8xui8>, tensor<2x1x8xf32>, tensor<ui8>) -> tensor<2x20x8xf32>
  %2 = "relax.packed_matmul"(%x, %1) {layout = "tile 8", n = 12 : i64} : (tensor<3x20xf32>, tensor<2x20x8xf32>)
      -> tensor<3x12xf32>
  return %2 : tensor<3x12xf32>
}

// What inference takes part in is no weight, and would be a pass over memory.
// CHECK-LABEL: @computed_zero_point
// CHECK-NOT:     relax.pack_nibbles
func.func @computed_zero_point(%x: tensor<3x4xf32>, %z: tensor<i4>, %q: tensor<1x4x8xi4> {relax.name = "q"},
    %s: tensor<f32> {relax.name = "s"}) -> tensor<3x8xf32> attributes {relax.num_input = 2 : i64} {
  %0 = "relax.dequantize"(%q, %s, %z) : (tensor<1x4x8xi4>, tensor<f32>, tensor<i4>) -> tensor<1x4x8xf32>
  %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 8 : i64} : (tensor<3x4xf32>, tensor<1x4x8xf32>)
      -> tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}

// Left alone: bytes, what is no panel, what something else reads, what was in bytes before, what is no weight.
// CHECK-LABEL: @leaves
// CHECK-NOT:     relax.pack_nibbles
// CHECK:         unpack_nibbles
// CHECK-NOT:     relax.pack_nibbles
func.func @leaves(%x: tensor<3x4xf32>, %r: tensor<1x4x8xi4>, %b: tensor<1x4x8xi8> {relax.name = "b"}, %m: tensor<4x8xi4>
    {relax.name = "m"}, %q: tensor<1x4x8xi4> {relax.name = "q"}, %p: tensor<1x2x8xui8> {relax.name = "p"})
    -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<1x4x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>)
        attributes {relax.num_input = 2 : i64} {
  %0 = "relax.astype"(%b) {dtype = f32} : (tensor<1x4x8xi8>) -> tensor<1x4x8xf32>
  %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 8 : i64} : (tensor<3x4xf32>, tensor<1x4x8xf32>)
      -> tensor<3x8xf32>
  %2 = "relax.astype"(%m) {dtype = f32} : (tensor<4x8xi4>) -> tensor<4x8xf32>
  %3 = "relax.matmul"(%x, %2) : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  %4 = "relax.astype"(%q) {dtype = f32} : (tensor<1x4x8xi4>) -> tensor<1x4x8xf32>
  %5 = "relax.packed_matmul"(%x, %4) {layout = "tile 8", n = 8 : i64} : (tensor<3x4xf32>, tensor<1x4x8xf32>)
      -> tensor<3x8xf32>
  %6 = "relax.unpack_nibbles"(%p) {axis = 1 : i64, dtype = i4, size = 4 : i64} : (tensor<1x2x8xui8>) -> tensor<1x4x8xi4>
  %7 = "relax.astype"(%6) {dtype = f32} : (tensor<1x4x8xi4>) -> tensor<1x4x8xf32>
  %8 = "relax.packed_matmul"(%x, %7) {layout = "tile 8", n = 8 : i64} : (tensor<3x4xf32>, tensor<1x4x8xf32>)
      -> tensor<3x8xf32>
  %9 = "relax.astype"(%r) {dtype = f32} : (tensor<1x4x8xi4>) -> tensor<1x4x8xf32>
  %10 = "relax.packed_matmul"(%x, %9) {layout = "tile 8", n = 8 : i64} : (tensor<3x4xf32>, tensor<1x4x8xf32>)
      -> tensor<3x8xf32>
  return %1, %3, %5, %4, %8, %10 : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<1x4x8xf32>,
      tensor<3x8xf32>, tensor<3x8xf32>
}

// Without relax.num_input nothing is known to be a weight.
// CHECK-LABEL: @no_weights
// CHECK-NOT:     relax.pack_nibbles
func.func @no_weights(%x: tensor<3x4xf32>, %q: tensor<1x4x8xui4>) -> tensor<3x8xf32> {
  %0 = "relax.astype"(%q) {dtype = f32} : (tensor<1x4x8xui4>) -> tensor<1x4x8xf32>
  %1 = "relax.packed_matmul"(%x, %0) {layout = "tile 8", n = 8 : i64} : (tensor<3x4xf32>, tensor<1x4x8xf32>)
      -> tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}
