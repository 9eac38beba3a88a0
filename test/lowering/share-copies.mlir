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

// One number written everywhere is one kernel for buffers of all sizes; parts of buffers have kernels of their own.
// CHECK-LABEL: func.func @fills(
// CHECK: %[[ALL:.*]] = memref.collapse_shape %arg0 {{\[\[}}0, 1]] : memref<4x8xf32> into memref<32xf32>
// CHECK: memref.cast %[[ALL]] : memref<32xf32> to memref<?xf32>
// CHECK: call @[[FILL:fill_[0-9]]](
// CHECK: memref.cast %arg1 : memref<5xf32> to memref<?xf32>
// CHECK: call @[[FILL]](
// CHECK: call @[[PART:fill_[0-9]]](%arg2)
// CHECK: call @[[ONES:fill_[0-9]]](
// CHECK: linalg.generic {{.*}} ins(%arg3 : f32)
func.func @fills(%a: memref<4x8xf32>, %b: memref<5xf32>, %c: memref<4x8xf32, strided<[16, 1]>>, %d: f32) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%a : memref<4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%zero : f32) outs(%b : memref<5xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<4x8xf32, strided<[16, 1]>>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%one : f32) outs(%a : memref<4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%d : f32) outs(%a : memref<4x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}

// CHECK: func.func private @copy_0(%{{.*}}: memref<32xf32>, %{{.*}}: memref<32xf32>) attributes {relax.kernel}
// CHECK-NEXT: memref.copy
