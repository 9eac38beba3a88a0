// RUN: relax-opt %s --split-input-file --relax-realize-vdevice | filecheck %s
// RUN: relax-opt %s --split-input-file --relax-realize-vdevice --relax-realize-vdevice | filecheck %s

// A hint's result fixes a device, which spreads backwards and forwards; its operand is taken to be there already.
// CHECK-LABEL: @spreads(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>, %arg1: tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK-NEXT:    %0 = "relax.add"(%arg0, %arg1) : {{.*}} -> tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK-NEXT:    %1 = "relax.exp"(%0)
// CHECK-NEXT:    return %1
func.func @spreads(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.add"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.hint_on_device"(%0) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relax.exp"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// What types say is stronger than what a hint's operand suggests: a copy where they differ, nothing where they agree.
// CHECK-LABEL: @copies(%arg0: tensor<4xf32, {vdevice = "cpu:0"}>, %arg1: tensor<4xf32, {vdevice = "cuda:0"}>)
// CHECK-NEXT:    %0 = "relax.to_vdevice"(%arg0) {vdevice = "cuda:0"}
// CHECK-NEXT:    %1 = "relax.add"(%0, %arg1)
// CHECK-NEXT:    return %1
func.func @copies(%x: tensor<4xf32, {vdevice = "cpu:0"}>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32>
  %1 = "relax.hint_on_device"(%y) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relax.add"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// A result type places the value returned.
// CHECK-LABEL: @result(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>)
func.func @result(%x: tensor<4xf32>) -> tensor<4xf32, {vdevice = "cuda:0"}> {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32, {vdevice = "cuda:0"}>
  return %0 : tensor<4xf32, {vdevice = "cuda:0"}>
}

// -----

// A value hinted to two devices is on the first one and copied to the second.
// CHECK-LABEL: @two_hints(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>)
// CHECK-NEXT:    %0 = "relax.to_vdevice"(%arg0) {vdevice = "cuda:1"}
// CHECK-NEXT:    return %arg0, %0
func.func @two_hints(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.hint_on_device"(%x) {vdevice = "cuda:1"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Through calls: parameters and results of private functions and of declarations.
// CHECK-LABEL: @calls(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32>
// CHECK-NEXT:    %0 = call @f(%arg0) : (tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK-NEXT:    %1 = call @declared(%0) : (tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32>
// CHECK:       @f(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK:       @declared(tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32>
func.func @calls(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @declared(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @declared(tensor<4xf32>) -> tensor<4xf32>

// -----

// Through branches and loops; a scalar condition has no device.
// CHECK-LABEL: @control(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>, %arg1: tensor<4xf32, {vdevice = "cuda:0"}>, %arg2: tensor<i1>)
// CHECK:         tensor.extract %arg2[] : tensor<i1>
// CHECK:         scf.if %{{.*}} -> (tensor<4xf32, {vdevice = "cuda:0"}>)
// CHECK:         scf.for {{.*}} -> (tensor<4xf32, {vdevice = "cuda:0"}>)
// CHECK:         scf.while {{.*}} : (tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32, {vdevice = "cuda:0"}>
func.func @control(%x: tensor<4xf32>, %y: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %flag = tensor.extract %c[] : tensor<i1>
  %0 = scf.if %flag -> tensor<4xf32> {
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %y : tensor<4xf32>
  }
  %1 = scf.for %i = %i0 to %i1 step %i1 iter_args(%a = %0) -> (tensor<4xf32>) {
    scf.yield %a : tensor<4xf32>
  }
  %2 = scf.while (%a = %1) : (tensor<4xf32>) -> tensor<4xf32> {
    scf.condition(%flag) %a : tensor<4xf32>
  } do {
  ^bb0(%a: tensor<4xf32>):
    scf.yield %a : tensor<4xf32>
  }
  %3 = "relax.hint_on_device"(%2) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// -----

// A constant that two devices need is there once per device; the branches of one that none needs stay as they are.
// CHECK-LABEL: @constants
// CHECK-DAG:     %[[A:.*]] = "relax.constant"() {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32, {vdevice = "cpu:0"}>
// CHECK-DAG:     %[[B:.*]] = "relax.constant"() {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32, {vdevice = "cuda:0"}>
// CHECK:         "relax.add"(%arg0, %[[A]])
// CHECK:         "relax.add"(%arg1, %[[B]])
func.func @constants(%x: tensor<4xf32, {vdevice = "cpu:0"}>, %y: tensor<4xf32, {vdevice = "cuda:0"}>) -> (tensor<4xf32, {vdevice = "cpu:0"}>, tensor<4xf32, {vdevice = "cuda:0"}>) {
  %c = "relax.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relax.add"(%x, %c) : (tensor<4xf32, {vdevice = "cpu:0"}>, tensor<f32>) -> tensor<4xf32, {vdevice = "cpu:0"}>
  %1 = "relax.add"(%y, %c) : (tensor<4xf32, {vdevice = "cuda:0"}>, tensor<f32>) -> tensor<4xf32, {vdevice = "cuda:0"}>
  return %0, %1 : tensor<4xf32, {vdevice = "cpu:0"}>, tensor<4xf32, {vdevice = "cuda:0"}>
}

// -----

// Without hints and placed types nothing changes.
// CHECK-LABEL: @nothing(%arg0: tensor<4xf32>) -> tensor<4xf32>
func.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
