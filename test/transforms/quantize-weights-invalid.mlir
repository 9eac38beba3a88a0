// RUN: not relax-opt %s --relax-quantize-weights='bits=3' 2>&1 | filecheck %s --check-prefix=BITS
// RUN: not relax-opt %s --relax-quantize-weights='group=-1' 2>&1 | filecheck %s --check-prefix=GROUP
// RUN: not relax-opt %s --relax-quantize-weights='keep=v' 2>&1 | filecheck %s --check-prefix=KEEP
// RUN: not relax-opt %s --relax-quantize-weights='scale=f64' 2>&1 | filecheck %s --check-prefix=SCALE

// BITS: expected 4 or 8 bits, got 3
// GROUP: expected a group of 0 or more, got -1
// SCALE: expected a scale of f32, f16, bf16, got 'f64'
// KEEP: expected a weight to keep, got 'v'
func.func @main(%x: tensor<3x8xf32>, %w: tensor<8x8xf32> {relax.name = "w"}) -> tensor<3x8xf32>
    attributes {relax.num_input = 1 : i64} {
  %y = "relax.matmul"(%x, %w) : (tensor<3x8xf32>, tensor<8x8xf32>) -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
