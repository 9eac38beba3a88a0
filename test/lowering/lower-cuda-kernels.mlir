// RUN: relax-opt %s --relax-lower-cuda-kernels | filecheck %s
// RUN: relax-opt %s --relax-lower-cuda-kernels --relax-lower-cuda-kernels=all=true | filecheck %s --check-prefix=ALL

// The general path, as no template sums f64. An operation has a thread per element of its results, which sums what it
// has to.

// CHECK: gpu.func @rows(%{{.*}}: !llvm.ptr, %{{.*}}: index, %{{.*}}: !llvm.ptr, %{{.*}}: index) kernel
// CHECK: scf.if
// CHECK-NEXT: memref.load
// CHECK-NEXT: scf.for {{.*}} iter_args
// CHECK-NEXT: memref.load
// CHECK-NEXT: arith.addf
// CHECK-NEXT: scf.yield
// CHECK: memref.store

// Independent iterations are blocks; what they work in is shared memory, and threads wait for each other.

// CHECK: gpu.func @blocks(
// CHECK: gpu.dynamic_shared_memory
// CHECK: memref.store
// CHECK: gpu.barrier
// CHECK: memref.store
// CHECK: gpu.barrier

// Loops that carry something else than sums are one block, and one thread's where nothing reads what they give.

// CHECK: gpu.func @scan(
// CHECK: scf.if
// CHECK-NEXT: scf.for
// CHECK-NEXT: memref.load
// CHECK-NEXT: arith.subf
// CHECK-NEXT: memref.store
// CHECK-NEXT: scf.yield
// CHECK: gpu.barrier
// CHECK: gpu.func @last(
// CHECK: scf.for
// CHECK-NEXT: memref.load
// CHECK-NEXT: gpu.barrier

// CHECK: func.func private @rows(
// CHECK: gpu.launch_func @device::@rows blocks in
// CHECK: func.func private @blocks(
// CHECK: gpu.launch_func @device::@blocks blocks in (%{{.*}}, %{{.*}}, %{{.*}}) threads in
// CHECK-SAME: dynamic_shared_memory_size

// Much to little is reduced by blocks that each have a part, which another launch combines with what the result
// begins with.

// CHECK: func.func private @least(
// CHECK: %[[PARTS:.*]] = memref.alloc(%{{.*}}) : memref<?xi64>
// CHECK: gpu.launch_func @device::@least blocks in (%c16, %{{.*}}, %{{.*}}) threads in (%c256
// CHECK: gpu.launch_func @device::@least_1 blocks in (%c1{{.*}}, %{{.*}}, %{{.*}}) threads in (%c256

// Entries follow when there are all of their buffers.

// CHECK: func.func @main(
// CHECK: memref.store
// ALL: func.func @main(
// ALL: gpu.launch_func @device::@main
// ALL-NEXT: return

module attributes {relax.cuda_target = "cuda:sm_80"} {
  func.func private @rows(%x: memref<?x4xf64>, %y: memref<?xf64>) attributes {relax.device, relax.kernel} {
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                    iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<?x4xf64>) outs(%y : memref<?xf64>) {
    ^bb0(%a: f64, %sum: f64):
      %0 = arith.addf %sum, %a : f64
      linalg.yield %0 : f64
    }
    return
  }
  func.func private @blocks(%x: memref<8x4xf32>, %y: memref<8x4xf32>) attributes {relax.device, relax.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    scf.for %i = %c0 to %c8 step %c1 {
      %row = memref.alloc() : memref<4xf32>
      %from = memref.subview %x[%i, 0] [1, 4] [1, 1] : memref<8x4xf32> to memref<4xf32, strided<[1], offset: ?>>
      %to = memref.subview %y[%i, 0] [1, 4] [1, 1] : memref<8x4xf32> to memref<4xf32, strided<[1], offset: ?>>
      memref.copy %from, %row : memref<4xf32, strided<[1], offset: ?>> to memref<4xf32>
      memref.copy %row, %to : memref<4xf32> to memref<4xf32, strided<[1], offset: ?>>
    } {relax.shared = array<i64: 0, 0>}
    return
  }
  func.func private @scan(%x: memref<4xf32>, %y: memref<4xf32>) attributes {relax.device, relax.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %one = arith.constant 1.0 : f32
    %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%product = %one) -> (f32) {
      %a = memref.load %x[%i] : memref<4xf32>
      %next = arith.subf %product, %a : f32
      memref.store %next, %y[%i] : memref<4xf32>
      scf.yield %next : f32
    }
    return
  }
  func.func private @last(%x: memref<4xf32>, %y: memref<f32>) attributes {relax.device, relax.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %one = arith.constant 1.0 : f32
    %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%product = %one) -> (f32) {
      %a = memref.load %x[%i] : memref<4xf32>
      %next = arith.subf %product, %a : f32
      scf.yield %next : f32
    }
    memref.store %last, %y[] : memref<f32>
    return
  }
  func.func private @least(%x: memref<128x384xi64>, %scale: memref<384xi64>, %y: memref<i64>)
      attributes {relax.device, relax.kernel} {
    %most = arith.constant 9223372036854775807 : i64
    linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
        ins(%most : i64) outs(%y : memref<i64>) {
    ^bb0(%a: i64, %b: i64):
      linalg.yield %a : i64
    }
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> ()>],
                    iterator_types = ["reduction", "reduction"]}
        ins(%x, %scale : memref<128x384xi64>, memref<384xi64>) outs(%y : memref<i64>) {
    ^bb0(%a: i64, %b: i64, %least: i64):
      %0 = arith.muli %a, %b : i64
      %1 = arith.minsi %least, %0 : i64
      linalg.yield %1 : i64
    }
    return
  }
  func.func @main(%x: memref<i64>) attributes {relax.device} {
    %c0 = arith.constant 0 : i64
    memref.store %c0, %x[] : memref<i64>
    return
  }
}
