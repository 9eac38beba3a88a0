// RUN: relax-opt %s --relax-share-copies | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: call @copy_0(%arg0, %arg1)
// CHECK-NEXT: call @copy_0(%arg1, %arg0)
func.func @main(%a: memref<4x8xf32>, %b: memref<4x8xf32>) {
  memref.copy %a, %b : memref<4x8xf32> to memref<4x8xf32>
  memref.copy %b, %a : memref<4x8xf32> to memref<4x8xf32>
  return
}

// CHECK: func.func private @copy_0(%{{.*}}: memref<4x8xf32>, %{{.*}}: memref<4x8xf32>) attributes {relax.kernel}
// CHECK-NEXT: memref.copy
