// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-convert-layout{layout=NCHW16c})' 2>&1 | filecheck %s

// CHECK: error: expected layout NCHW or NHWC, got 'NCHW16c'
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
