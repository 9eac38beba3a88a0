// RUN: relax-opt %s --relax-set-cuda-target --relax-partition-transforms --relax-describe-entries \
// RUN:   --relax-note-host-tensors --relax-to-linalg --cse --relax-outline-kernels --relax-separate-values \
// RUN:   --relax-add-destinations --relax-bufferize --relax-separate-devices | filecheck %s

// A fill is in no memory: both have one.
// CHECK: func.func @fills(
// CHECK: call @kernel_0(%arg2) {relax.on_host}
// CHECK: call @kernel_0_device(%arg1) :
func.func @fills(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32, {vdevice = "cpu:0"}>) {
  %0 = "relax.full"() {value = 1.0 : f64} : () -> tensor<4xf32>
  %1 = "relax.full"() {value = 1.0 : f64} : () -> tensor<4xf32, {vdevice = "cpu:0"}>
  return %0, %1 : tensor<4xf32>, tensor<4xf32, {vdevice = "cpu:0"}>
}
