// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @take_by_floats(%x: tensor<4xf32>, %y: tensor<2xf32>) {
  // expected-error @+1 {{'relax.take' op expected an integer index tensor, got f32}}
  %0 = "relax.take"(%x, %y) : (tensor<4xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @take_axis(%x: tensor<4xf32>, %y: tensor<2xi64>) {
  // expected-error @+1 {{'relax.take' op expected axis in [-1, 1), got 1}}
  %0 = "relax.take"(%x, %y) {axis = 1 : i64} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @take_from_a_scalar(%x: tensor<f32>, %y: tensor<2xi64>) {
  // expected-error @+1 {{'relax.take' op expected axis in [0, 0), got 0}}
  %0 = "relax.take"(%x, %y) : (tensor<f32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @packed_take_by_floats(%x: tensor<2x3x4xf32>, %y: tensor<2xf32>) {
  // expected-error @+1 {{'relax.packed_take' op expected an integer index tensor, got f32}}
  %0 = "relax.packed_take"(%x, %y) {layout = "tile 4", n = 8 : i64} : (tensor<2x3x4xf32>, tensor<2xf32>)
      -> tensor<2x3xf32>
  return
}

// -----

func.func @packed_take_of_a_matrix(%x: tensor<2x3xf32>, %y: tensor<2xi64>) {
  // expected-error @+1 {{'relax.packed_take' op expected a weight of layout 'tile 4', got [2, 3]}}
  %0 = "relax.packed_take"(%x, %y) {layout = "tile 4", n = 8 : i64} : (tensor<2x3xf32>, tensor<2xi64>)
      -> tensor<2x3xf32>
  return
}

// -----

func.func @packed_take_panels(%x: tensor<?x3x4xf32, {sym = ["p"]}>, %y: tensor<2xi64>) {
  // expected-error @+1 {{'relax.packed_take' op expected a packed weight of static panels, got [p, 3, 4]}}
  %0 = "relax.packed_take"(%x, %y) {layout = "tile 4", n = 8 : i64} : (tensor<?x3x4xf32, {sym = ["p"]}>, tensor<2xi64>)
      -> tensor<2x3xf32>
  return
}

// -----

func.func @packed_take_of_neighbours(%x: tensor<2x3x4x2xf32>, %y: tensor<2xi64>) {
  // expected-error @+1 {{'relax.packed_take' op expected a layout of a tile alone, got 'tile 4, rows 2'}}
  %0 = "relax.packed_take"(%x, %y) {layout = "tile 4, rows 2", n = 8 : i64}
    : (tensor<2x3x4x2xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @packed_take_rows(%x: tensor<2x3x4xf32>, %y: tensor<2xi64>) {
  // expected-error @+1 {{'relax.packed_take' op expected n in (4, 8] for 2 panels of 4, got 4}}
  %0 = "relax.packed_take"(%x, %y) {layout = "tile 4", n = 4 : i64} : (tensor<2x3x4xf32>, tensor<2xi64>)
      -> tensor<2x3xf32>
  return
}

// -----

func.func @gather_elements_by_floats(%x: tensor<4xf32>, %y: tensor<2xf32>) {
  // expected-error @+1 {{'relax.gather_elements' op expected an integer index tensor, got f32}}
  %0 = "relax.gather_elements"(%x, %y) : (tensor<4xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_elements_axis(%x: tensor<4xf32>, %y: tensor<2xi64>) {
  // expected-error @+1 {{'relax.gather_elements' op expected axis in [-1, 1), got -2}}
  %0 = "relax.gather_elements"(%x, %y) {axis = -2 : i64} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_elements_rank(%x: tensor<4x5xf32>, %y: tensor<2xi64>) {
  // expected-error @+1 {{'relax.gather_elements' op expected operands of one rank, got 2 and 1}}
  %0 = "relax.gather_elements"(%x, %y) : (tensor<4x5xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_elements_size(%x: tensor<4x5xf32>, %y: tensor<2x6xi64>) {
  // expected-error @+1 {{'relax.gather_elements' op expected indices that fit [4, 5], got [2, 6]}}
  %0 = "relax.gather_elements"(%x, %y) : (tensor<4x5xf32>, tensor<2x6xi64>) -> tensor<2x6xf32>
  return
}

// -----

func.func @gather_nd_by_floats(%x: tensor<4x5xf32>, %y: tensor<3x2xf32>) {
  // expected-error @+1 {{'relax.gather_nd' op expected an integer index tensor, got f32}}
  %0 = "relax.gather_nd"(%x, %y) : (tensor<4x5xf32>, tensor<3x2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @gather_nd_depth(%x: tensor<4x5xf32>, %y: tensor<3x?xi64>) {
  // expected-error @+1 {{'relax.gather_nd' op expected indices whose last dimension is static}}
  %0 = "relax.gather_nd"(%x, %y) : (tensor<4x5xf32>, tensor<3x?xi64>) -> tensor<3xf32>
  return
}

// -----

func.func @gather_nd_scalar(%x: tensor<4x5xf32>, %y: tensor<i64>) {
  // expected-error @+1 {{'relax.gather_nd' op expected indices whose last dimension is static}}
  %0 = "relax.gather_nd"(%x, %y) : (tensor<4x5xf32>, tensor<i64>) -> tensor<3xf32>
  return
}

// -----

func.func @gather_nd_batch(%x: tensor<4x5xf32>, %y: tensor<3x1xi64>) {
  // expected-error @+1 {{'relax.gather_nd' op expected batch_dims in [0, 2), got 2}}
  %0 = "relax.gather_nd"(%x, %y) {batch_dims = 2 : i64} : (tensor<4x5xf32>, tensor<3x1xi64>) -> tensor<3x5xf32>
  return
}

// -----

func.func @gather_nd_negative_batch(%x: tensor<4x5xf32>, %y: tensor<3x1xi64>) {
  // expected-error @+1 {{'relax.gather_nd' op expected batch_dims in [0, 2), got -1}}
  %0 = "relax.gather_nd"(%x, %y) {batch_dims = -1 : i64} : (tensor<4x5xf32>, tensor<3x1xi64>) -> tensor<3x5xf32>
  return
}

// -----

func.func @gather_nd_too_deep(%x: tensor<4x5xf32>, %y: tensor<3x3xi64>) {
  // expected-error @+1 {{'relax.gather_nd' op expected batch_dims + 3 of at most 2, got 3}}
  %0 = "relax.gather_nd"(%x, %y) : (tensor<4x5xf32>, tensor<3x3xi64>) -> tensor<3xf32>
  return
}

// -----

func.func @gather_nd_batch_sizes(%x: tensor<4x5xf32>, %y: tensor<3x2x1xi64>) {
  // expected-error @+1 {{'relax.gather_nd' op expected equal batch dimensions, got [4, 5] and [3, 2, 1]}}
  %0 = "relax.gather_nd"(%x, %y) {batch_dims = 1 : i64} : (tensor<4x5xf32>, tensor<3x2x1xi64>) -> tensor<3x2xf32>
  return
}

// -----

func.func @slice_axis(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.strided_slice' op expected axes in [-1, 1), got 1}}
  %0 = "relax.strided_slice"(%x) {axes = array<i64: 1>, begin = [0], end = [4]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @slice_axis_twice(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.strided_slice' op expected distinct axes with one begin, end and stride each}}
  %0 = "relax.strided_slice"(%x) {axes = array<i64: 1, -1>, begin = [0, 0], end = [4, 4]} : (tensor<4x5xf32>)
      -> tensor<4x5xf32>
  return
}

// -----

func.func @slice_bounds_missing(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.strided_slice' op expected distinct axes with one begin, end and stride each}}
  %0 = "relax.strided_slice"(%x) {axes = array<i64: 0, 1>, begin = [0, 0], end = [4]} : (tensor<4x5xf32>)
      -> tensor<4x5xf32>
  return
}

// -----

func.func @slice_strides_missing(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'relax.strided_slice' op expected distinct axes with one begin, end and stride each}}
  %0 = "relax.strided_slice"(%x) {axes = array<i64: 0, 1>, begin = [0, 0], end = [4, 5], strides = array<i64: 1>}
      : (tensor<4x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @slice_stride_beyond_any_tensor(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.strided_slice' op expected strides of at most 2**62, got [4611686018427387905]}}
  %0 = "relax.strided_slice"(%x) {axes = array<i64: 0>, begin = [0], end = [4], strides
      = array<i64: 4611686018427387905>} : (tensor<4xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @slice_backwards(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.strided_slice' op expected positive strides, got [-1]}}
  %0 = "relax.strided_slice"(%x) {axes = array<i64: 0>, begin = [0], end = [4], strides = array<i64: -1>}
      : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @slice_result(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.strided_slice' op expected result tensor<2xf32>, got tensor<3xf32>}}
  %0 = "relax.strided_slice"(%x) {axes = array<i64: 0>, begin = [0], end = [4], strides = array<i64: 2>}
      : (tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @slice_symbolic_result(%x: tensor<?xf32, {sym = ["n"]}>) {
  // expected-error @+1 {{'relax.strided_slice' op expected result tensor<n - 1xf32>, got tensor<nxf32>}}
  %0 = "relax.strided_slice"(%x) {axes = array<i64: 0>, begin = [1], end = ["n"]} : (tensor<?xf32, {sym = ["n"]}>)
      -> tensor<?xf32, {sym = ["n"]}>
  return
}

// -----

func.func @index_copy_by_floats(%x: tensor<4x5xf32>, %y: tensor<2xf32>, %z: tensor<2x5xf32>) {
  // expected-error @+1 {{'relax.index_copy' op expected an integer index tensor, got f32}}
  %0 = "relax.index_copy"(%x, %y, %z) : (tensor<4x5xf32>, tensor<2xf32>, tensor<2x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @index_copy_axis(%x: tensor<4x5xf32>, %y: tensor<2xi64>, %z: tensor<2x5xf32>) {
  // expected-error @+1 {{'relax.index_copy' op expected axis in [-2, 2), got 2}}
  %0 = "relax.index_copy"(%x, %y, %z) {axis = 2 : i64} : (tensor<4x5xf32>, tensor<2xi64>, tensor<2x5xf32>)
      -> tensor<4x5xf32>
  return
}

// -----

func.func @index_copy_rank(%x: tensor<4x5xf32>, %y: tensor<2x1xi64>, %z: tensor<2x5xf32>) {
  // expected-error @+1 {{'relax.index_copy' op expected indices of one dimension, got [2, 1]}}
  %0 = "relax.index_copy"(%x, %y, %z) : (tensor<4x5xf32>, tensor<2x1xi64>, tensor<2x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @index_copy_dtype(%x: tensor<4x5xf32>, %y: tensor<2xi64>, %z: tensor<2x5xf16>) {
  // expected-error @+1 {{'relax.index_copy' op expected values of dtype f32, got f16}}
  %0 = "relax.index_copy"(%x, %y, %z) : (tensor<4x5xf32>, tensor<2xi64>, tensor<2x5xf16>) -> tensor<4x5xf32>
  return
}

// -----

func.func @index_copy_shape(%x: tensor<4x5xf32>, %y: tensor<2xi64>, %z: tensor<3x5xf32>) {
  // expected-error @+1 {{'relax.index_copy' op expected values of shape [2, 5], got [3, 5]}}
  %0 = "relax.index_copy"(%x, %y, %z) : (tensor<4x5xf32>, tensor<2xi64>, tensor<3x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scatter_elements_by_floats(%x: tensor<4x5xf32>, %y: tensor<2x5xf32>, %z: tensor<2x5xf32>) {
  // expected-error @+1 {{'relax.scatter_elements' op expected an integer index tensor, got f32}}
  %0 = "relax.scatter_elements"(%x, %y, %z)
      : (tensor<4x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scatter_elements_axis(%x: tensor<4x5xf32>, %y: tensor<2x5xi64>, %z: tensor<2x5xf32>) {
  // expected-error @+1 {{'relax.scatter_elements' op expected axis in [-2, 2), got 2}}
  %0 = "relax.scatter_elements"(%x, %y, %z) {axis = 2 : i64}
      : (tensor<4x5xf32>, tensor<2x5xi64>, tensor<2x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scatter_elements_dtype(%x: tensor<4x5xf32>, %y: tensor<2x5xi64>, %z: tensor<2x5xf16>) {
  // expected-error @+1 {{'relax.scatter_elements' op expected updates of dtype f32, got f16}}
  %0 = "relax.scatter_elements"(%x, %y, %z)
      : (tensor<4x5xf32>, tensor<2x5xi64>, tensor<2x5xf16>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scatter_elements_of_truth_values(%x: tensor<4x5xi1>, %y: tensor<2x5xi64>, %z: tensor<2x5xi1>) {
  // expected-error @+1 {{'relax.scatter_elements' op expected numbers for the reduction add, got i1}}
  %0 = "relax.scatter_elements"(%x, %y, %z) {reduction = "add"}
      : (tensor<4x5xi1>, tensor<2x5xi64>, tensor<2x5xi1>) -> tensor<4x5xi1>
  return
}

// -----

func.func @scatter_elements_reduction(%x: tensor<4x5xf32>, %y: tensor<2x5xi64>, %z: tensor<2x5xf32>) {
  // expected-error @+1 {{'relax.scatter_elements' op expected one of 'update', 'add', 'mul', 'min', 'max' for attribute 'reduction', got "mean"}}
  %0 = "relax.scatter_elements"(%x, %y, %z) {reduction = "mean"}
      : (tensor<4x5xf32>, tensor<2x5xi64>, tensor<2x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scatter_elements_rank(%x: tensor<4x5xf32>, %y: tensor<2xi64>, %z: tensor<2xf32>) {
  // expected-error @+1 {{'relax.scatter_elements' op expected indices of 2 dimensions, got [2]}}
  %0 = "relax.scatter_elements"(%x, %y, %z)
      : (tensor<4x5xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scatter_elements_indices(%x: tensor<4x5xf32>, %y: tensor<2x4xi64>, %z: tensor<2x4xf32>) {
  // expected-error @+1 {{'relax.scatter_elements' op expected indices of shape [2, 5], got [2, 4]}}
  %0 = "relax.scatter_elements"(%x, %y, %z)
      : (tensor<4x5xf32>, tensor<2x4xi64>, tensor<2x4xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scatter_elements_updates(%x: tensor<4x5xf32>, %y: tensor<2x5xi64>, %z: tensor<3x5xf32>) {
  // expected-error @+1 {{'relax.scatter_elements' op expected updates of shape [2, 5], got [3, 5]}}
  %0 = "relax.scatter_elements"(%x, %y, %z)
      : (tensor<4x5xf32>, tensor<2x5xi64>, tensor<3x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @dynamic_strided_slice_bounds(%x: tensor<4x5xf32>, %b: tensor<2xi64>, %e: tensor<1xi64>) {
  // expected-error @+1 {{'relax.dynamic_strided_slice' op expected a begin and an end for each of 1 axes, got [2]}}
  %0 = "relax.dynamic_strided_slice"(%x, %b, %e) {axes = array<i64: 0>}
      : (tensor<4x5xf32>, tensor<2xi64>, tensor<1xi64>) -> tensor<?x5xf32>
  return
}

// -----

func.func @dynamic_strided_slice_dtype(%x: tensor<4x5xf32>, %b: tensor<1xi32>) {
  // expected-error @+1 {{'relax.dynamic_strided_slice' op expected slice bounds of i64, got i32}}
  %0 = "relax.dynamic_strided_slice"(%x, %b, %b) {axes = array<i64: 0>}
      : (tensor<4x5xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?x5xf32>
  return
}

// -----

func.func @dynamic_strided_slice_strides(%x: tensor<4x5xf32>, %b: tensor<1xi64>) {
  // expected-error @+1 {{'relax.dynamic_strided_slice' op expected positive strides, got [0]}}
  %0 = "relax.dynamic_strided_slice"(%x, %b, %b) {axes = array<i64: 0>, strides = array<i64: 0>}
      : (tensor<4x5xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x5xf32>
  return
}

// -----

// Truth values are a mask, no places.
func.func @take_of_truth_values(%x: tensor<4x5xf32>, %i: tensor<4xi1>) {
  // expected-error @+1 {{'relax.take' op expected an integer index tensor, got i1}}
  %0 = "relax.take"(%x, %i) {axis = 0 : i64} : (tensor<4x5xf32>, tensor<4xi1>) -> tensor<4x5xf32>
  return
}

// -----

func.func @gather_elements_of_truth_values(%x: tensor<4x5xf32>, %i: tensor<4x5xi1>) {
  // expected-error @+1 {{'relax.gather_elements' op expected an integer index tensor, got i1}}
  %0 = "relax.gather_elements"(%x, %i) {axis = 0 : i64} : (tensor<4x5xf32>, tensor<4x5xi1>) -> tensor<4x5xf32>
  return
}

// -----

func.func @gather_nd_of_truth_values(%x: tensor<4x5xf32>, %i: tensor<4x2xi1>) {
  // expected-error @+1 {{'relax.gather_nd' op expected an integer index tensor, got i1}}
  %0 = "relax.gather_nd"(%x, %i) : (tensor<4x5xf32>, tensor<4x2xi1>) -> tensor<4xf32>
  return
}
