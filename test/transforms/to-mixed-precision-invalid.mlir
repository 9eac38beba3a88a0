// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-to-mixed-precision{dtype=f8E4M3FN})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=DTYPE
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-to-mixed-precision{dtype=f16 out-dtype=bf16})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=OUT
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-to-mixed-precision{keep=matmul,fc.*,head.*})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=KEEP

// DTYPE: error: expected dtype bf16 or f16, got 'f8E4M3FN'
// OUT: error: expected out-dtype f16 or f32, got 'bf16'
// KEEP: error: expected an op or a weight to keep, got 'head.*'
func.func @f(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "fc.bias"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.add"(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
