// RUN: relax-opt %s --relax-launch-kernels | filecheck %s

// CHECK: module attributes
// CHECK-SAME: relax.device_code = "gpu.module @device
// CHECK-SAME: relax.device_constants = [{bytes = 16 : i64, symbol = "numbers"}]
// CHECK-SAME: relax.device_kernels = [{name = "store", shared_bytes = 64 : i64, threads = [128, 1, 1]}]
// CHECK-NOT: gpu.module
module attributes {gpu.container_module} {
  gpu.module @device {
    gpu.func @store(%p: !llvm.ptr, %n: index, %v: f32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      gpu.return
    }
  }

  // CHECK: memref.global "public" constant @numbers
  memref.global "private" constant @numbers : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>

  // Parameters are an array of pointers to values of 8 bytes.

  // CHECK: func.func private @kernel(%{{.*}}: memref<?xf32>, %[[DRIVER:.*]]: !llvm.ptr) -> i64
  // CHECK: memref.alloca() {{.*}} : memref<3xi64>
  // CHECK: memref.alloca() {{.*}} : memref<3xi64>
  // CHECK: %[[FAILED:.*]] = call @relaxir_cuda_launch(%[[DRIVER]], {{.*}})
  // CHECK: arith.cmpi eq, %[[FAILED]]
  // CHECK: call @relax_check(
  // CHECK: return %{{.*}} : i64
  func.func private @kernel(%x: memref<?xf32>) attributes {relax.device, relax.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %bytes = arith.constant 64 : i32
    %v = arith.constant 1.0 : f32
    %n = memref.dim %x, %c0 : memref<?xf32>
    %i = memref.extract_aligned_pointer_as_index %x : memref<?xf32> -> index
    %a = arith.index_cast %i : index to i64
    %p = llvm.inttoptr %a : i64 to !llvm.ptr
    gpu.launch_func @device::@store blocks in (%n, %c1, %c1) threads in (%c128, %c1, %c1)
        dynamic_shared_memory_size %bytes args(%p : !llvm.ptr, %n : index, %v : f32)
    return
  }

  // CHECK: func.func @main(%{{.*}}: memref<?xf32>, %[[DRIVER:.*]]: !llvm.ptr) -> i64
  // CHECK: call @relaxir_cuda_constant(%[[DRIVER]],
  // CHECK: %[[STATUS:.*]] = call @kernel(%{{.*}}, %[[DRIVER]])
  // CHECK: %[[NUMBER:.*]] = arith.subi %{{.*}}, %[[STATUS]]
  // CHECK: %[[GOOD:.*]] = arith.cmpi eq, %[[STATUS]]
  // CHECK: call @relax_check(%[[GOOD]], %[[NUMBER]])
  // CHECK: call @relaxir_cuda_read(%[[DRIVER]],
  // CHECK: memref.load %{{.*}} : memref<f32>
  // CHECK: call @relaxir_cuda_allocate(%[[DRIVER]],
  // CHECK: call @relaxir_cuda_free(%[[DRIVER]],
  // CHECK: memref.reinterpret_cast {{.*}} sizes: [%[[N:.*]], 3, %{{.*}}], strides: [%{{.*}}, %{{.*}}, 1]
  func.func @main(%x: memref<?xf32>) -> i64 attributes {relax.device, relax.entry = {checks = [], inputs = [],
      memory = [], name = "main", outputs = [], safe = 0 : i64, sizes = [], state = [], step = false,
      symbol = "relaxir_main", symbols = [], updates = [], weights = []}} {
    %c0 = arith.constant 0 : index
    %done = arith.constant 0 : i64
    %constant = memref.get_global @numbers : memref<4xf32>
    %cast = memref.cast %constant : memref<4xf32> to memref<?xf32>
    call @kernel(%cast) : (memref<?xf32>) -> ()
    %v = memref.load %x[%c0] : memref<?xf32>
    %n = arith.fptosi %v : f32 to i64
    %size = arith.index_cast %n : i64 to index
    %more = memref.alloc(%size) : memref<?xf32>
    call @kernel(%more) : (memref<?xf32>) -> ()
    memref.dealloc %more : memref<?xf32>
    %table = memref.alloc(%size, %size) : memref<?x3x?xf32>
    memref.dealloc %table : memref<?x3x?xf32>
    return %done : i64
  }
}
