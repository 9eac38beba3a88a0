// RUN: relax-opt %s --relax-check-device-accesses | filecheck %s

// A load is read where its bytes are inside of its buffer; else the first such access leaves its number.

// CHECK: relax.device_accesses = ["{{.*}}relax.exp: memref.load of memref<4xf32>"]
// CHECK: gpu.func @kernel_0(%[[P:.*]]: !llvm.ptr, %[[I:.*]]: index, %[[WORD:.*]]: !llvm.ptr)
// CHECK: %[[X:.*]] = memref.reinterpret_cast
// CHECK: arith.ori
// CHECK: scf.if %{{.*}} -> (f32) {
// CHECK:   memref.load %[[X]][%[[I]]]
// CHECK: } else {
// CHECK:   llvm.cmpxchg %[[WORD]], %{{.*}}, %{{.*}} monotonic monotonic
// CHECK: func.func @main(
// CHECK: %[[W:.*]] = call @relax_cuda_status() : () -> !llvm.ptr
// CHECK: gpu.launch_func @device::@kernel_0
// CHECK-SAME: %[[W]] : !llvm.ptr
module attributes {gpu.container_module} {
gpu.module @device {
  gpu.func @kernel_0(%p: !llvm.ptr, %i: index) kernel attributes {relax.ops = ["relax.exp"]} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %0 = llvm.mlir.poison : !llvm.struct<(ptr, ptr, i64)>
    %1 = llvm.insertvalue %p, %0[0] : !llvm.struct<(ptr, ptr, i64)>
    %2 = llvm.insertvalue %p, %1[1] : !llvm.struct<(ptr, ptr, i64)>
    %3 = llvm.insertvalue %zero, %2[2] : !llvm.struct<(ptr, ptr, i64)>
    %4 = builtin.unrealized_conversion_cast %3 : !llvm.struct<(ptr, ptr, i64)> to memref<f32>
    %x = memref.reinterpret_cast %4 to offset: [0], sizes: [4], strides: [1] : memref<f32> to memref<4xf32>
    %v = memref.load %x[%i] : memref<4xf32>
    gpu.return
  }
}
func.func @main(%p: !llvm.ptr, %i: index) {
  %c1 = arith.constant 1 : index
  gpu.launch_func @device::@kernel_0 blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%p : !llvm.ptr, %i : index)
  return
}
}
