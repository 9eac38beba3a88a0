// RUN: relax-opt %s --relax-check-allocations | filecheck %s

func.func private @relax_check(i1, i64)
// CHECK-LABEL: func.func @main(
// CHECK: arith.mulsi_extended
// CHECK: call @relax_check(%{{.*}}, %c9223372036854775807
// CHECK: %[[B:.*]] = memref.alloc(%arg0) : memref<?xf32>
// CHECK: memref.extract_aligned_pointer_as_index %[[B]]
// CHECK: call @relax_check
func.func @main(%n: index) -> i64 {
  %zero = arith.constant 0 : i64
  %b = memref.alloc(%n) : memref<?xf32>
  memref.dealloc %b : memref<?xf32>
  return %zero : i64
}
