// RUN: relax-opt %s --relax-combine-parallel-matmul | filecheck %s

// Two products of one value are one with the weights side by side.
// CHECK-LABEL: @two(
// CHECK-NEXT:    %0 = "relax.concat"(%arg1, %arg2) {axis = 1 : i64} : ({{.*}}) -> tensor<4x8xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %0) : ({{.*}}) -> tensor<?x8xf32
// CHECK-NEXT:    %2 = "relax.strided_slice"(%1) {axes = array<i64: 1>, begin = [0], end = [6]} : ({{.*}})
// CHECK-SAME:    -> tensor<?x6xf32
// CHECK-NEXT:    %3 = "relax.strided_slice"(%1) {axes = array<i64: 1>, begin = [6], end = [8]} : ({{.*}})
// CHECK-SAME:    -> tensor<?x2xf32
// CHECK-NEXT:    return %2, %3
func.func @two(%x: tensor<?x4xf32, {sym = ["n"]}> {relax.name = "x"}, %a: tensor<4x6xf32> {relax.name = "a"},
    %b: tensor<4x2xf32> {relax.name = "b"}) -> (tensor<?x6xf32, {sym = ["n"]}>, tensor<?x2xf32, {sym = ["n"]}>)
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %a) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x6xf32>) -> tensor<?x6xf32, {sym = ["n"]}>
  %1 = "relax.matmul"(%x, %b) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x2xf32>) -> tensor<?x2xf32, {sym = ["n"]}>
  return %0, %1 : tensor<?x6xf32, {sym = ["n"]}>, tensor<?x2xf32, {sym = ["n"]}>
}

// Three, transposed on the way: weight math moves up to where the first product is, values used in between see their
// slice.
// CHECK-LABEL: @three_transposed(
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg1)
// CHECK-NEXT:    %1 = "relax.permute_dims"(%arg2)
// CHECK-NEXT:    %2 = "relax.negative"(%arg3)
// CHECK-NEXT:    %3 = "relax.permute_dims"(%2)
// CHECK-NEXT:    %4 = "relax.concat"(%0, %1) {axis = 1 : i64} : ({{.*}}) -> tensor<4x8xf32
// CHECK-NEXT:    %5 = "relax.concat"(%4, %3) {axis = 1 : i64} : ({{.*}}) -> tensor<4x10xf32
// CHECK-NEXT:    %6 = "relax.matmul"(%arg0, %5) : ({{.*}}) -> tensor<2x10xf32
// CHECK-NEXT:    %7 = "relax.strided_slice"(%6) {axes = array<i64: 1>, begin = [0], end = [6]} : ({{.*}})
// CHECK-SAME:    -> tensor<2x6xf32
// CHECK-NEXT:    %8 = "relax.strided_slice"(%6) {axes = array<i64: 1>, begin = [6], end = [8]} : ({{.*}})
// CHECK-SAME:    -> tensor<2x2xf32
// CHECK-NEXT:    %9 = "relax.strided_slice"(%6) {axes = array<i64: 1>, begin = [8], end = [10]} : ({{.*}})
// CHECK-SAME:    -> tensor<2x2xf32
// CHECK-NEXT:    %10 = "relax.exp"(%7)
// CHECK-NEXT:    %11 = "relax.add"(%8, %9)
// CHECK-NEXT:    return %10, %11
func.func @three_transposed(%x: tensor<2x4xf32> {relax.name = "x"}, %a: tensor<6x4xf32> {relax.name = "a"},
    %b: tensor<2x4xf32> {relax.name = "b"}, %c: tensor<2x4xf32> {relax.name = "c"})
    -> (tensor<2x6xf32>, tensor<2x2xf32>) attributes {relax.num_input = 1 : i64} {
  %ta = "relax.permute_dims"(%a) : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %0 = "relax.matmul"(%x, %ta) : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
  %1 = "relax.exp"(%0) : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %tb = "relax.permute_dims"(%b) : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %2 = "relax.matmul"(%x, %tb) : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  %nc = "relax.negative"(%c) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %tc = "relax.permute_dims"(%nc) : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %3 = "relax.matmul"(%x, %tc) : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  %4 = "relax.add"(%2, %3) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1, %4 : tensor<2x6xf32>, tensor<2x2xf32>
}

// A bias each, and then the same function: done once.
// CHECK-LABEL: @bias_and_activation(
// CHECK-NEXT:    %0 = "relax.concat"(%arg1, %arg3) {axis = 1 : i64} : ({{.*}}) -> tensor<4x8xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %0) : ({{.*}}) -> tensor<2x8xf32
// CHECK-NEXT:    %2 = "relax.concat"(%arg2, %arg4) {axis = 0 : i64} : ({{.*}}) -> tensor<8xf32
// CHECK-NEXT:    %3 = "relax.add"(%1, %2)
// CHECK-NEXT:    %4 = "relax.gelu"(%3)
// CHECK-NEXT:    %5 = "relax.strided_slice"(%4) {axes = array<i64: 1>, begin = [0], end = [6]} : ({{.*}})
// CHECK-SAME:    -> tensor<2x6xf32
// CHECK-NEXT:    %6 = "relax.strided_slice"(%4) {axes = array<i64: 1>, begin = [6], end = [8]} : ({{.*}})
// CHECK-SAME:    -> tensor<2x2xf32
// CHECK-NEXT:    return %5, %6
func.func @bias_and_activation(%x: tensor<2x4xf32> {relax.name = "x"}, %a: tensor<4x6xf32> {relax.name = "a"},
    %p: tensor<6xf32> {relax.name = "p"}, %b: tensor<4x2xf32> {relax.name = "b"}, %q: tensor<2xf32> {relax.name = "q"})
    -> (tensor<2x6xf32>, tensor<2x2xf32>) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %a) : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
  %1 = "relax.matmul"(%x, %b) : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  %2 = "relax.add"(%0, %p) : (tensor<2x6xf32>, tensor<6xf32>) -> tensor<2x6xf32>
  %3 = "relax.add"(%1, %q) : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %4 = "relax.gelu"(%2) : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %5 = "relax.gelu"(%3) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %4, %5 : tensor<2x6xf32>, tensor<2x2xf32>
}

// A bias of one of them only, or another function: after the slices. The vector on the other side of a difference is
// another op.
// CHECK-LABEL: @only_some_have_a_bias(
// CHECK-NEXT:    %0 = "relax.concat"(%arg1, %arg2) {axis = 1 : i64} : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %0) : ({{.*}}) -> tensor<2x4xf32
// CHECK-NEXT:    %2 = "relax.strided_slice"(%1) {axes = array<i64: 1>, begin = [0], end = [2]} : ({{.*}})
// CHECK-SAME:    -> tensor<2x2xf32
// CHECK-NEXT:    %3 = "relax.strided_slice"(%1) {axes = array<i64: 1>, begin = [2], end = [4]} : ({{.*}})
// CHECK-SAME:    -> tensor<2x2xf32
// CHECK-NEXT:    %4 = "relax.subtract"(%2, %arg3)
// CHECK-NEXT:    %5 = "relax.subtract"(%arg3, %3)
// CHECK-NEXT:    return %4, %5
func.func @only_some_have_a_bias(%x: tensor<2x4xf32> {relax.name = "x"}, %a: tensor<4x2xf32> {relax.name = "a"},
    %b: tensor<4x2xf32> {relax.name = "b"}, %q: tensor<2xf32> {relax.name = "q"}) -> (tensor<2x2xf32>, tensor<2x2xf32>)
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %a) : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  %1 = "relax.matmul"(%x, %b) : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  %2 = "relax.subtract"(%0, %q) : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %3 = "relax.subtract"(%q, %1) : (tensor<2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %2, %3 : tensor<2x2xf32>, tensor<2x2xf32>
}

// Stacks of matrices with the same batch; a wider accumulator stays.
// CHECK-LABEL: @batched(
// CHECK-NEXT:    %0 = "relax.concat"(%arg1, %arg2) {axis = 2 : i64} : ({{.*}}) -> tensor<3x4x8xf16
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %0) {out_dtype = f32} : ({{.*}}) -> tensor<3x2x8xf32
// CHECK-NEXT:    %2 = "relax.strided_slice"(%1) {axes = array<i64: 2>, begin = [0], end = [6]} : ({{.*}})
// CHECK-SAME:    -> tensor<3x2x6xf32
// CHECK-NEXT:    %3 = "relax.strided_slice"(%1) {axes = array<i64: 2>, begin = [6], end = [8]} : ({{.*}})
// CHECK-SAME:    -> tensor<3x2x2xf32
// CHECK-NEXT:    return %2, %3
func.func @batched(%x: tensor<3x2x4xf16> {relax.name = "x"}, %a: tensor<3x4x6xf16> {relax.name = "a"},
    %b: tensor<3x4x2xf16> {relax.name = "b"}) -> (tensor<3x2x6xf32>, tensor<3x2x2xf32>)
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %a) {out_dtype = f32} : (tensor<3x2x4xf16>, tensor<3x4x6xf16>) -> tensor<3x2x6xf32>
  %1 = "relax.matmul"(%x, %b) {out_dtype = f32} : (tensor<3x2x4xf16>, tensor<3x4x2xf16>) -> tensor<3x2x2xf32>
  return %0, %1 : tensor<3x2x6xf32>, tensor<3x2x2xf32>
}

// Left alone: other batches, other out_dtype.
// CHECK-LABEL: @differ(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg0, %arg1) : ({{.*}}) -> tensor<3x2x6xf16
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %arg2) : ({{.*}}) -> tensor<3x2x2xf16
// CHECK-NEXT:    %2 = "relax.matmul"(%arg0, %arg3) {out_dtype = f32} : ({{.*}}) -> tensor<3x2x2xf32
// CHECK-NEXT:    return %0, %1, %2
func.func @differ(%x: tensor<3x2x4xf16> {relax.name = "x"}, %a: tensor<3x4x6xf16> {relax.name = "a"},
    %b: tensor<4x2xf16> {relax.name = "b"}, %c: tensor<4x2xf16> {relax.name = "c"})
    -> (tensor<3x2x6xf16>, tensor<3x2x2xf16>, tensor<3x2x2xf32>) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %a) : (tensor<3x2x4xf16>, tensor<3x4x6xf16>) -> tensor<3x2x6xf16>
  %1 = "relax.matmul"(%x, %b) : (tensor<3x2x4xf16>, tensor<4x2xf16>) -> tensor<3x2x2xf16>
  %2 = "relax.matmul"(%x, %c) {out_dtype = f32} : (tensor<3x2x4xf16>, tensor<4x2xf16>) -> tensor<3x2x2xf32>
  return %0, %1, %2 : tensor<3x2x6xf16>, tensor<3x2x2xf16>, tensor<3x2x2xf32>
}

// Left alone: right sides that are run-time values, also behind a barrier; weights on the left.
// CHECK-LABEL: @not_weights(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg0, %arg1) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %1 = "relax.stop_lift_params"(%arg2)
// CHECK-NEXT:    %2 = "relax.matmul"(%arg0, %1) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %3 = "relax.matmul"(%arg0, %arg3) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %4 = "relax.matmul"(%arg2, %arg0) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %5 = "relax.matmul"(%arg2, %arg1) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    return %0, %2, %3, %4, %5
func.func @not_weights(%x: tensor<4x4xf32> {relax.name = "x"}, %y: tensor<4x4xf32> {relax.name = "y"},
    %a: tensor<4x4xf32> {relax.name = "a"}, %b: tensor<4x4xf32> {relax.name = "b"})
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>)
    attributes {relax.num_input = 2 : i64} {
  %0 = "relax.matmul"(%x, %y) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = "relax.stop_lift_params"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relax.matmul"(%x, %s) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "relax.matmul"(%x, %b) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = "relax.matmul"(%a, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = "relax.matmul"(%a, %y) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %2, %3, %4 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// Left alone: a weight that something else reads would be stored twice; equal products are for cse.
// CHECK-LABEL: @read_elsewhere(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg0, %arg1) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %arg2) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %2 = "relax.matmul"(%arg0, %arg3) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %3 = "relax.matmul"(%arg0, %arg3) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    return %0, %arg2, %2, %3
func.func @read_elsewhere(%x: tensor<4x4xf32> {relax.name = "x"}, %a: tensor<4x4xf32> {relax.name = "a"},
    %b: tensor<4x4xf32> {relax.name = "b"}, %c: tensor<4x4xf32> {relax.name = "c"})
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %a) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relax.matmul"(%x, %b) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "relax.matmul"(%x, %c) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = "relax.matmul"(%x, %c) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %b, %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// Left alone: what lifting leaves to inference would be put together each time: for its growth, or because the user
// says so.
// CHECK-LABEL: @not_lifted(
// CHECK-NEXT:    %0 = "relax.astype"(%arg1) {dtype = f32}
// CHECK-NEXT:    %1 = "relax.astype"(%arg2) {dtype = f32}
// CHECK-NEXT:    %2 = "relax.negative"(%arg3)
// CHECK-NEXT:    %3 = "relax.negative"(%arg4)
// CHECK-NEXT:    %4 = "relax.matmul"(%arg0, %0) : ({{.*}}) -> tensor<1x512xf32
// CHECK-NEXT:    %5 = "relax.matmul"(%arg0, %1) : ({{.*}}) -> tensor<1x512xf32
// CHECK-NEXT:    %6 = "relax.matmul"(%arg0, %2) : ({{.*}}) -> tensor<1x2xf32
// CHECK-NEXT:    %7 = "relax.matmul"(%arg0, %3) : ({{.*}}) -> tensor<1x2xf32
// CHECK-NEXT:    return %4, %5, %6, %7
func.func @not_lifted(%x: tensor<1x1024xf32> {relax.name = "x"}, %a: tensor<1024x512xi8> {relax.name = "a"},
    %b: tensor<1024x512xi8> {relax.name = "b"}, %c: tensor<1024x2xf32> {relax.name = "c", relax.lift = "never"},
    %d: tensor<1024x2xf32> {relax.name = "d", relax.lift = "never"})
    -> (tensor<1x512xf32>, tensor<1x512xf32>, tensor<1x2xf32>, tensor<1x2xf32>) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.astype"(%a) {dtype = f32} : (tensor<1024x512xi8>) -> tensor<1024x512xf32>
  %1 = "relax.astype"(%b) {dtype = f32} : (tensor<1024x512xi8>) -> tensor<1024x512xf32>
  %2 = "relax.negative"(%c) : (tensor<1024x2xf32>) -> tensor<1024x2xf32>
  %3 = "relax.negative"(%d) : (tensor<1024x2xf32>) -> tensor<1024x2xf32>
  %4 = "relax.matmul"(%x, %0) : (tensor<1x1024xf32>, tensor<1024x512xf32>) -> tensor<1x512xf32>
  %5 = "relax.matmul"(%x, %1) : (tensor<1x1024xf32>, tensor<1024x512xf32>) -> tensor<1x512xf32>
  %6 = "relax.matmul"(%x, %2) : (tensor<1x1024xf32>, tensor<1024x2xf32>) -> tensor<1x2xf32>
  %7 = "relax.matmul"(%x, %3) : (tensor<1x1024xf32>, tensor<1024x2xf32>) -> tensor<1x2xf32>
  return %4, %5, %6, %7 : tensor<1x512xf32>, tensor<1x512xf32>, tensor<1x2xf32>, tensor<1x2xf32>
}

// Left alone: each weight may grow that little, both together may not.
// CHECK-LABEL: @grow_together(
// CHECK-NEXT:    %0 = "relax.astype"(%arg1) {dtype = f32}
// CHECK-NEXT:    %1 = "relax.astype"(%arg2) {dtype = f32}
// CHECK-NEXT:    %2 = "relax.matmul"(%arg0, %0) : ({{.*}}) -> tensor<1x512xf32
// CHECK-NEXT:    %3 = "relax.matmul"(%arg0, %1) : ({{.*}}) -> tensor<1x512xf32
// CHECK-NEXT:    return %2, %3
func.func @grow_together(%x: tensor<1x512xf32> {relax.name = "x"}, %a: tensor<512x512xi8> {relax.name = "a"},
    %b: tensor<512x512xi8> {relax.name = "b"}) -> (tensor<1x512xf32>, tensor<1x512xf32>)
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.astype"(%a) {dtype = f32} : (tensor<512x512xi8>) -> tensor<512x512xf32>
  %1 = "relax.astype"(%b) {dtype = f32} : (tensor<512x512xi8>) -> tensor<512x512xf32>
  %2 = "relax.matmul"(%x, %0) : (tensor<1x512xf32>, tensor<512x512xf32>) -> tensor<1x512xf32>
  %3 = "relax.matmul"(%x, %1) : (tensor<1x512xf32>, tensor<512x512xf32>) -> tensor<1x512xf32>
  return %2, %3 : tensor<1x512xf32>, tensor<1x512xf32>
}

// Groups that follow each other: the slice of one is the left side of the next.
// CHECK-LABEL: @one_after_the_other(
// CHECK-NEXT:    %0 = "relax.concat"(%arg1, %arg2) {axis = 1 : i64} : ({{.*}}) -> tensor<4x8xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %0) : ({{.*}}) -> tensor<2x8xf32
// CHECK-NEXT:    %2 = "relax.strided_slice"(%1) {axes = array<i64: 1>, begin = [0], end = [4]} : ({{.*}})
// CHECK-SAME:    -> tensor<2x4xf32
// CHECK-NEXT:    %3 = "relax.strided_slice"(%1) {axes = array<i64: 1>, begin = [4], end = [8]} : ({{.*}})
// CHECK-SAME:    -> tensor<2x4xf32
// CHECK-NEXT:    %4 = "relax.concat"(%arg3, %arg4) {axis = 1 : i64} : ({{.*}}) -> tensor<4x8xf32
// CHECK-NEXT:    %5 = "relax.matmul"(%2, %4) : ({{.*}}) -> tensor<2x8xf32
// CHECK-NEXT:    %6 = "relax.strided_slice"(%5) {axes = array<i64: 1>, begin = [0], end = [4]} : ({{.*}})
// CHECK-SAME:    -> tensor<2x4xf32
// CHECK-NEXT:    %7 = "relax.strided_slice"(%5) {axes = array<i64: 1>, begin = [4], end = [8]} : ({{.*}})
// CHECK-SAME:    -> tensor<2x4xf32
// CHECK-NEXT:    %8 = "relax.add"(%3, %7)
// CHECK-NEXT:    return %6, %8
func.func @one_after_the_other(%x: tensor<2x4xf32> {relax.name = "x"}, %a: tensor<4x4xf32> {relax.name = "a"},
    %b: tensor<4x4xf32> {relax.name = "b"}, %c: tensor<4x4xf32> {relax.name = "c"}, %d: tensor<4x4xf32>
    {relax.name = "d"}) -> (tensor<2x4xf32>, tensor<2x4xf32>) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %a) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = "relax.matmul"(%0, %c) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %2 = "relax.matmul"(%x, %b) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %3 = "relax.matmul"(%0, %d) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %4 = "relax.add"(%2, %3) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1, %4 : tensor<2x4xf32>, tensor<2x4xf32>
}

// A branch combines what is in it; columns may be symbols of the weights, and the value a vector.
// CHECK-LABEL: @in_a_branch(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg0, %arg4) : ({{.*}}) -> tensor<?xf32
// CHECK-NEXT:    %1 = scf.if %arg1 -> (tensor<?xf32, {sym = ["m"]}>) {
// CHECK-NEXT:    %2 = "relax.negative"(%arg3)
// CHECK-NEXT:    %3 = "relax.concat"(%arg2, %2) {axis = 1 : i64} : ({{.*}}) -> tensor<4x?xf32
// CHECK-NEXT:    %4 = "relax.matmul"(%arg0, %3) : ({{.*}}) -> tensor<?xf32
// CHECK-NEXT:    %5 = "relax.strided_slice"(%4) {axes = array<i64: 0>, begin = [0], end = ["m"]} : ({{.*}})
// CHECK-SAME:    -> tensor<?xf32
// CHECK-NEXT:    %6 = "relax.strided_slice"(%4) {axes = array<i64: 0>, begin = ["m"], end = ["m * 2"]} : ({{.*}})
// CHECK-SAME:    -> tensor<?xf32
// CHECK-NEXT:    %7 = "relax.maximum"(%5, %6)
// CHECK-NEXT:    scf.yield %7 : tensor<?xf32, {sym = ["m"]}>
// CHECK-NEXT:    } else {
// CHECK-NEXT:    scf.yield %0 : tensor<?xf32, {sym = ["m"]}>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %1
func.func @in_a_branch(%x: tensor<4xf32> {relax.name = "x"}, %f: i1 {relax.name = "f"},
    %a: tensor<4x?xf32, {sym = ["m"]}> {relax.name = "a"}, %b: tensor<4x?xf32, {sym = ["m"]}> {relax.name = "b"},
    %c: tensor<4x?xf32, {sym = ["m"]}> {relax.name = "c"}) -> tensor<?xf32, {sym = ["m"]}>
    attributes {relax.num_input = 2 : i64} {
  %0 = "relax.matmul"(%x, %c) : (tensor<4xf32>, tensor<4x?xf32, {sym = ["m"]}>) -> tensor<?xf32, {sym = ["m"]}>
  %1 = scf.if %f -> tensor<?xf32, {sym = ["m"]}> {
    %2 = "relax.matmul"(%x, %a) : (tensor<4xf32>, tensor<4x?xf32, {sym = ["m"]}>) -> tensor<?xf32, {sym = ["m"]}>
    %n = "relax.negative"(%b) : (tensor<4x?xf32, {sym = ["m"]}>) -> tensor<4x?xf32, {sym = ["m"]}>
    %3 = "relax.matmul"(%x, %n) : (tensor<4xf32>, tensor<4x?xf32, {sym = ["m"]}>) -> tensor<?xf32, {sym = ["m"]}>
    %4 = "relax.maximum"(%2, %3) : (tensor<?xf32, {sym = ["m"]}>, tensor<?xf32, {sym = ["m"]}>)
        -> tensor<?xf32, {sym = ["m"]}>
    scf.yield %4 : tensor<?xf32, {sym = ["m"]}>
  } else {
    scf.yield %0 : tensor<?xf32, {sym = ["m"]}>
  }
  return %1 : tensor<?xf32, {sym = ["m"]}>
}

// Only functions with weights.
// CHECK-LABEL: @helper(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg0, %arg1) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %arg2) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    return %0, %1
func.func private @helper(%x: tensor<4x4xf32>, %a: tensor<4x4xf32>, %b: tensor<4x4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = "relax.matmul"(%x, %a) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relax.matmul"(%x, %b) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}
