// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-realize-vdevice

func.func @conflict(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note@+1 {{'cuda:0' comes from here}}
  %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-note@+1 {{'cuda:1' comes from here}}
  %1 = "relax.hint_on_device"(%y) {vdevice = "cuda:1"} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'relax.add' op expected all tensors on one device, got 'cuda:0' and 'cuda:1'}}
  %2 = "relax.add"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// A placement inside of a function that is called.
func.func @calls(
    // expected-note@+1 {{'cpu:0' comes from here}}
    %x: tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32> {
  %0 = "relax.exp"(%x) : (tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32>
  // expected-error@+1 {{'func.call' op expected all tensors on one device, got 'cpu:0' and 'cuda:0'}}
  %1 = call @inside(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @inside(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note@+1 {{'cuda:0' comes from here}}
  %0 = "relax.full"() {value = 1.0 : f64} : () -> tensor<4xf32, {vdevice = "cuda:0"}>
  %1 = "relax.add"(%x, %0) : (tensor<4xf32>, tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A declaration is one function, and so is what calls itself: all calls agree.
func.func @declared(
    // expected-note@+1 {{'cpu:0' comes from here}}
    %x: tensor<4xf32, {vdevice = "cpu:0"}>,
    // expected-note@+1 {{'cuda:0' comes from here}}
    %y: tensor<4xf32, {vdevice = "cuda:0"}>) {
  %0 = "relax.exp"(%x) : (tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32>
  %1 = "relax.exp"(%y) : (tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32>
  call @outside(%0) : (tensor<4xf32>) -> ()
  // expected-error@+1 {{'func.call' op expected all tensors on one device, got 'cuda:0' and 'cpu:0'}}
  call @outside(%1) : (tensor<4xf32>) -> ()
  return
}
func.func private @outside(tensor<4xf32>)

// -----

func.func @branches(%c: i1,
    // expected-note@+1 {{'cpu:0' comes from here}}
    %x: tensor<4xf32, {vdevice = "cpu:0"}>,
    // expected-note@+1 {{'cuda:0' comes from here}}
    %y: tensor<4xf32, {vdevice = "cuda:0"}>) {
  %0 = "relax.exp"(%x) : (tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32>
  %1 = "relax.exp"(%y) : (tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32>
  %2 = scf.if %c -> tensor<4xf32> {
    scf.yield %0 : tensor<4xf32>
  } else {
    // expected-error@+1 {{'scf.yield' op expected all tensors on one device, got 'cuda:0' and 'cpu:0'}}
    scf.yield %1 : tensor<4xf32>
  }
  return
}

// -----

// What a private function returns is where its type says, in every call.
func.func @returned(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note@+1 {{'cpu:0' comes from here}}
  %0 = "relax.hint_on_device"(%x) {vdevice = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-note@+1 {{'cuda:0' comes from here}}
  %1 = call @placed(%x) : (tensor<4xf32>) -> tensor<4xf32, {vdevice = "cuda:0"}>
  %2 = "relax.exp"(%1) : (tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32>
  // expected-error@+1 {{'relax.add' op expected all tensors on one device, got 'cuda:0' and 'cpu:0'}}
  %3 = "relax.add"(%2, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}
func.func private @placed(%x: tensor<4xf32>) -> tensor<4xf32, {vdevice = "cuda:0"}> {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32, {vdevice = "cuda:0"}>
  return %0 : tensor<4xf32, {vdevice = "cuda:0"}>
}

// -----

// Prepared weights are where the transform function returns them.
// expected-note@+1 {{'cuda:0' comes from here}}
func.func @main_transform_params(%w: tensor<4xf32, {vdevice = "cuda:0"}>)
    -> (tensor<4xf32, {vdevice = "cuda:0"}> {relax.name = "w"})
    attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  return %w : tensor<4xf32, {vdevice = "cuda:0"}>
}
// expected-error@+2 {{'func.func' op expected all tensors on one device, got 'cuda:0' and 'cpu:0'}}
// expected-note@+1 {{'cpu:0' comes from here}}
func.func @main(%w: tensor<4xf32, {vdevice = "cpu:0"}> {relax.name = "w"}) attributes {relax.num_input = 0 : i64} {
  return
}

// -----

module attributes {relax.vdevices = ["cpu:0", "cuda:0"]} {
  func.func @unlisted_hint(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error@+1 {{expected a device of relax.vdevices ('cpu:0', 'cuda:0'), got 'cuda:7'}}
    %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:7"} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module attributes {relax.vdevices = ["cpu:0"]} {
  // expected-error@+1 {{expected a device of relax.vdevices ('cpu:0'), got 'cuda:0'}}
  func.func @unlisted_argument(%x: tensor<4xf32, {vdevice = "cuda:0"}>) {
    return
  }
}

// -----

module attributes {relax.vdevices = ["cpu:0"]} {
  // expected-error@+1 {{expected a device of relax.vdevices ('cpu:0'), got 'cuda:0'}}
  func.func private @unlisted_in_declaration() -> tensor<4xf32, {vdevice = "cuda:0"}>
}

// -----

// expected-error@+1 {{expected a device such as 'cuda:0', got 'gpu'}}
func.func @no_device(%x: tensor<4xf32, {vdevice = "gpu"}>) {
  return
}

// -----

// expected-error@+1 {{expected a list of strings for relax.vdevices, got "cpu:0"}}
module attributes {relax.vdevices = "cpu:0"} {
}

// -----

// expected-error@+1 {{expected distinct devices in relax.vdevices, got 'cpu:0' twice}}
module attributes {relax.vdevices = ["cpu:0", "cuda:0", "cpu:0"]} {
}

// -----

// expected-error@+1 {{expected a device such as 'cuda:0', got 'cuda'}}
module attributes {relax.vdevices = ["cuda"]} {
}
