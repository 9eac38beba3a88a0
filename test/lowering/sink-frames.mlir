// RUN: relax-opt %s --relax-set-target=target=cpu:znver4 --relax-sink-frames | filecheck %s
// RUN: relax-opt %s --relax-set-target=target=cpu:znver4 --relax-sink-frames --relax-sink-frames | filecheck %s
// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v3 --relax-sink-frames | filecheck %s --check-prefix=TAPS

#window = affine_map<(n, y, x, c, i, j) -> (n, y + i, x + j, c)>
#filter = affine_map<(n, y, x, c, i, j) -> (i, j, 0, c)>
#sums = affine_map<(n, y, x, c, i, j) -> (n, y, x, c)>

// Kernels of windows of bytes make the frame of their image; two layers have one such kernel. Its operations
// share no rows.
// CHECK-LABEL: @main(
// CHECK-NOT: linalg.fill
// CHECK-NOT: tensor.insert_slice
// CHECK: %[[Y:.*]] = call @windows_framed(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<1x8x8x32xi8>,
// CHECK: call @windows_framed(
// Where both are read, one is made.
// CHECK-LABEL: @other_readers(
// CHECK: tensor.insert_slice
// CHECK: call @windows(
// CHECK: func.func private @windows(
// Those of floats, where registers hold a window's columns.
// CHECK-LABEL: @floats(
// CHECK-NOT: tensor.insert_slice
// CHECK: call @float_windows_framed(
// CHECK: func.func private @windows_framed(%[[X:.*]]: tensor<1x8x8x32xi8>, %{{.*}}) -> tensor<1x8x8x32xi32>
// CHECK-SAME: attributes {relax.kernel} {
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<1x10x10x32xi8>
// CHECK: %[[FRAME:.*]] = linalg.fill ins(%{{.*}} : i8) outs(%[[EMPTY]] :
// CHECK: %[[IMAGE:.*]] = tensor.insert_slice %[[X]] into %[[FRAME]][0, 1, 1, 0]
// CHECK: linalg.generic {{.*}} ins(%[[IMAGE]],
// TAPS-LABEL: @main(
// TAPS: tensor.insert_slice
// TAPS: call @windows(
// TAPS-LABEL: @floats(
// TAPS-NOT: tensor.insert_slice
// TAPS: call @float_windows_framed(
func.func @main(%x: tensor<1x8x8x32xi8>, %z: tensor<1x8x8x32xi8>, %w: tensor<3x3x1x32xi8>, %out: tensor<1x8x8x32xi32>)
    -> (tensor<1x8x8x32xi32>, tensor<1x8x8x32xi32>) {
  %seven = arith.constant 7 : i8
  %empty = tensor.empty() : tensor<1x10x10x32xi8>
  %frame = linalg.fill ins(%seven : i8) outs(%empty : tensor<1x10x10x32xi8>) -> tensor<1x10x10x32xi8>
  %a = tensor.insert_slice %x into %frame[0, 1, 1, 0] [1, 8, 8, 32] [1, 1, 1, 1]
      : tensor<1x8x8x32xi8> into tensor<1x10x10x32xi8>
  %b = tensor.insert_slice %z into %frame[0, 1, 1, 0] [1, 8, 8, 32] [1, 1, 1, 1]
      : tensor<1x8x8x32xi8> into tensor<1x10x10x32xi8>
  %0 = call @windows(%a, %w, %out)
      : (tensor<1x10x10x32xi8>, tensor<3x3x1x32xi8>, tensor<1x8x8x32xi32>) -> tensor<1x8x8x32xi32>
  %1 = call @windows(%b, %w, %out)
      : (tensor<1x10x10x32xi8>, tensor<3x3x1x32xi8>, tensor<1x8x8x32xi32>) -> tensor<1x8x8x32xi32>
  return %0, %1 : tensor<1x8x8x32xi32>, tensor<1x8x8x32xi32>
}

func.func @other_readers(%x: tensor<1x8x8x32xi8>, %w: tensor<3x3x1x32xi8>, %out: tensor<1x8x8x32xi32>)
    -> (tensor<1x8x8x32xi32>, tensor<1x10x10x32xi8>) {
  %seven = arith.constant 7 : i8
  %empty = tensor.empty() : tensor<1x10x10x32xi8>
  %frame = linalg.fill ins(%seven : i8) outs(%empty : tensor<1x10x10x32xi8>) -> tensor<1x10x10x32xi8>
  %a = tensor.insert_slice %x into %frame[0, 1, 1, 0] [1, 8, 8, 32] [1, 1, 1, 1]
      : tensor<1x8x8x32xi8> into tensor<1x10x10x32xi8>
  %0 = call @windows(%a, %w, %out)
      : (tensor<1x10x10x32xi8>, tensor<3x3x1x32xi8>, tensor<1x8x8x32xi32>) -> tensor<1x8x8x32xi32>
  return %0, %a : tensor<1x8x8x32xi32>, tensor<1x10x10x32xi8>
}

func.func private @windows(%x: tensor<1x10x10x32xi8>, %w: tensor<3x3x1x32xi8>, %out: tensor<1x8x8x32xi32>)
    -> tensor<1x8x8x32xi32> attributes {relax.kernel, relax.rows = 2 : i64} {
  %zero = arith.constant 0 : i32
  %start = linalg.fill ins(%zero : i32) outs(%out : tensor<1x8x8x32xi32>) -> tensor<1x8x8x32xi32>
  %0 = linalg.generic {indexing_maps = [#window, #filter, #sums],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x10x10x32xi8>, tensor<3x3x1x32xi8>) outs(%start : tensor<1x8x8x32xi32>) {
  ^bb0(%a: i8, %b: i8, %total: i32):
    %1 = arith.extui %a : i8 to i32
    %2 = arith.extsi %b : i8 to i32
    %3 = arith.muli %1, %2 : i32
    %4 = arith.addi %total, %3 : i32
    linalg.yield %4 : i32
  } -> tensor<1x8x8x32xi32>
  return %0 : tensor<1x8x8x32xi32>
}

func.func @floats(%x: tensor<1x8x8x32xf32>, %w: tensor<3x3x1x32xf32>, %out: tensor<1x8x8x32xf32>)
    -> tensor<1x8x8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x10x10x32xf32>
  %frame = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x10x10x32xf32>) -> tensor<1x10x10x32xf32>
  %a = tensor.insert_slice %x into %frame[0, 1, 1, 0] [1, 8, 8, 32] [1, 1, 1, 1]
      : tensor<1x8x8x32xf32> into tensor<1x10x10x32xf32>
  %0 = call @float_windows(%a, %w, %out)
      : (tensor<1x10x10x32xf32>, tensor<3x3x1x32xf32>, tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
  return %0 : tensor<1x8x8x32xf32>
}

func.func private @float_windows(%x: tensor<1x10x10x32xf32>, %w: tensor<3x3x1x32xf32>, %out: tensor<1x8x8x32xf32>)
    -> tensor<1x8x8x32xf32> attributes {relax.kernel, relax.rows = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
  %sums = linalg.generic {indexing_maps = [#window, #filter, #sums],
                          iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x10x10x32xf32>, tensor<3x3x1x32xf32>) outs(%start : tensor<1x8x8x32xf32>) {
  ^bb0(%a: f32, %b: f32, %total: f32):
    %0 = math.fma %a, %b, %total : f32
    linalg.yield %0 : f32
  } -> tensor<1x8x8x32xf32>
  return %sums : tensor<1x8x8x32xf32>
}
