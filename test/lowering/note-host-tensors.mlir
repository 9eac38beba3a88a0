// RUN: relax-opt %s --relax-set-cuda-target --relax-partition-transforms \
// RUN:   --relax-describe-entries --relax-note-host-tensors --relax-to-linalg --cse --relax-outline-kernels \
// RUN:   --relax-separate-values --relax-add-destinations --relax-bufferize --relax-separate-devices | filecheck %s

// A copy to the host is a kernel of its own, and what works behind it the host's.
// CHECK: func.func @main(
// CHECK-SAME: relax.host_tensors = array<i64: 1>
// CHECK-NEXT: %[[D:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
// CHECK-NEXT: %[[H:.*]] = memref.alloc() {alignment = 64 : i64, relax.on_host} : memref<4xf32>
// CHECK-NEXT: call @kernel_1_device(%arg0, %[[D]])
// CHECK-NEXT: call @transfer_0(%[[D]], %[[H]])
// CHECK-NEXT: call @kernel_1(%[[H]], %arg1) {relax.on_host}
// CHECK: func.func private @transfer_0({{.*}} relax.device, relax.kernel, relax.transfer = "cpu"}
// CHECK: func.func private @kernel_1_device({{.*}} attributes {relax.device, relax.kernel}
// CHECK: func.func private @kernel_1({{.*}} attributes {relax.kernel}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32, {vdevice = "cpu:0"}> {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.to_vdevice"(%0) {vdevice = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32, {vdevice = "cpu:0"}>
  %2 = "relax.exp"(%1) : (tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32, {vdevice = "cpu:0"}>
  return %2 : tensor<4xf32, {vdevice = "cpu:0"}>
}
