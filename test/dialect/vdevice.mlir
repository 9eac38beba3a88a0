// RUN: relax-opt %s | relax-opt | filecheck %s

// CHECK-LABEL: func.func @hint_on_device(
// CHECK: "relax.hint_on_device"(%{{.*}}) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
func.func @hint_on_device(%x: tensor<4xf32>) {
  %0 = "relax.hint_on_device"(%x) {vdevice = "cuda:0"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @to_vdevice(
// CHECK: "relax.to_vdevice"(%{{.*}}) {vdevice = "cuda:0"} : (tensor<?xf32, {sym = ["n"], vdevice = "cpu:0"}>)
// CHECK-SAME: -> tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>
func.func @to_vdevice(%x: tensor<?xf32, {sym = ["n"], vdevice = "cpu:0"}>) {
  %0 = "relax.to_vdevice"(%x) {vdevice = "cuda:0"} : (tensor<?xf32, {sym = ["n"], vdevice = "cpu:0"}>)
      -> tensor<?xf32, {sym = ["n"], vdevice = "cuda:0"}>
  return
}
