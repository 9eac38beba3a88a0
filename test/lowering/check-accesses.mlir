// RUN: relax-opt %s --relax-check-accesses | filecheck %s

// CHECK: module attributes {relax.accesses = [
// CHECK-SAME: relax.exp: memref.load of memref<4xf32>
// CHECK: func.func private @kernel_0(
// CHECK-SAME: %arg2: memref<4xi64>
// CHECK: scf.if
// CHECK: memref.load %arg0
// CHECK: func.call @relaxir_fault(%arg2
func.func private @kernel_0(%x: memref<4xf32>, %i: index) -> f32 attributes {relax.kernel, relax.ops = ["relax.exp"]} {
  %v = memref.load %x[%i] : memref<4xf32>
  return %v : f32
}

// Tile registers read rows: the last byte of the last one counts.
// CHECK: func.func private @tile(
// CHECK: %[[LAST:.*]] = arith.muli {{.*}}, %c15
// CHECK: arith.floordivsi
// CHECK: scf.if
// CHECK-NEXT: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK: else
// CHECK-NEXT: arith.index_cast
// CHECK: func.call @relaxir_fault
func.func private @tile(%x: memref<2048xi16>, %bytes: index, %stride: i64)
    attributes {relax.kernel, relax.ops = ["relax.matmul"]} {
  %four = arith.constant 4 : i8
  %begin = memref.extract_aligned_pointer_as_index %x : memref<2048xi16> -> index
  %place = arith.addi %begin, %bytes : index
  %word = arith.index_cast %place : index to i64
  %pointer = llvm.inttoptr %word : i64 to !llvm.ptr
  llvm.call_intrinsic "llvm.x86.tileloadd64"(%four, %pointer, %stride) {relax.tile_access = array<i64: 16, 64>}
    : (i8, !llvm.ptr, i64) -> ()
  return
}
