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
