// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @copy_lands_elsewhere(%x: tensor<4xf32, {vdevice = "cpu:0"}>) {
  // expected-error @+1 {{'relax.to_vdevice' op expected a result on 'cuda:0', got cpu:0}}
  %0 = "relax.to_vdevice"(%x) {vdevice = "cuda:0"} : (tensor<4xf32, {vdevice = "cpu:0"}>)
      -> tensor<4xf32, {vdevice = "cpu:0"}>
  return
}

// -----

func.func @copy_lands_nowhere(%x: tensor<4xf32, {vdevice = "cpu:0"}>) {
  // expected-error @+1 {{'relax.to_vdevice' op expected a result on 'cuda:0', got no device}}
  %0 = "relax.to_vdevice"(%x) {vdevice = "cuda:0"} : (tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32>
  return
}

// -----

func.func @copy_of_another_shape(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.to_vdevice' op expected result tensor<4xf32>, got tensor<5xf32>}}
  %0 = "relax.to_vdevice"(%x) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<5xf32, {vdevice = "cuda:0"}>
  return
}

// -----

func.func @hint_without_device(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.hint_on_device' op expected attribute 'vdevice'}}
  %0 = "relax.hint_on_device"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @hint_of_another_dtype(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.hint_on_device' op expected result tensor<4xf32>, got tensor<4xf16>}}
  %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf16>
  return
}

// -----

func.func @hint_lands_elsewhere(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.hint_on_device' op expected a result on 'cuda:0', got cpu:0}}
  %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32, {vdevice = "cpu:0"}>
  return
}

// -----

func.func @hint_on_no_device(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.hint_on_device' op expected a device such as 'cuda:0', got 'cuda'}}
  %0 = "relax.hint_on_device"(%x) {vdevice = "cuda"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @copy_to_no_device(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.to_vdevice' op expected a device such as 'cuda:0', got ''}}
  %0 = "relax.to_vdevice"(%x) {vdevice = ""} : (tensor<4xf32>) -> tensor<4xf32, {vdevice = ""}>
  return
}
