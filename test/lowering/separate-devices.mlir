// RUN: relax-opt %s --relax-separate-devices | filecheck %s

// What entries call is the device's; what preparation calls, too, is there for both.

// CHECK: func.func @main(
// CHECK-SAME: relax.device
// CHECK-NEXT: call @kernel_0(
// CHECK-NEXT: call @kernel_1_device(
module attributes {relax.preparation = {fingerprint = "", prepared_weights = [], raw_weights = [], steps = [
    {arena_bytes = 0 : i64, gets = [], sets = [], symbol = "relaxir_prepare"}]}} {
func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) attributes {relax.entry = {checks = [], inputs = [],
    memory = [], name = "main", outputs = [], safe = 0 : i64, sizes = [], state = [], step = false,
    symbol = "relaxir_main", symbols = [], updates = [], weights = []}} {
  call @kernel_0(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  call @kernel_1(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  return
}

// CHECK: func.func @prepare(
// CHECK-NOT: relax.device
// CHECK: call @kernel_1(
func.func @prepare(%x: memref<4xf32>, %y: memref<4xf32>) attributes {relax.entry = {checks = [], inputs = [],
    memory = [], name = "prepare", outputs = [], safe = 0 : i64, sizes = [], state = [], step = true,
    symbol = "relaxir_prepare", symbols = [], updates = [], weights = []}} {
  call @kernel_1(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  return
}

// CHECK: func.func private @kernel_0({{.*}} attributes {relax.device, relax.kernel}
func.func private @kernel_0(%x: memref<4xf32>, %y: memref<4xf32>) attributes {relax.kernel} {
  memref.copy %x, %y : memref<4xf32> to memref<4xf32>
  return
}

// CHECK: func.func private @kernel_1_device({{.*}} attributes {relax.device, relax.kernel}
// CHECK: func.func private @kernel_1({{.*}} attributes {relax.kernel}
func.func private @kernel_1(%x: memref<4xf32>, %y: memref<4xf32>) attributes {relax.kernel} {
  memref.copy %y, %x : memref<4xf32> to memref<4xf32>
  return
}
}
