// RUN: relax-opt %s --split-input-file --relax-realize-vdevice | filecheck %s
// RUN: relax-opt %s --split-input-file --relax-realize-vdevice --relax-realize-vdevice | filecheck %s

// A hint's result fixes a device, which spreads backwards and forwards; its operand is taken to be there already.
// CHECK-LABEL: @spreads(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>, %arg1: tensor<4xf32, {vdevice = "cuda:0"}>)
// CHECK-SAME: -> tensor<4xf32, {vdevice = "cuda:0"}>
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
// CHECK-LABEL: @control(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>, %arg1: tensor<4xf32, {vdevice = "cuda:0"}>,
// CHECK-SAME: %arg2: tensor<i1>)
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
// CHECK-DAG:     %[[A:.*]] = "relax.constant"() {value = dense<1.0{{.*}} -> tensor<f32, {vdevice = "cpu:0"}>
// CHECK-DAG:     %[[B:.*]] = "relax.constant"() {value = dense<1.0{{.*}} -> tensor<f32, {vdevice = "cuda:0"}>
// CHECK:         "relax.add"(%arg0, %[[A]])
// CHECK:         "relax.add"(%arg1, %[[B]])
func.func @constants(%x: tensor<4xf32, {vdevice = "cpu:0"}>, %y: tensor<4xf32, {vdevice = "cuda:0"}>)
    -> (tensor<4xf32, {vdevice = "cpu:0"}>, tensor<4xf32, {vdevice = "cuda:0"}>) {
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

// -----

// One copy per device however many hints, after the definition: it serves all regions.
// CHECK-LABEL: @once_per_device(%arg0: tensor<4xf32, {vdevice = "cpu:0"}>
// CHECK-NEXT:    %0 = "relax.to_vdevice"(%arg0) {vdevice = "cuda:0"}
// CHECK-NEXT:    %1 = "relax.to_vdevice"(%arg0) {vdevice = "cuda:1"}
// CHECK-NEXT:    %2 = "relax.exp"(%arg0)
// CHECK-NEXT:    %3 = "relax.to_vdevice"(%2) {vdevice = "cuda:0"}
// CHECK-NEXT:    scf.if %arg1
// CHECK-NEXT:      "relax.add"(%0, %3)
// CHECK:         } else {
// CHECK-NEXT:      "relax.exp"(%0)
// CHECK:         return %{{.*}}, %1
func.func @once_per_device(%x: tensor<4xf32, {vdevice = "cpu:0"}>, %c: i1) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "relax.exp"(%x) : (tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32>
  %1 = scf.if %c -> tensor<4xf32> {
    %a = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32>
    %b = "relax.hint_on_device"(%0) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
    %s = "relax.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  } else {
    %a = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32>
    %e = "relax.exp"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  }
  %2 = "relax.hint_on_device"(%x) {vdevice = "cuda:1"} : (tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Copies of what one op returns, of a loop's argument, and of a copy.
// CHECK-LABEL: @definitions(
// CHECK:         %[[S:.*]]:2 = "relax.split"(%arg0)
// CHECK-NEXT:    %[[A:.*]] = "relax.to_vdevice"(%[[S]]#1) {vdevice = "cuda:0"}
// CHECK-NEXT:    %[[B:.*]] = "relax.to_vdevice"(%[[A]]) {vdevice = "cuda:1"}
// CHECK:         scf.for {{.*}} iter_args(%[[L:.*]] = %[[S]]#0)
// CHECK-NEXT:      %[[C:.*]] = "relax.to_vdevice"(%[[L]]) {vdevice = "cuda:1"}
// CHECK-NEXT:      %[[D:.*]] = "relax.add"(%[[C]], %[[B]])
// CHECK-NEXT:      %[[E:.*]] = "relax.to_vdevice"(%[[D]]) {vdevice = "cpu:0"}
// CHECK-NEXT:      scf.yield %[[E]]
func.func @definitions(%x: tensor<8xf32, {vdevice = "cpu:0"}>, %n: index) -> tensor<4xf32> {
  %0:2 = "relax.split"(%x) {sections = 2 : i64} : (tensor<8xf32, {vdevice = "cpu:0"}>) -> (tensor<4xf32>, tensor<4xf32>)
  %a = "relax.hint_on_device"(%0#1) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %b = "relax.hint_on_device"(%a) {vdevice = "cuda:1"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = scf.for %i = %n to %n step %n iter_args(%l = %0#0) -> (tensor<4xf32>) {
    %c = "relax.hint_on_device"(%l) {vdevice = "cuda:1"} : (tensor<4xf32>) -> tensor<4xf32>
    %d = "relax.add"(%c, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %e = "relax.hint_on_device"(%d) {vdevice = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

// -----

// Counters, conditions and sizes are on no device, whatever the tensors that they control are on; a loop may carry
// both.
// CHECK-LABEL: @host(%arg0: tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>, %arg1: tensor<i64>)
// CHECK:         "relax.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
// CHECK:         scf.while {{.*}} : (tensor<i64>, tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>)
// CHECK-SAME:      -> (tensor<i64>, tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>)
// CHECK:           "relax.greater"({{.*}}) : (tensor<i64>, tensor<i64>) -> tensor<i1>
// CHECK:           tensor.extract {{.*}} : tensor<i1>
// CHECK:           "relax.subtract"({{.*}}) : (tensor<i64>, tensor<i64>) -> tensor<i64>
func.func @host(%x: tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>, %count: tensor<i64>)
    -> tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}> {
  %one = "relax.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %0:2 = scf.while (%k = %count, %a = %x) : (tensor<i64>, tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>)
      -> (tensor<i64>, tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>) {
    %more = "relax.greater"(%k, %one) : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %flag = tensor.extract %more[] : tensor<i1>
    scf.condition(%flag) %k, %a : tensor<i64>, tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>
  } do {
  ^bb0(%k: tensor<i64>, %a: tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>):
    %less = "relax.subtract"(%k, %one) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %e = "relax.exp"(%a) : (tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>)
        -> tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>
    scf.yield %less, %e : tensor<i64>, tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>
  }
  return %0#1 : tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>
}

// -----

// The ways through scf.index_switch and through blocks.
// CHECK-LABEL: @switch(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>, %arg1: tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK-LABEL: @blocks(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>, %arg1: tensor<4xf32, {vdevice = "cpu:0"}>,
// CHECK-SAME: %arg2: i1)
// CHECK-SAME:    -> (tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cpu:0"}>)
func.func @switch(%x: tensor<4xf32>, %y: tensor<4xf32>, %i: index) -> tensor<4xf32> {
  %0 = scf.index_switch %i -> tensor<4xf32>
  case 2 {
    scf.yield %x : tensor<4xf32>
  }
  default {
    scf.yield %y : tensor<4xf32>
  }
  %1 = "relax.hint_on_device"(%0) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func @blocks(%x: tensor<4xf32>, %y: tensor<4xf32>, %c: i1) -> (tensor<4xf32>, tensor<4xf32>) {
  cf.cond_br %c, ^a(%x, %y : tensor<4xf32>, tensor<4xf32>), ^b(%y : tensor<4xf32>)
^a(%p: tensor<4xf32>, %q: tensor<4xf32>):
  cf.br ^b(%q : tensor<4xf32>)
^b(%r: tensor<4xf32>):
  %0 = "relax.hint_on_device"(%r) {vdevice = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A constant of MLIR's own has no device in its type: one of ours takes its place.
// CHECK-LABEL: @upstream_constant(
// CHECK:         %[[C:.*]] = "relax.constant"() {value = dense<2.000000e+00> : tensor<4xf32>} : ()
// CHECK-SAME:      -> tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK:         "relax.add"(%arg0, %[[C]])
func.func @upstream_constant(%x: tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32, {vdevice = "cuda:0"}> {
  %c = arith.constant dense<2.0> : tensor<4xf32>
  %0 = "relax.add"(%x, %c) : (tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32>) -> tensor<4xf32, {vdevice = "cuda:0"}>
  return %0 : tensor<4xf32, {vdevice = "cuda:0"}>
}

// -----

// A tensor of scalars is on no device: it is made on each that reads it, as constants are.
// CHECK-LABEL: @tensor_of_scalars(
// CHECK:         %[[A:.*]] = tensor.from_elements %{{.*}} : tensor<1xi64, {vdevice = "cpu:0"}>
// CHECK:         %[[B:.*]] = tensor.from_elements %{{.*}} : tensor<1xi64, {vdevice = "cuda:0"}>
// CHECK:         "relax.take"(%arg0, %[[A]])
// CHECK:         "relax.take"(%arg1, %[[B]])
func.func @tensor_of_scalars(%x: tensor<4xf32, {vdevice = "cpu:0"}>, %y: tensor<4xf32, {vdevice = "cuda:0"}>, %i: i64)
    -> (tensor<1xf32>, tensor<1xf32>) {
  %p = tensor.from_elements %i : tensor<1xi64>
  %0 = "relax.take"(%x, %p) : (tensor<4xf32, {vdevice = "cpu:0"}>, tensor<1xi64>) -> tensor<1xf32>
  %1 = "relax.take"(%y, %p) : (tensor<4xf32, {vdevice = "cuda:0"}>, tensor<1xi64>) -> tensor<1xf32>
  return %0, %1 : tensor<1xf32>, tensor<1xf32>
}
