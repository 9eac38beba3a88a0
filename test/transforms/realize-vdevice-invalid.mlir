// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-realize-vdevice

func.func @conflict(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.hint_on_device"(%y) {vdevice = "cuda:1"} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'relax.add' op expected all tensors on one device, got 'cuda:0' and 'cuda:1'}}
  %2 = "relax.add"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

func.func @calls(%x: tensor<4xf32, {vdevice = "cpu:0"}>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "relax.to_vdevice"(%y) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32, {vdevice = "cuda:0"}>
  %1 = "relax.exp"(%x) : (tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32>
  %2 = "relax.exp"(%0) : (tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32>
  %3 = call @f(%1) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'func.call' op expected all tensors on one device, got 'cuda:0' and 'cpu:0'}}
  %4 = call @f(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %3, %4 : tensor<4xf32>, tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

module attributes {relax.vdevices = ["cpu:0", "cuda:0"]} {
  func.func @unlisted(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error@+1 {{expected a device of relax.vdevices ('cpu:0', 'cuda:0'), got 'cuda:7'}}
    %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:7"} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// expected-error@+1 {{expected a list of strings for relax.vdevices, got "cpu:0"}}
module attributes {relax.vdevices = "cpu:0"} {
}
