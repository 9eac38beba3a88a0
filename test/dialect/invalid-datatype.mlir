// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @no_number(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.astype' op expected an integer or floating-point dtype, got complex<f32>}}
  %0 = "relax.astype"(%x) {dtype = complex<f32>} : (tensor<4xf32>) -> tensor<4xcomplex<f32>>
  return
}

// -----

func.func @result_has_another_dtype(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.astype' op expected result tensor<4xf16>, got tensor<4xbf16>}}
  %0 = "relax.astype"(%x) {dtype = f16} : (tensor<4xf32>) -> tensor<4xbf16>
  return
}

// -----

func.func @dtype_is_missing(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.astype' op expected attribute 'dtype'}}
  %0 = "relax.astype"(%x) : (tensor<4xf32>) -> tensor<4xf16>
  return
}

// -----

func.func @other_bits(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.bitcast' op expected a dtype of as many bits as f32, got i16}}
  %0 = "relax.bitcast"(%x) {dtype = i16} : (tensor<4xf32>) -> tensor<4xi16>
  return
}

// -----

func.func @no_bytes(%x: tensor<4xi1>) {
  // expected-error @+1 {{'relax.bitcast' op expected a dtype of 8, 16, 32 or 64 bits, got i1}}
  %0 = "relax.bitcast"(%x) {dtype = i8} : (tensor<4xi1>) -> tensor<4xi8>
  return
}
