// RUN: relax-opt %s --split-input-file --relax-update-vdevice="from=cuda:0 to=cuda:1" | filecheck %s
// RUN: relax-opt %s --split-input-file --relax-update-vdevice="from=cuda:0 to=cuda:1" \
// RUN:     --relax-update-vdevice="from=cuda:0 to=cuda:1" | filecheck %s

// TVM's update_vdevice: one device is replaced everywhere: in the list, types, hints and copies.
// CHECK:       module attributes {relax.vdevices = ["cpu:0", "cuda:1"]}
// CHECK-LABEL: @update_vdevice(%arg0: tensor<?xf32, {sym = ["n"], vdevice = "cuda:1"}>,
// CHECK-SAME: %arg1: tensor<4xf32, {vdevice = "cpu:0"}>, %arg2: index)
// CHECK-SAME:    -> (tensor<?xf32, {sym = ["n"], vdevice = "cuda:1"}>, tensor<4xf32, {vdevice = "cuda:1"}>)
// CHECK-NEXT:    %0 = "relax.hint_on_device"(%arg0) {vdevice = "cuda:1"}
// CHECK-NEXT:    %1 = "relax.to_vdevice"(%arg1) {vdevice = "cuda:1"} : (tensor<4xf32, {vdevice = "cpu:0"}>)
// CHECK-SAME:    -> tensor<4xf32, {vdevice = "cuda:1"}>
// CHECK-NEXT:    %2 = call @declared(%1) : (tensor<4xf32, {vdevice = "cuda:1"}>) -> tensor<4xf32, {vdevice = "cuda:1"}>
// CHECK-NEXT:    scf.for {{.*}} -> (tensor<4xf32, {vdevice = "cuda:1"}>)
// CHECK:       @declared(tensor<4xf32, {vdevice = "cuda:1"}>) -> tensor<4xf32, {vdevice = "cuda:1"}>
// CHECK-NOT:   cuda:0
module attributes {relax.vdevices = ["cpu:0", "cuda:0"]} {
  func.func @update_vdevice(%x: tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>,
      %y: tensor<4xf32, {vdevice = "cpu:0"}>, %a: index)
      -> (tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cuda:0"}>) {
    %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>)
        -> tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>
    %1 = "relax.to_vdevice"(%y) {vdevice = "cuda:0"} : (tensor<4xf32, {vdevice = "cpu:0"}>)
        -> tensor<4xf32, {vdevice = "cuda:0"}>
    %2 = call @declared(%1) : (tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32, {vdevice = "cuda:0"}>
    %3 = scf.for %i = %a to %a step %a iter_args(%b = %2) -> (tensor<4xf32, {vdevice = "cuda:0"}>) {
      scf.yield %b : tensor<4xf32, {vdevice = "cuda:0"}>
    }
    return %0, %3 : tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cuda:0"}>
  }
  func.func private @declared(tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32, {vdevice = "cuda:0"}>
}

// -----

// Two devices become one: the list has it once, copies between them vanish, others stay.
// CHECK:       module attributes {relax.vdevices = ["cpu:0", "cuda:1"]}
// CHECK-LABEL: @merge(
// CHECK-NEXT:    %0 = "relax.to_vdevice"(%arg0) {vdevice = "cuda:1"}
// CHECK-NEXT:    %1 = "relax.add"(%0, %arg1)
// CHECK-NEXT:    return %1
module attributes {relax.vdevices = ["cpu:0", "cuda:0", "cuda:1"]} {
  func.func @merge(%x: tensor<4xf32, {vdevice = "cpu:0"}>, %y: tensor<4xf32, {vdevice = "cuda:1"}>)
      -> tensor<4xf32, {vdevice = "cuda:0"}> {
    %0 = "relax.to_vdevice"(%x) {vdevice = "cuda:0"} : (tensor<4xf32, {vdevice = "cpu:0"}>)
        -> tensor<4xf32, {vdevice = "cuda:0"}>
    %1 = "relax.to_vdevice"(%y) {vdevice = "cuda:0"} : (tensor<4xf32, {vdevice = "cuda:1"}>)
        -> tensor<4xf32, {vdevice = "cuda:0"}>
    %2 = "relax.add"(%0, %1) : (tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cuda:0"}>)
        -> tensor<4xf32, {vdevice = "cuda:0"}>
    return %2 : tensor<4xf32, {vdevice = "cuda:0"}>
  }
}

// -----

// CHECK-LABEL: @tuple(%arg0: tuple<tensor<4xf32, {vdevice = "cuda:1"}>, tensor<4xf32>>)
// CHECK-SAME: -> tensor<4xf32, {vdevice = "cuda:1"}>
// CHECK-NEXT:    builtin.unrealized_conversion_cast %arg0 : tuple<tensor<4xf32, {vdevice = "cuda:1"}>, tensor<4xf32>>
module attributes {relax.vdevices = ["cpu:0", "cuda:0"]} {
  func.func @tuple(%t: tuple<tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32>>)
      -> tensor<4xf32, {vdevice = "cuda:0"}> {
    %0:2 = builtin.unrealized_conversion_cast %t : tuple<tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32>> to
        tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32>
    return %0#0 : tensor<4xf32, {vdevice = "cuda:0"}>
  }
}
