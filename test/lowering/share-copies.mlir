// RUN: relax-opt %s --relax-share-copies | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-DAG: %[[A:.*]] = memref.collapse_shape %arg0 {{\[\[}}0, 1]] : memref<4x8xf32> into memref<32xf32>
// CHECK-DAG: %[[B:.*]] = memref.collapse_shape %arg1 {{\[\[}}0, 1]] : memref<4x8xf32> into memref<32xf32>
// CHECK: call @copy_0(%[[A]], %[[B]])
// CHECK: call @copy_0(
func.func @main(%a: memref<4x8xf32>, %b: memref<4x8xf32>) {
  memref.copy %a, %b : memref<4x8xf32> to memref<4x8xf32>
  memref.copy %b, %a : memref<4x8xf32> to memref<4x8xf32>
  return
}


// Elements that are as far apart in fewer dimensions are copied in these.
// CHECK-LABEL: func.func @dimensions(
// CHECK: memref.collapse_shape %arg0 {{\[\[}}0, 1, 2], [3, 4]] : memref<1x3x4x8x1xf32> into memref<12x8xf32>
// CHECK: memref.collapse_shape %arg1 {{.*}} into memref<12x8xf32, strided<[24, 1], offset: 5>>
// CHECK: call @copy_1(
func.func @dimensions(%a: memref<1x3x4x8x1xf32>, %b: memref<1x3x4x8x1xf32, strided<[7, 96, 24, 1, 1], offset: 5>>) {
  memref.copy %a, %b : memref<1x3x4x8x1xf32> to memref<1x3x4x8x1xf32, strided<[7, 96, 24, 1, 1], offset: 5>>
  return
}

// Of dimensions of one element, the first one's stride stays.
// CHECK-LABEL: func.func @one(
// CHECK: memref.collapse_shape %arg1 {{.*}} into memref<1xf32, strided<[2]>>
func.func @one(%a: memref<1x1xf32>, %b: memref<1x1xf32, strided<[2, 1]>>) {
  memref.copy %a, %b : memref<1x1xf32> to memref<1x1xf32, strided<[2, 1]>>
  return
}

// Parts that begin elsewhere are copied by one kernel.
// CHECK-LABEL: func.func @places(
// CHECK: memref.cast %{{.*}} : memref<4xi8, strided<[8], offset: 2>> to memref<4xi8, strided<[8], offset: ?>>
// CHECK: call @[[COPY:copy_[0-9]]](
// CHECK: memref.cast %{{.*}} : memref<4xi8, strided<[8], offset: 5>> to memref<4xi8, strided<[8], offset: ?>>
// CHECK: call @[[COPY]](
func.func @places(%a: memref<4x1xi8, strided<[8, 1], offset: 2>>, %b: memref<4x1xi8, strided<[8, 1], offset: 5>>,
    %c: memref<4x1xi8>) {
  memref.copy %a, %c : memref<4x1xi8, strided<[8, 1], offset: 2>> to memref<4x1xi8>
  memref.copy %b, %c : memref<4x1xi8, strided<[8, 1], offset: 5>> to memref<4x1xi8>
  return
}

// CHECK: func.func private @copy_0(%{{.*}}: memref<32xf32>, %{{.*}}: memref<32xf32>) attributes {relax.kernel}
// CHECK-NEXT: memref.copy
