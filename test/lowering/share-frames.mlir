// RUN: relax-opt %s --relax-share-frames | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK: %[[FRAME:.*]] = linalg.fill
// CHECK: %[[A:.*]] = tensor.insert_slice %arg0 into %[[FRAME]][1, 1]
// CHECK: tensor.insert_slice %arg1 into %[[A]][1, 1]
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x5xf32>
  %frame = linalg.fill ins(%zero : f32) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  %a = tensor.insert_slice %x into %frame[1, 1] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x5xf32>
  %b = tensor.insert_slice %y into %frame[1, 1] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x5xf32>
  return %b : tensor<4x5xf32>
}
