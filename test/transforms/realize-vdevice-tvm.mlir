// RUN: relax-opt %s --split-input-file --relax-realize-vdevice | filecheck %s
// RUN: relax-opt %s --split-input-file --relax-realize-vdevice --relax-realize-vdevice | filecheck %s

// What TVM's tests of RealizeVDevice (7) and of several devices in its VM (3) pin down, under the names that they have
// there or that say it; that the input is not changed, and results, are in test_devices.py.

// CHECK-LABEL: @dataflow_binding(%arg0: tensor<2x3xf32, {vdevice = "cuda:0"}>,
// CHECK-SAME: %arg1: tensor<2x3xf32, {vdevice = "cuda:0"}>, %arg2: tensor<2x3xf32, {vdevice = "cuda:0"}>)
// CHECK-NEXT:    "relax.add"(%arg0, %arg1) : {{.*}} -> tensor<2x3xf32, {vdevice = "cuda:0"}>
// CHECK-NEXT:    "relax.multiply"(%{{.*}}, %arg2) : {{.*}} -> tensor<2x3xf32, {vdevice = "cuda:0"}>
// CHECK-NEXT:    return
module attributes {relax.vdevices = ["cuda:0"]} {
  func.func @dataflow_binding(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %z: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %x1 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %y1 = "relax.hint_on_device"(%y) {vdevice = "cuda:0"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %0 = "relax.add"(%x1, %y1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = "relax.multiply"(%0, %z) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}

// -----

// CHECK-LABEL: @func_ret(%arg0: tensor<2x3xf32, {vdevice = "cuda:0"}>, %arg1: tensor<2x3xf32, {vdevice = "cuda:0"}>)
// CHECK-NEXT:    "relax.add"(%arg0, %arg1) : {{.*}} -> tensor<2x3xf32, {vdevice = "cuda:0"}>
func.func @func_ret(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32, {vdevice = "cuda:0"}> {
  %0 = "relax.add"(%x, %y) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = func.call @identity(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32, {vdevice = "cuda:0"}>
  return %1 : tensor<2x3xf32, {vdevice = "cuda:0"}>
}
// CHECK-LABEL: @identity(%arg0: tensor<2x3xf32, {vdevice = "cuda:0"}>) -> tensor<2x3xf32, {vdevice = "cuda:0"}>
func.func private @identity(%x: tensor<2x3xf32>) -> tensor<2x3xf32, {vdevice = "cuda:0"}> {
  %0 = "relax.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32, {vdevice = "cuda:0"}>
  return %0 : tensor<2x3xf32, {vdevice = "cuda:0"}>
}

// -----

// A tuple there, several results here.
// CHECK-LABEL: @func_ret_tuple(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>, %arg1: tensor<4xf32, {vdevice = "cpu:0"}>)
// CHECK-SAME:    -> (tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cpu:0"}>)
func.func @func_ret_tuple(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cpu:0"}>) {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.exp"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  %2:2 = func.call @both(%0, %1) : (tensor<4xf32>, tensor<4xf32>)
      -> (tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cpu:0"}>)
  return %2#0, %2#1 : tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cpu:0"}>
}
func.func private @both(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cpu:0"}>) {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32, {vdevice = "cuda:0"}>
  %1 = "relax.exp"(%y) : (tensor<4xf32>) -> tensor<4xf32, {vdevice = "cpu:0"}>
  return %0, %1 : tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cpu:0"}>
}

// -----

// CHECK-LABEL: @multi_device(
// CHECK-NEXT:    %[[A:.*]] = "relax.add"(%arg0, %arg1) : {{.*}} -> tensor<2x3xf32, {vdevice = "cuda:0"}>
// CHECK-NEXT:    %[[B:.*]] = "relax.to_vdevice"(%[[A]]) {vdevice = "cuda:1"}
// CHECK-NEXT:    %[[C:.*]] = "relax.add"(%arg2, %arg2) : {{.*}} -> tensor<2x3xf32, {vdevice = "cuda:1"}>
// CHECK-NEXT:    "relax.multiply"(%[[B]], %[[C]]) : {{.*}} -> tensor<2x3xf32, {vdevice = "cuda:1"}>
module attributes {relax.vdevices = ["cuda:0", "cuda:1"]} {
  func.func @multi_device(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %z: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %x1 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %0 = "relax.add"(%x1, %y) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = "relax.hint_on_device"(%0) {vdevice = "cuda:1"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %2 = "relax.add"(%z, %z) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %3 = "relax.multiply"(%1, %2) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    return %3 : tensor<2x3xf32>
  }
}

// -----

// The hint agrees with the type and vanishes.
// CHECK-LABEL: @hint_on_same_device(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>)
// CHECK-NEXT:    return %arg0
func.func @hint_on_same_device(%x: tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32> {
  %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// The hint comes first and says little: the type further down says where its operand is.
// CHECK-LABEL: @insert_to_vdevice(%arg0: tensor<2x3xf32, {vdevice = "cuda:0"}>)
// CHECK-NEXT:    %0 = "relax.to_vdevice"(%arg0) {vdevice = "cuda:1"}
// CHECK-NEXT:    %1 = "relax.exp"(%arg0) : {{.*}} -> tensor<2x3xf32, {vdevice = "cuda:0"}>
// CHECK-NEXT:    return %0, %1
func.func @insert_to_vdevice(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32, {vdevice = "cuda:0"}>) {
  %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:1"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "relax.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32, {vdevice = "cuda:0"}>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32, {vdevice = "cuda:0"}>
}

// -----

// CHECK-LABEL: @multi_cpu(
// CHECK:         "relax.to_vdevice"(%{{.*}}) {vdevice = "cpu:1"} : (tensor<2x4xf32, {vdevice = "cpu:0"}>)
// CHECK-LABEL: @multi_gpu(
// CHECK:         "relax.to_vdevice"(%{{.*}}) {vdevice = "cuda:1"} : (tensor<2x4xf32, {vdevice = "cuda:0"}>)
// CHECK:         "relax.to_vdevice"(%{{.*}}) {vdevice = "cuda:2"} : (tensor<2x5xf32, {vdevice = "cuda:1"}>)
// CHECK-LABEL: @cpu_and_gpu(
// CHECK:         "relax.to_vdevice"(%{{.*}}) {vdevice = "cpu:0"} : (tensor<2x4xf32, {vdevice = "cuda:0"}>)
module attributes {relax.vdevices = ["cpu:0", "cpu:1", "cuda:0", "cuda:1", "cuda:2"]} {
  func.func @multi_cpu(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>, %z: tensor<4x5xf32>) -> tensor<2x5xf32> {
    %x0 = "relax.hint_on_device"(%x) {vdevice = "cpu:0"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %0 = "relax.matmul"(%x0, %y) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %1 = "relax.hint_on_device"(%0) {vdevice = "cpu:1"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %2 = "relax.matmul"(%1, %z) : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
    return %2 : tensor<2x5xf32>
  }
  func.func @multi_gpu(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>, %z: tensor<4x5xf32>, %w: tensor<5x6xf32>)
      -> tensor<2x6xf32> {
    %x0 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %0 = "relax.matmul"(%x0, %y) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %1 = "relax.hint_on_device"(%0) {vdevice = "cuda:1"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %2 = "relax.matmul"(%1, %z) : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
    %3 = "relax.hint_on_device"(%2) {vdevice = "cuda:2"} : (tensor<2x5xf32>) -> tensor<2x5xf32>
    %4 = "relax.matmul"(%3, %w) : (tensor<2x5xf32>, tensor<5x6xf32>) -> tensor<2x6xf32>
    return %4 : tensor<2x6xf32>
  }
  func.func @cpu_and_gpu(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>, %z: tensor<4x5xf32>) -> tensor<2x5xf32> {
    %x0 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %0 = "relax.matmul"(%x0, %y) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %1 = "relax.hint_on_device"(%0) {vdevice = "cpu:0"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %2 = "relax.matmul"(%1, %z) : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
    return %2 : tensor<2x5xf32>
  }
}

// -----

// Each element of a tuple has its own device, in arguments, results and calls; TVM leaves parameters that are tuples
// alone.
// CHECK-LABEL: @tuple_params(%arg0: tuple<tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cpu:0"}>>)
// CHECK-SAME:    -> tuple<tensor<4xf32, {vdevice = "cpu:0"}>, tensor<4xf32, {vdevice = "cuda:0"}>>
// CHECK-NEXT:    %0:2 = builtin.unrealized_conversion_cast %arg0
// CHECK-SAME:    : tuple<tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cpu:0"}>> to
// CHECK-SAME:    tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cpu:0"}>
// CHECK-NEXT:    %1 = "relax.exp"(%0#0) : {{.*}} -> tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK-NEXT:    %2 = builtin.unrealized_conversion_cast %0#1, %1
// CHECK-NEXT:    %3 = call @swapped(%2)
// CHECK-NEXT:    return %3
// CHECK-LABEL: @swapped(%arg0: tuple<tensor<4xf32, {vdevice = "cpu:0"}>, tensor<4xf32, {vdevice = "cuda:0"}>>)
func.func @tuple_params(%t: tuple<tensor<4xf32>, tensor<4xf32, {vdevice = "cpu:0"}>>)
    -> tuple<tensor<4xf32, {vdevice = "cpu:0"}>, tensor<4xf32>> {
  %0:2 = builtin.unrealized_conversion_cast %t : tuple<tensor<4xf32>, tensor<4xf32, {vdevice = "cpu:0"}>> to
      tensor<4xf32>, tensor<4xf32, {vdevice = "cpu:0"}>
  %1 = "relax.hint_on_device"(%0#0) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relax.exp"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = builtin.unrealized_conversion_cast %0#1, %2 : tensor<4xf32, {vdevice = "cpu:0"}>, tensor<4xf32> to
      tuple<tensor<4xf32, {vdevice = "cpu:0"}>, tensor<4xf32>>
  %4 = call @swapped(%3) : (tuple<tensor<4xf32, {vdevice = "cpu:0"}>, tensor<4xf32>>)
      -> tuple<tensor<4xf32, {vdevice = "cpu:0"}>, tensor<4xf32>>
  return %4 : tuple<tensor<4xf32, {vdevice = "cpu:0"}>, tensor<4xf32>>
}
func.func private @swapped(%t: tuple<tensor<4xf32, {vdevice = "cpu:0"}>, tensor<4xf32>>)
    -> tuple<tensor<4xf32, {vdevice = "cpu:0"}>, tensor<4xf32>> {
  return %t : tuple<tensor<4xf32, {vdevice = "cpu:0"}>, tensor<4xf32>>
}
