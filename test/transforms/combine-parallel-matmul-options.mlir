// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-combine-parallel-matmul{max-count=2})' \
// RUN:   | filecheck %s --check-prefix=MAX
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-combine-parallel-matmul{max-count=2},\
// RUN:relax-combine-parallel-matmul{max-count=2})' | filecheck %s --check-prefix=MAX
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-combine-parallel-matmul{min-count=6})' \
// RUN:   | filecheck %s --check-prefix=MIN
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-combine-parallel-matmul{functions=other})' \
// RUN:   | filecheck %s --check-prefix=MIN

// At most two weights in one product; the fifth product stays alone.
// MAX-LABEL: @five(
// MAX-NEXT:    %0 = "relax.concat"(%arg1, %arg2)
// MAX-NEXT:    %1 = "relax.matmul"(%arg0, %0)
// MAX-COUNT-2: strided_slice
// MAX-NEXT:    %4 = "relax.concat"(%arg3, %arg4)
// MAX-NEXT:    %5 = "relax.matmul"(%arg0, %4)
// MAX-COUNT-2: strided_slice
// MAX-NEXT:    %8 = "relax.matmul"(%arg0, %arg5)
// MAX-NEXT:    return %2, %3, %6, %7, %8

// Fewer than six products, or another function.
// MIN-LABEL: @five(
// MIN-NOT:     concat
// MIN:         @other(
func.func @five(%x: tensor<2x4xf32>, %a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %c: tensor<4x4xf32>, %d: tensor<4x4xf32>,
    %e: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %a) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = "relax.matmul"(%x, %b) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %2 = "relax.matmul"(%x, %c) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %3 = "relax.matmul"(%x, %d) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %4 = "relax.matmul"(%x, %e) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %0, %1, %2, %3, %4 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}
func.func @other(%w: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<4x4xf32>
}
