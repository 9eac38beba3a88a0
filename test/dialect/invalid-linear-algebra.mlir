// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @dtypes_differ(%x: tensor<2x3xf32>, %y: tensor<3x4xf16>) {
  // expected-error @+1 {{'relax.matmul' op expected operands of one dtype, got f32 and f16}}
  %0 = "relax.matmul"(%x, %y) : (tensor<2x3xf32>, tensor<3x4xf16>) -> tensor<2x4xf32>
  return
}

// -----

func.func @truth_values(%x: tensor<2x3xi1>, %y: tensor<3x4xi1>) {
  // expected-error @+1 {{'relax.matmul' op expected a number as operand, got i1}}
  %0 = "relax.matmul"(%x, %y) : (tensor<2x3xi1>, tensor<3x4xi1>) -> tensor<2x4xi1>
  return
}

// -----

func.func @scalar(%x: tensor<f32>, %y: tensor<3x4xf32>) {
  // expected-error @+1 {{'relax.matmul' op expected operands of rank 1 or more, got a scalar}}
  %0 = "relax.matmul"(%x, %y) : (tensor<f32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @inner_dimensions(%x: tensor<2x3xf32>, %y: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.matmul' op expected equal inner dimensions, got [2, 3] and [4, 5]}}
  %0 = "relax.matmul"(%x, %y) : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @inner_symbols(%x: tensor<2x?xf32, {sym = ["n"]}>, %y: tensor<?x5xf32, {sym = ["m"]}>) {
  // expected-error @+1 {{'relax.matmul' op expected equal inner dimensions, got [2, n] and [m, 5]}}
  %0 = "relax.matmul"(%x, %y) : (tensor<2x?xf32, {sym = ["n"]}>, tensor<?x5xf32, {sym = ["m"]}>) -> tensor<2x5xf32>
  return
}

// -----

func.func @batch_dimensions(%x: tensor<2x4x5xf32>, %y: tensor<3x5x6xf32>) {
  // expected-error @+1 {{'relax.matmul' op expected broadcastable shapes, got [2] and [3]}}
  %0 = "relax.matmul"(%x, %y) : (tensor<2x4x5xf32>, tensor<3x5x6xf32>) -> tensor<2x4x6xf32>
  return
}

// -----

func.func @float_out_dtype_of_integers(%x: tensor<2x3xi8>, %y: tensor<3x4xi8>) {
  // expected-error @+1 {{'relax.matmul' op expected an out_dtype of the operands' kind, got f32 for i8}}
  %0 = "relax.matmul"(%x, %y) {out_dtype = f32} : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xf32>
  return
}

// -----

func.func @integer_out_dtype_of_floats(%x: tensor<2x3xf16>, %y: tensor<1x3x8xf16>) {
  // expected-error @+1 {{'relax.packed_matmul' op expected an out_dtype of the operands' kind, got i32 for f16}}
  %0 = "relax.packed_matmul"(%x, %y) {layout = "tile 8", n = 4 : i64, out_dtype = i32}
      : (tensor<2x3xf16>, tensor<1x3x8xf16>) -> tensor<2x4xi32>
  return
}

// -----

func.func @pack_rank(%x: tensor<2x3x4xf32>) {
  // expected-error @+1 {{'relax.pack_weight' op expected operand of rank 2, got 3}}
  %0 = "relax.pack_weight"(%x) {layout = "tile 8"} : (tensor<2x3x4xf32>) -> tensor<1x3x8xf32>
  return
}

// -----

func.func @pack_tile(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'relax.pack_weight' op expected a packed layout such as 'tile 16, rows 4, u4x8, offset 8' for attribute 'layout', got "tile 0"}}
  %0 = "relax.pack_weight"(%x) {layout = "tile 0"} : (tensor<3x4xf32>) -> tensor<1x3x8xf32>
  return
}

// -----

func.func @pack_words(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'relax.pack_weight' op expected a layout of a tile and rows alone, got 'tile 8, u4x8'}}
  %0 = "relax.pack_weight"(%x) {layout = "tile 8, u4x8"} : (tensor<3x4xf32>) -> tensor<1x3x8xf32>
  return
}

// -----

func.func @packed_groups(%x: tensor<2x5xbf16>, %y: tensor<1x2x8x2xbf16>) {
  // expected-error @+1 {{'relax.packed_matmul' op expected equal inner dimensions, got [2, 5] and [1, 2, 8, 2]}}
  %0 = "relax.packed_matmul"(%x, %y) {layout = "tile 8, rows 2", n = 4 : i64} : (tensor<2x5xbf16>, tensor<1x2x8x2xbf16>)
      -> tensor<2x4xbf16>
  return
}

// -----

func.func @packed_dynamic_groups(%x: tensor<2x5xbf16>, %y: tensor<1x3x8x?xbf16>) {
  // expected-error @+1 {{'relax.packed_matmul' op expected a packed weight of static panels, got [1, 3, 8, ?]}}
  %0 = "relax.packed_matmul"(%x, %y) {layout = "tile 8, rows 2", n = 4 : i64} : (tensor<2x5xbf16>, tensor<1x3x8x?xbf16>)
      -> tensor<2x4xbf16>
  return
}

// -----

func.func @packed_integers(%x: tensor<2x3xi8>, %y: tensor<1x3x8xi8>) {
  // expected-error @+1 {{'relax.packed_matmul' op expected a floating-point operand, got i8}}
  %0 = "relax.packed_matmul"(%x, %y) {layout = "tile 8", n = 4 : i64} : (tensor<2x3xi8>, tensor<1x3x8xi8>)
      -> tensor<2x4xi8>
  return
}

// -----

func.func @packed_dtypes_differ(%x: tensor<2x3xf32>, %y: tensor<1x3x8xf16>) {
  // expected-error @+1 {{'relax.packed_matmul' op expected operands of one dtype, got f32 and f16}}
  %0 = "relax.packed_matmul"(%x, %y) {layout = "tile 8", n = 4 : i64} : (tensor<2x3xf32>, tensor<1x3x8xf16>)
      -> tensor<2x4xf32>
  return
}

// -----

func.func @packed_rank(%x: tensor<2x3xf32>, %y: tensor<3x8xf32>) {
  // expected-error @+1 {{'relax.packed_matmul' op expected a weight of layout 'tile 8', got [3, 8]}}
  %0 = "relax.packed_matmul"(%x, %y) {layout = "tile 8", n = 4 : i64} : (tensor<2x3xf32>, tensor<3x8xf32>)
      -> tensor<2x4xf32>
  return
}

// -----

func.func @packed_in_another_tile(%x: tensor<2x3xf32>, %y: tensor<1x3x8xf32>) {
  // expected-error @+1 {{'relax.packed_matmul' op expected a weight of layout 'tile 16', got [1, 3, 8]}}
  %0 = "relax.packed_matmul"(%x, %y) {layout = "tile 16", n = 4 : i64} : (tensor<2x3xf32>, tensor<1x3x8xf32>)
      -> tensor<2x4xf32>
  return
}

// -----

func.func @packed_inner_dimensions(%x: tensor<2x3xf32>, %y: tensor<1x4x8xf32>) {
  // expected-error @+1 {{'relax.packed_matmul' op expected equal inner dimensions, got [2, 3] and [1, 4, 8]}}
  %0 = "relax.packed_matmul"(%x, %y) {layout = "tile 8", n = 4 : i64} : (tensor<2x3xf32>, tensor<1x4x8xf32>)
      -> tensor<2x4xf32>
  return
}

// -----

func.func @packed_scalar(%x: tensor<f32>, %y: tensor<1x4x8xf32>) {
  // expected-error @+1 {{'relax.packed_matmul' op expected an operand of rank 1 or more, got a scalar}}
  %0 = "relax.packed_matmul"(%x, %y) {layout = "tile 8", n = 4 : i64} : (tensor<f32>, tensor<1x4x8xf32>)
      -> tensor<4xf32>
  return
}

// -----

func.func @packed_columns(%x: tensor<2x3xf32>, %y: tensor<2x3x8xf32>) {
  // expected-error @+1 {{'relax.packed_matmul' op expected n in (8, 16] for 2 panels of 8, got 17}}
  %0 = "relax.packed_matmul"(%x, %y) {layout = "tile 8", n = 17 : i64} : (tensor<2x3xf32>, tensor<2x3x8xf32>)
      -> tensor<2x17xf32>
  return
}

// -----

func.func @packed_dynamic(%x: tensor<2x3xf32>, %y: tensor<?x3x8xf32>) {
  // expected-error @+1 {{'relax.packed_matmul' op expected a packed weight of static panels, got [?, 3, 8]}}
  %0 = "relax.packed_matmul"(%x, %y) {layout = "tile 8", n = 4 : i64} : (tensor<2x3xf32>, tensor<?x3x8xf32>)
      -> tensor<2x4xf32>
  return
}

// -----

func.func @ends_of_floats(%x: tensor<2x3xf32>, %y: tensor<3x8xf32>, %ends: tensor<2xf32>) {
  // expected-error @+1 {{'relax.grouped_matmul' op expected ends of integers, got f32}}
  %0 = "relax.grouped_matmul"(%x, %y, %ends) : (tensor<2x3xf32>, tensor<3x8xf32>, tensor<2xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @groups_of_unknown_number(%x: tensor<2x3xf32>, %y: tensor<3x8xf32>, %ends: tensor<?xi64>) {
  // expected-error @+1 {{'relax.grouped_matmul' op expected a known number of groups, got [?]}}
  %0 = "relax.grouped_matmul"(%x, %y, %ends) : (tensor<2x3xf32>, tensor<3x8xf32>, tensor<?xi64>) -> tensor<2x4xf32>
  return
}

// -----

func.func @columns_of_no_group(%x: tensor<2x3xf32>, %y: tensor<3x8xf32>, %ends: tensor<3xi64>) {
  // expected-error @+1 {{'relax.grouped_matmul' op expected columns that 3 groups share equally, got 8}}
  %0 = "relax.grouped_matmul"(%x, %y, %ends) : (tensor<2x3xf32>, tensor<3x8xf32>, tensor<3xi64>) -> tensor<2x4xf32>
  return
}

// -----

func.func @packed_columns_of_no_group(%x: tensor<2x3xf32>, %y: tensor<1x3x8xf32>, %ends: tensor<3xi64>) {
  // expected-error @+1 {{'relax.packed_grouped_matmul' op expected columns that 3 groups share equally, got 8}}
  %0 = "relax.packed_grouped_matmul"(%x, %y, %ends) {layout = "tile 8", n = 8 : i64}
      : (tensor<2x3xf32>, tensor<1x3x8xf32>, tensor<3xi64>) -> tensor<2x4xf32>
  return
}
