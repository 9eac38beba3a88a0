// RUN: relax-opt %s --split-input-file --relax-realize-vdevice | filecheck %s
// RUN: relax-opt %s --split-input-file --relax-realize-vdevice --relax-realize-vdevice | filecheck %s

// A private function is there once per placement; calls that want the same one share it, and constants go with it.
// CHECK-LABEL: @per_placement(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>, %arg1: tensor<4xf32, {vdevice = "cuda:1"}>,
// CHECK-SAME: %arg2: tensor<4xf32>)
// CHECK-NEXT:    %[[A:.*]] = call @twice(%arg0) : (tensor<4xf32, {vdevice = "cuda:0"}>)
// CHECK-SAME:    -> tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK-NEXT:    %[[B:.*]] = call @twice_1(%arg1) : (tensor<4xf32, {vdevice = "cuda:1"}>)
// CHECK-SAME:    -> tensor<4xf32, {vdevice = "cuda:1"}>
// CHECK-NEXT:    %[[C:.*]] = call @twice(%[[A]]) : (tensor<4xf32, {vdevice = "cuda:0"}>)
// CHECK-NEXT:    %[[D:.*]] = call @twice_2(%arg2) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    return %[[C]], %[[B]], %[[D]]
// CHECK-LABEL: @twice(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>)
// CHECK:         call @once(%arg0)
// CHECK-LABEL: @twice_1(%arg0: tensor<4xf32, {vdevice = "cuda:1"}>)
// CHECK:         call @once_1(%arg0)
// CHECK-LABEL: @twice_2(%arg0: tensor<4xf32>)
// CHECK:         call @once_2(%arg0)
// CHECK-LABEL: @once(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>)
// CHECK:         "relax.add"(%arg0, %{{.*}}) : (tensor<4xf32, {vdevice = "cuda:0"}>, tensor<f32, {vdevice = "cuda:0"}>)
// CHECK-LABEL: @once_1(%arg0: tensor<4xf32, {vdevice = "cuda:1"}>)
// CHECK:         "relax.add"(%arg0, %{{.*}}) : (tensor<4xf32, {vdevice = "cuda:1"}>, tensor<f32, {vdevice = "cuda:1"}>)
// CHECK-LABEL: @once_2(%arg0: tensor<4xf32>)
// CHECK:         "relax.add"(%arg0, %{{.*}}) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
func.func @per_placement(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %x0 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %y1 = "relax.hint_on_device"(%y) {vdevice = "cuda:1"} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = call @twice(%x0) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @twice(%y1) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = call @twice(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = call @twice(%z) : (tensor<4xf32>) -> tensor<4xf32>
  return %2, %1, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @once(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @once(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @once(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = "relax.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relax.add"(%x, %c) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// What a private function hints about its argument is a suggestion for each caller: one has the value elsewhere.
// CHECK-LABEL: @suggests(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>, %arg1: tensor<4xf32, {vdevice = "cpu:0"}>)
// CHECK-NEXT:    call @hinted(%arg0)
// CHECK-NEXT:    call @hinted_1(%arg1)
// CHECK-LABEL: @hinted(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>)
// CHECK-NEXT:    return %arg0
// CHECK-LABEL: @hinted_1(%arg0: tensor<4xf32, {vdevice = "cpu:0"}>)
// CHECK-NEXT:    %0 = "relax.to_vdevice"(%arg0) {vdevice = "cuda:0"}
// CHECK-NEXT:    return %0
func.func @suggests(%x: tensor<4xf32>, %y: tensor<4xf32, {vdevice = "cpu:0"}>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = call @hinted(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %y1 = "relax.hint_on_device"(%y) {vdevice = "cpu:0"} : (tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32>
  %1 = call @hinted(%y1) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func private @hinted(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Several results, each on its own device; a result that is the argument is where the argument is.
// CHECK-LABEL: @results(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>)
// CHECK-SAME:    -> (tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cpu:0"}>, tensor<f32>)
// CHECK:         call @several
func.func @results(%x: tensor<4xf32, {vdevice = "cuda:0"}>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>) {
  %h = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32>
  %0:3 = call @several(%h) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>)
  return %0#0, %0#1, %0#2 : tensor<4xf32>, tensor<4xf32>, tensor<f32>
}
func.func private @several(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>) {
  %0 = "relax.hint_on_device"(%x) {vdevice = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = "relax.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  return %x, %0, %c : tensor<4xf32>, tensor<4xf32>, tensor<f32>
}

// -----

// What calls itself has one placement, and so does what an attribute names and what is declared.
// CHECK-LABEL: @recursive(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK-LABEL: @down(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>, %arg1: i1) -> tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK:         func.call @down(%arg0, %arg1) : (tensor<4xf32, {vdevice = "cuda:0"}>, i1)
// CHECK-SAME:      -> tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK-LABEL: @never_called(%arg0: tensor<4xf32, {vdevice = "cuda:1"}>) -> tensor<4xf32, {vdevice = "cuda:1"}>
func.func @recursive(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @down(%0, %c) : (tensor<4xf32>, i1) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @down(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %0 = scf.if %c -> tensor<4xf32> {
    %1 = func.call @down(%x, %c) : (tensor<4xf32>, i1) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
func.func private @never_called(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:1"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Prepared weights are where the transform function returns them, lifted before or lazily handed over.
// CHECK-LABEL: @main(%arg0: tensor<4xf32, {vdevice = "cuda:0"}>, %arg1: tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK-SAME: {relax.name = "w.exp"})
// CHECK-LABEL: @lazy(%arg0: !relax.param_provider) -> tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK-NEXT:    "relax.get_param"(%arg0) {{.*}} -> tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK-LABEL: @prepare_lazily(
// CHECK:         "relax.set_output"(%arg0, %{{.*}}) {{.*}} : (!relax.output_sink, tensor<4xf32, {vdevice = "cuda:0"}>)
func.func @main_transform_params(%w: tensor<4xf32> {relax.name = "w"}) -> (tensor<4xf32> {relax.name = "w.exp"})
    attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.hint_on_device"(%0) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "w.exp"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.add"(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @lazy(%p: !relax.param_provider) -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.get_param"(%p) {index = 0 : i64, name = "w.exp"} : (!relax.param_provider) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @prepare_lazily(%s: !relax.output_sink, %w: tensor<4xf32> {relax.name = "w"})
    attributes {relax.num_input = 1 : i64, relax.transform_for = @lazy} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.hint_on_device"(%0) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  "relax.set_output"(%s, %1) {index = 0 : i64, name = "w.exp"} : (!relax.output_sink, tensor<4xf32>) -> ()
  return
}
