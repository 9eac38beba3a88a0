// RUN: relax-opt %s --relax-defer-checks --split-input-file | filecheck %s

// One launch compares all values; of two calls of a kernel each has its own; of one condition the first check
// counts.

#id = affine_map<(d0) -> (d0)>
#no = affine_map<(d0) -> ()>
func.func @twice(%i: memref<?xi64>, %j: memref<?xi64>) attributes {relax.device} {
  %zero = arith.constant 0 : i8
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %a = memref.alloc() : memref<i8>
  call @all(%i, %a) : (memref<?xi64>, memref<i8>) -> ()
  %v = memref.load %a[] : memref<i8>
  %fine = arith.cmpi ne, %v, %zero : i8
  call @relax_check(%fine, %c0) {relax.deferrable} : (i1, i64) -> ()
  call @relax_check(%fine, %c1) {relax.deferrable} : (i1, i64) -> ()
  %b = memref.alloc() : memref<i8>
  call @all(%j, %b) : (memref<?xi64>, memref<i8>) -> ()
  %w = memref.load %b[] : memref<i8>
  %good = arith.cmpi ne, %w, %zero : i8
  call @relax_check(%good, %c2) {relax.deferrable} : (i1, i64) -> ()
  return
}
func.func private @relax_check(i1, i64)
func.func private @all(%i: memref<?xi64>, %a: memref<i8>) attributes {relax.device, relax.kernel} {
  %one = arith.constant 1 : i8
  linalg.fill ins(%one : i8) outs(%a : memref<i8>)
  linalg.generic {indexing_maps = [#id, #no], iterator_types = ["reduction"]}
      ins(%i : memref<?xi64>) outs(%a : memref<i8>) {
  ^bb0(%in: i64, %out: i8):
    %c4 = arith.constant 4 : i64
    %less = arith.cmpi slt, %in, %c4 : i64
    %wide = arith.extui %less : i1 to i8
    %both = arith.andi %out, %wide : i8
    linalg.yield %both : i8
  }
  return
}
// CHECK: gpu.func @all_check(
// CHECK: llvm.cmpxchg {{.*}} monotonic monotonic
// CHECK: gpu.func @all(
// CHECK: llvm.cmpxchg {{.*}} monotonic monotonic
// CHECK: func.func @twice
// CHECK: call @all_check(
// CHECK-NOT: memref.load
// CHECK-NOT: call @relax_check
// CHECK: call @all(
// CHECK-NOT: memref.load
// CHECK-NOT: call @relax_check
// CHECK: func.func private @all_check
// CHECK: call @relax_cuda_status
// CHECK-NEXT: memref.dim
// CHECK: gpu.launch_func
// CHECK-NOT: linalg

// -----

// One thread computes a condition from elements, while these are what they were; else, and of other checks, the
// host does.

func.func @one(%x: memref<i64>, %y: memref<i64>) attributes {relax.device} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %v = memref.load %x[] : memref<i64>
  %a = arith.cmpi slt, %v, %c2 : i64
  call @relax_check(%a, %c0) {relax.deferrable} : (i1, i64) -> ()
  %b = arith.cmpi sgt, %v, %c0 : i64
  call @relax_check(%b, %c1) : (i1, i64) -> ()
  %w = memref.load %y[] : memref<i64>
  memref.copy %x, %y : memref<i64> to memref<i64>
  %c = arith.cmpi sgt, %w, %c0 : i64
  call @relax_check(%c, %c2) {relax.deferrable} : (i1, i64) -> ()
  return
}
func.func private @relax_check(i1, i64)
// CHECK: gpu.func @check(
// CHECK: memref.load
// CHECK: arith.cmpi slt
// CHECK: llvm.cmpxchg
// CHECK-LABEL: func.func @one
// CHECK: gpu.launch_func @device::@check
// CHECK-NOT: relax.deferrable
// CHECK: call @relax_check(%{{.*}}, %{{.*}}) : (i1, i64)
// CHECK: memref.copy
// CHECK: call @relax_check(%{{.*}}, %{{.*}}) {relax.deferrable}
