// RUN: relax-opt %s --relax-update-vdevice="index=1 to=cuda:1" | filecheck %s
// RUN: relax-opt %s --relax-update-vdevice="index=1 to=cuda:1" --relax-update-vdevice="index=1 to=cuda:1" \
// RUN:   | filecheck %s

// The device in a place of the list is replaced, there and everywhere.
// CHECK:       module attributes {relax.vdevices = ["cpu:0", "cuda:1"]}
// CHECK-NEXT:    func.func @index(%arg0: tensor<4xf32, {vdevice = "cuda:1"}>) -> tensor<4xf32, {vdevice = "cpu:0"}>
// CHECK-NEXT:      "relax.to_vdevice"(%arg0) {vdevice = "cpu:0"}
module attributes {relax.vdevices = ["cpu:0", "cuda:0"]} {
  func.func @index(%x: tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32, {vdevice = "cpu:0"}> {
    %0 = "relax.to_vdevice"(%x) {vdevice = "cpu:0"} : (tensor<4xf32, {vdevice = "cuda:0"}>)
        -> tensor<4xf32, {vdevice = "cpu:0"}>
    return %0 : tensor<4xf32, {vdevice = "cpu:0"}>
  }
}
