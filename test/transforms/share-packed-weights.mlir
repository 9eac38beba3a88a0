// RUN: relax-opt %s --relax-share-packed-weights | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-share-packed-weights{always=true})' \
// RUN:   | filecheck %s --check-prefix=ALWAYS
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-pack-weights{tile=4},relax-sink-growth,\
// RUN:relax-share-packed-weights,relax-lift-transform-params{growth-slack=0})' | filecheck %s --check-prefix=LIFTED

// The look-up comes first, so that packing moves before it. Neither the matrix nor its transposition is read any more.
// CHECK-LABEL: @tied
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg1)
// CHECK-NEXT:    %1 = "relax.pack_weight"(%0) {layout = "tile 4"}
// CHECK-NEXT:    %2 = "relax.packed_take"(%1, %arg0) {layout = "tile 4", n = 18 : i64}
// CHECK-SAME:    : (tensor<5x8x4xf32>, tensor<?xi64, {sym = ["n"]}>) -> tensor<?x8xf32, {sym = ["n"]}>
// CHECK-NEXT:    %3 = "relax.packed_matmul"(%2, %1) {layout = "tile 4", n = 18 : i64}
// CHECK-NEXT:    return %3
// LIFTED-LABEL: @tied(%arg0: tensor<?xi64, {sym = ["n"]}> {relax.name = "ids"}, %arg1: tensor<5x8x4xf32>
// LIFTED-SAME: {relax.name = "wte.permute_dims.pack_weight"})
func.func @tied(%ids: tensor<?xi64, {sym = ["n"]}> {relax.name = "ids"}, %w: tensor<18x8xf32> {relax.name = "wte"})
    -> tensor<?x18xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %h = "relax.take"(%w, %ids) : (tensor<18x8xf32>, tensor<?xi64, {sym = ["n"]}>) -> tensor<?x8xf32, {sym = ["n"]}>
  %t = "relax.permute_dims"(%w) : (tensor<18x8xf32>) -> tensor<8x18xf32>
  %p = "relax.pack_weight"(%t) {layout = "tile 4"} : (tensor<8x18xf32>) -> tensor<5x8x4xf32>
  %y = "relax.packed_matmul"(%h, %p) {layout = "tile 4", n = 18 : i64}
      : (tensor<?x8xf32, {sym = ["n"]}>, tensor<5x8x4xf32>) -> tensor<?x18xf32, {sym = ["n"]}>
  return %y : tensor<?x18xf32, {sym = ["n"]}>
}

// What indices are refused stays so.
// CHECK-LABEL: @from_the_start
// CHECK:         "relax.packed_take"(%1, %arg0) {layout = "tile 4", n = 18 : i64, wrap_negative_indices = false}
func.func @from_the_start(%ids: tensor<?xi64, {sym = ["n"]}> {relax.name = "ids"},
    %w: tensor<18x8xf32> {relax.name = "wte"})
    -> tensor<?x18xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %h = "relax.take"(%w, %ids) {wrap_negative_indices = false}
      : (tensor<18x8xf32>, tensor<?xi64, {sym = ["n"]}>) -> tensor<?x8xf32, {sym = ["n"]}>
  %t = "relax.permute_dims"(%w) : (tensor<18x8xf32>) -> tensor<8x18xf32>
  %p = "relax.pack_weight"(%t) {layout = "tile 4"} : (tensor<8x18xf32>) -> tensor<5x8x4xf32>
  %y = "relax.packed_matmul"(%h, %p) {layout = "tile 4", n = 18 : i64}
      : (tensor<?x8xf32, {sym = ["n"]}>, tensor<5x8x4xf32>) -> tensor<?x18xf32, {sym = ["n"]}>
  return %y : tensor<?x18xf32, {sym = ["n"]}>
}

// Packing that comes first stays where it is; a written result type stays, too.
// CHECK-LABEL: @packed_first
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg2)
// CHECK-NEXT:    %1 = "relax.pack_weight"(%0)
// CHECK-NEXT:    %2 = "relax.packed_matmul"(%arg1, %1)
// CHECK-NEXT:    %3 = "relax.packed_take"(%1, %arg0) {layout = "tile 4", n = 64 : i64}
// CHECK-SAME:    : (tensor<16x8x4xf32>, tensor<2xi64>) -> tensor<?x8xf32>
// CHECK-NEXT:    %4 = "relax.packed_take"(%1, %arg0) {layout = "tile 4", n = 64 : i64}
// CHECK-SAME:    : (tensor<16x8x4xf32>, tensor<2xi64>) -> tensor<2x8xf32>
func.func @packed_first(%ids: tensor<2xi64>, %x: tensor<1x8xf32>, %w: tensor<64x8xf32> {relax.name = "v"})
    -> (tensor<1x64xf32>, tensor<?x8xf32>, tensor<2x8xf32>) attributes {relax.num_input = 2 : i64} {
  %t = "relax.permute_dims"(%w) {axes = array<i64: -1, 0>} : (tensor<64x8xf32>) -> tensor<8x64xf32>
  %p = "relax.pack_weight"(%t) {layout = "tile 4"} : (tensor<8x64xf32>) -> tensor<16x8x4xf32>
  %y = "relax.packed_matmul"(%x, %p) {layout = "tile 4", n = 64 : i64} : (tensor<1x8xf32>, tensor<16x8x4xf32>)
      -> tensor<1x64xf32>
  %h = "relax.take"(%w, %ids) : (tensor<64x8xf32>, tensor<2xi64>) -> tensor<?x8xf32>
  %g = "relax.take"(%w, %ids) {axis = -2 : i64} : (tensor<64x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
  return %y, %h, %g : tensor<1x64xf32>, tensor<?x8xf32>, tensor<2x8xf32>
}

// In a loop, what is looked up is packed before the loop.
// CHECK-LABEL: @loops
// CHECK:         %[[P:.*]] = "relax.pack_weight"
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      "relax.packed_take"(%[[P]], %arg0)
// CHECK:         "relax.packed_matmul"(%{{.*}}, %[[P]])
func.func @loops(%ids: tensor<?xi64, {sym = ["n"]}>, %x: tensor<?x8xf32, {sym = ["n"]}>, %w: tensor<18x8xf32>
    {relax.name = "lw"}) -> tensor<?x18xf32, {sym = ["n"]}> attributes {relax.num_input = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> (tensor<?x8xf32, {sym = ["n"]}>) {
    %h = "relax.take"(%w, %ids) : (tensor<18x8xf32>, tensor<?xi64, {sym = ["n"]}>) -> tensor<?x8xf32, {sym = ["n"]}>
    %s = "relax.add"(%a, %h) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<?x8xf32, {sym = ["n"]}>)
        -> tensor<?x8xf32, {sym = ["n"]}>
    scf.yield %s : tensor<?x8xf32, {sym = ["n"]}>
  }
  %t = "relax.permute_dims"(%w) : (tensor<18x8xf32>) -> tensor<8x18xf32>
  %p = "relax.pack_weight"(%t) {layout = "tile 4"} : (tensor<8x18xf32>) -> tensor<5x8x4xf32>
  %y = "relax.packed_matmul"(%r, %p) {layout = "tile 4", n = 18 : i64}
      : (tensor<?x8xf32, {sym = ["n"]}>, tensor<5x8x4xf32>) -> tensor<?x18xf32, {sym = ["n"]}>
  return %y : tensor<?x18xf32, {sym = ["n"]}>
}

// Of 64 rows in 32 cache lines, 4 rows of 8 elements take as many as there are, 5 more.
// CHECK-LABEL: @few
// CHECK:         "relax.packed_take"
// CHECK-LABEL: @many
// CHECK-NEXT:    "relax.take"
// ALWAYS-LABEL: @many
// ALWAYS-NEXT:   "relax.permute_dims"
// ALWAYS-NEXT:   "relax.pack_weight"
// ALWAYS-NEXT:   "relax.packed_take"
func.func @few(%ids: tensor<2x2xi64>, %w: tensor<64x8xf32> {relax.name = "fw"}) -> tensor<2x2x64xf32>
    attributes {relax.num_input = 1 : i64} {
  %h = "relax.take"(%w, %ids) : (tensor<64x8xf32>, tensor<2x2xi64>) -> tensor<2x2x8xf32>
  %t = "relax.permute_dims"(%w) : (tensor<64x8xf32>) -> tensor<8x64xf32>
  %p = "relax.pack_weight"(%t) {layout = "tile 4"} : (tensor<8x64xf32>) -> tensor<16x8x4xf32>
  %y = "relax.packed_matmul"(%h, %p) {layout = "tile 4", n = 64 : i64} : (tensor<2x2x8xf32>, tensor<16x8x4xf32>)
      -> tensor<2x2x64xf32>
  return %y : tensor<2x2x64xf32>
}
func.func @many(%ids: tensor<5xi64>, %w: tensor<64x8xf32> {relax.name = "mw"}) -> tensor<5x64xf32>
    attributes {relax.num_input = 1 : i64} {
  %h = "relax.take"(%w, %ids) : (tensor<64x8xf32>, tensor<5xi64>) -> tensor<5x8xf32>
  %t = "relax.permute_dims"(%w) : (tensor<64x8xf32>) -> tensor<8x64xf32>
  %p = "relax.pack_weight"(%t) {layout = "tile 4"} : (tensor<8x64xf32>) -> tensor<16x8x4xf32>
  %y = "relax.packed_matmul"(%h, %p) {layout = "tile 4", n = 64 : i64} : (tensor<5x8xf32>, tensor<16x8x4xf32>)
      -> tensor<5x64xf32>
  return %y : tensor<5x64xf32>
}

// A quantized embedding: integers and scales are each there once.
// LIFTED-LABEL: @quantized(
// LIFTED-SAME:   %arg1: tensor<17x2x4xf32> {relax.name = "s.permute_dims.pack_weight"}, %arg2: tensor<17x8x4xi8>
// LIFTED-SAME:   {relax.name = "q.permute_dims.pack_weight"}) -> tensor<?x66xf32
// LIFTED-DAG:    "relax.packed_take"(%arg1, %arg0)
// LIFTED-DAG:    "relax.packed_take"(%arg2, %arg0)
func.func @quantized(%ids: tensor<?xi64, {sym = ["n"]}>, %q: tensor<66x8xi8> {relax.name = "q"}, %s: tensor<66x2xf32>
    {relax.name = "s"}) -> tensor<?x66xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
  %w = "relax.dequantize"(%q, %s, %z) : (tensor<66x8xi8>, tensor<66x2xf32>, tensor<i8>) -> tensor<66x8xf32>
  %h = "relax.take"(%w, %ids) : (tensor<66x8xf32>, tensor<?xi64, {sym = ["n"]}>) -> tensor<?x8xf32, {sym = ["n"]}>
  %t = "relax.permute_dims"(%w) : (tensor<66x8xf32>) -> tensor<8x66xf32>
  %y = "relax.matmul"(%h, %t) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<8x66xf32>) -> tensor<?x66xf32, {sym = ["n"]}>
  return %y : tensor<?x66xf32, {sym = ["n"]}>
}

// An embedding that is widened at its uses.
// LIFTED-LABEL: @narrow(
// LIFTED-SAME:   %arg1: tensor<9x8x4xbf16> {relax.name = "b.permute_dims.pack_weight"}) -> tensor<?x34xf32
func.func @narrow(%ids: tensor<?xi64, {sym = ["n"]}>, %b: tensor<34x8xbf16> {relax.name = "b"})
    -> tensor<?x34xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %w = "relax.astype"(%b) {dtype = f32} : (tensor<34x8xbf16>) -> tensor<34x8xf32>
  %h = "relax.take"(%w, %ids) : (tensor<34x8xf32>, tensor<?xi64, {sym = ["n"]}>) -> tensor<?x8xf32, {sym = ["n"]}>
  %t = "relax.permute_dims"(%w) : (tensor<34x8xf32>) -> tensor<8x34xf32>
  %y = "relax.matmul"(%h, %t) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<8x34xf32>) -> tensor<?x34xf32, {sym = ["n"]}>
  return %y : tensor<?x34xf32, {sym = ["n"]}>
}

// Halves of bytes: products read them two by two, and look-ups byte by byte.
// CHECK-LABEL: @four_bits
// CHECK-NOT:     packed_take
func.func @four_bits(%ids: tensor<?xi64, {sym = ["n"]}>, %w: tensor<256x8xi4> {relax.name = "i"})
    -> (tensor<?x8xi4, {sym = ["n"]}>, tensor<64x8x4xi4>) attributes {relax.num_input = 1 : i64} {
  %h = "relax.take"(%w, %ids) : (tensor<256x8xi4>, tensor<?xi64, {sym = ["n"]}>) -> tensor<?x8xi4, {sym = ["n"]}>
  %t = "relax.permute_dims"(%w) : (tensor<256x8xi4>) -> tensor<8x256xi4>
  %p = "relax.pack_weight"(%t) {layout = "tile 4"} : (tensor<8x256xi4>) -> tensor<64x8x4xi4>
  return %h, %p : tensor<?x8xi4, {sym = ["n"]}>, tensor<64x8x4xi4>
}

// Left alone: a matrix that is returned, or read by another op; look-ups of columns, of ids known ahead, of what is not
// packed or packed as it is; a run-time matrix; a function that does not say what its weights are.
// CHECK-LABEL: @leaves
// CHECK-NOT:     packed_take
// CHECK:         return
// CHECK-LABEL: @no_weights
// CHECK-NOT:     packed_take
func.func @leaves(%ids: tensor<2xi64>, %x: tensor<9x9xf32>, %a: tensor<9x9xf32> {relax.name = "a"}, %b: tensor<9x9xf32>
    {relax.name = "bb"}, %c: tensor<9x9xf32> {relax.name = "c"}, %d: tensor<2xi64> {relax.name = "d"},
    %e: tensor<9x9xf32> {relax.name = "e"}, %f: tensor<9x9xf32> {relax.name = "f"})
    -> (tensor<9x9xf32>, tensor<9x9xf32>, tensor<2x9xf32>, tensor<2x9xf32>, tensor<9x2xf32>, tensor<2x9xf32>,
        tensor<2x9xf32>, tensor<2x9xf32>, tensor<2x9xf32>, tensor<3x9x4xf32>, tensor<3x9x4xf32>, tensor<3x9x4xf32>,
        tensor<3x9x4xf32>, tensor<3x9x4xf32>) attributes {relax.num_input = 2 : i64} {
  %0 = "relax.take"(%a, %ids) : (tensor<9x9xf32>, tensor<2xi64>) -> tensor<2x9xf32>
  %1 = "relax.take"(%b, %ids) : (tensor<9x9xf32>, tensor<2xi64>) -> tensor<2x9xf32>
  %2 = "relax.add"(%x, %b) : (tensor<9x9xf32>, tensor<9x9xf32>) -> tensor<9x9xf32>
  %3 = "relax.take"(%c, %ids) {axis = 1 : i64} : (tensor<9x9xf32>, tensor<2xi64>) -> tensor<9x2xf32>
  %4 = "relax.take"(%c, %d) : (tensor<9x9xf32>, tensor<2xi64>) -> tensor<2x9xf32>
  %5 = "relax.take"(%e, %ids) : (tensor<9x9xf32>, tensor<2xi64>) -> tensor<2x9xf32>
  %6 = "relax.take"(%f, %ids) : (tensor<9x9xf32>, tensor<2xi64>) -> tensor<2x9xf32>
  %7 = "relax.take"(%x, %ids) : (tensor<9x9xf32>, tensor<2xi64>) -> tensor<2x9xf32>
  %t0 = "relax.permute_dims"(%a) : (tensor<9x9xf32>) -> tensor<9x9xf32>
  %t1 = "relax.permute_dims"(%b) : (tensor<9x9xf32>) -> tensor<9x9xf32>
  %t2 = "relax.permute_dims"(%c) : (tensor<9x9xf32>) -> tensor<9x9xf32>
  %t3 = "relax.permute_dims"(%f) {axes = array<i64: 0, 1>} : (tensor<9x9xf32>) -> tensor<9x9xf32>
  %t4 = "relax.permute_dims"(%x) : (tensor<9x9xf32>) -> tensor<9x9xf32>
  %p0 = "relax.pack_weight"(%t0) {layout = "tile 4"} : (tensor<9x9xf32>) -> tensor<3x9x4xf32>
  %p1 = "relax.pack_weight"(%t1) {layout = "tile 4"} : (tensor<9x9xf32>) -> tensor<3x9x4xf32>
  %p2 = "relax.pack_weight"(%t2) {layout = "tile 4"} : (tensor<9x9xf32>) -> tensor<3x9x4xf32>
  %p3 = "relax.pack_weight"(%t3) {layout = "tile 4"} : (tensor<9x9xf32>) -> tensor<3x9x4xf32>
  %p4 = "relax.pack_weight"(%t4) {layout = "tile 4"} : (tensor<9x9xf32>) -> tensor<3x9x4xf32>
  return %a, %2, %0, %1, %3, %4, %5, %6, %7, %p0, %p1, %p2, %p3, %p4
      : tensor<9x9xf32>, tensor<9x9xf32>, tensor<2x9xf32>, tensor<2x9xf32>, tensor<9x2xf32>, tensor<2x9xf32>,
      tensor<2x9xf32>, tensor<2x9xf32>, tensor<2x9xf32>, tensor<3x9x4xf32>, tensor<3x9x4xf32>, tensor<3x9x4xf32>,
      tensor<3x9x4xf32>, tensor<3x9x4xf32>
}
func.func @no_weights(%ids: tensor<?xi64, {sym = ["n"]}>, %w: tensor<9x8xf32>)
    -> (tensor<?x8xf32, {sym = ["n"]}>, tensor<3x8x4xf32>) {
  %h = "relax.take"(%w, %ids) : (tensor<9x8xf32>, tensor<?xi64, {sym = ["n"]}>) -> tensor<?x8xf32, {sym = ["n"]}>
  %t = "relax.permute_dims"(%w) : (tensor<9x8xf32>) -> tensor<8x9xf32>
  %p = "relax.pack_weight"(%t) {layout = "tile 4"} : (tensor<8x9xf32>) -> tensor<3x8x4xf32>
  return %h, %p : tensor<?x8xf32, {sym = ["n"]}>, tensor<3x8x4xf32>
}
