// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @permutation_repeats(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'relax.permute_dims' op expected a permutation of 2 axes, got [0, 0]}}
  %0 = "relax.permute_dims"(%x) {axes = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @permutation_axis(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'relax.permute_dims' op expected axes in [-2, 2), got 2}}
  %0 = "relax.permute_dims"(%x) {axes = array<i64: 0, 2>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @reshape_dtype(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.reshape' op expected operands of one dtype, got f32 and f16}}
  %0 = "relax.reshape"(%x) : (tensor<4xf32>) -> tensor<2x2xf16>
  return
}

// -----

func.func @reshape_count(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{'relax.reshape' op expected as many elements as [4, 3], got [5, 2]}}
  %0 = "relax.reshape"(%x) : (tensor<4x3xf32>) -> tensor<5x2xf32>
  return
}

// -----

func.func @reshape_symbolic_count(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  // expected-error @+1 {{'relax.reshape' op expected as many elements as [n, 4], got [n, 2, 3]}}
  %0 = "relax.reshape"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x2x3xf32, {sym = ["n"]}>
  return
}

// -----

func.func @reshape_unknown(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.reshape' op expected a result with at most one unknown dimension, got tensor<?x?xf32>}}
  %0 = "relax.reshape"(%x) : (tensor<4xf32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @broadcast_dtype(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.broadcast_to' op expected operands of one dtype, got f32 and f16}}
  %0 = "relax.broadcast_to"(%x) : (tensor<4xf32>) -> tensor<2x4xf16>
  return
}

// -----

func.func @broadcast_unknown(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.broadcast_to' op expected result of known dimensions, got tensor<?x4xf32>}}
  %0 = "relax.broadcast_to"(%x) : (tensor<4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @broadcast_shape(%x: tensor<3xf32>) {
  // expected-error @+1 {{'relax.broadcast_to' op expected broadcastable shapes, got [3] and [2, 4]}}
  %0 = "relax.broadcast_to"(%x) : (tensor<3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @broadcast_shrinks(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.broadcast_to' op expected a shape that [4] broadcasts to, got [1]}}
  %0 = "relax.broadcast_to"(%x) : (tensor<4xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @broadcast_rank(%x: tensor<1x4xf32>) {
  // expected-error @+1 {{'relax.broadcast_to' op expected a shape that [1, 4] broadcasts to, got [4]}}
  %0 = "relax.broadcast_to"(%x) : (tensor<1x4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @expand_axis(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'relax.expand_dims' op expected axis in [-3, 3), got 3}}
  %0 = "relax.expand_dims"(%x) {axis = array<i64: 3>} : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
  return
}

// -----

func.func @expand_axis_twice(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'relax.expand_dims' op expected distinct axis, got [0, -4]}}
  %0 = "relax.expand_dims"(%x) {axis = array<i64: 0, -4>} : (tensor<2x3xf32>) -> tensor<1x1x2x3xf32>
  return
}

// -----

func.func @squeeze_axis(%x: tensor<2x1xf32>) {
  // expected-error @+1 {{'relax.squeeze' op expected axis in [-2, 2), got 2}}
  %0 = "relax.squeeze"(%x) {axis = array<i64: 2>} : (tensor<2x1xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @squeeze_size(%x: tensor<2x1xf32>) {
  // expected-error @+1 {{'relax.squeeze' op expected a dimension of size 1 at axis 0, got [2, 1]}}
  %0 = "relax.squeeze"(%x) {axis = array<i64: 0>} : (tensor<2x1xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @squeeze_symbol(%x: tensor<?xf32, {sym = ["n"]}>) {
  // expected-error @+1 {{'relax.squeeze' op expected a dimension of size 1 at axis 0, got [n]}}
  %0 = "relax.squeeze"(%x) {axis = array<i64: 0>} : (tensor<?xf32, {sym = ["n"]}>) -> tensor<f32>
  return
}

// -----

func.func @squeeze_unknown(%x: tensor<?x1xf32>) {
  // expected-error @+1 {{'relax.squeeze' op expected operand of known dimensions, got tensor<?x1xf32>}}
  %0 = "relax.squeeze"(%x) : (tensor<?x1xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @concat_dtype(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @+1 {{'relax.concat' op expected operands of one dtype, got f32 and f16}}
  %0 = "relax.concat"(%x, %y) : (tensor<4xf32>, tensor<4xf16>) -> tensor<8xf32>
  return
}

// -----

func.func @concat_axis(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'relax.concat' op expected axis in [-1, 1), got 1}}
  %0 = "relax.concat"(%x, %y) {axis = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @concat_shape(%x: tensor<4x2xf32>, %y: tensor<4x3xf32>) {
  // expected-error @+1 {{'relax.concat' op expected shapes equal but for axis 0, got [4, 2] and [4, 3]}}
  %0 = "relax.concat"(%x, %y) : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @concat_rank(%x: tensor<4xf32>, %y: tensor<4x3xf32>) {
  // expected-error @+1 {{'relax.concat' op expected shapes equal but for axis 0, got [4] and [4, 3]}}
  %0 = "relax.concat"(%x, %y) : (tensor<4xf32>, tensor<4x3xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @concat_without_the_axis(%x: tensor<4x2xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'relax.concat' op expected shapes equal but for axis 1, got [4, 2] and [4]}}
  %0 = "relax.concat"(%x, %y) {axis = 1 : i64} : (tensor<4x2xf32>, tensor<4xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @split_axis(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.split' op expected axis in [-1, 1), got 1}}
  %0:2 = "relax.split"(%x) {sections = 2 : i64, axis = 1 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @split_sections(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.split' op expected a dimension that divides into 3 equal parts, got [4]}}
  %0:3 = "relax.split"(%x) {sections = 3 : i64} : (tensor<4xf32>) -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>)
  return
}

// -----

func.func @split_no_sections(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.split' op expected a dimension that divides into 0 equal parts, got [4]}}
  %0:2 = "relax.split"(%x) {sections = 0 : i64} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @split_results(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.split' op expected 2 results, got 3}}
  %0:3 = "relax.split"(%x) {sections = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @flip_axis(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.flip' op expected axis in [-1, 1), got -2}}
  %0 = "relax.flip"(%x) {axis = -2 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @repeat_axis(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.repeat' op expected axis in [-1, 1), got 1}}
  %0 = "relax.repeat"(%x) {repeats = 2 : i64, axis = 1 : i64} : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @repeat_negative(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.repeat' op expected a count of repeats that is not negative, got -1}}
  %0 = "relax.repeat"(%x) {repeats = -1 : i64, axis = 0 : i64} : (tensor<4xf32>) -> tensor<0xf32>
  return
}

// -----

func.func @tile_rank(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{'relax.tile' op expected 2 counts of repeats that are not negative, got [2]}}
  %0 = "relax.tile"(%x) {repeats = array<i64: 2>} : (tensor<4x2xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @tile_negative(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.tile' op expected 1 counts of repeats that are not negative, got [-1]}}
  %0 = "relax.tile"(%x) {repeats = array<i64: -1>} : (tensor<4xf32>) -> tensor<0xf32>
  return
}

// -----

func.func @split_absurd(%x: tensor<?xf32>) {
  // expected-error @+1 {{'relax.split' op expected at most 65536 sections, got 100000}}
  %0:2 = "relax.split"(%x) {sections = 100000 : i64} : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  return
}
