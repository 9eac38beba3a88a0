// RUN: relax-opt %s --relax-set-target=target=cpu:znver4 --relax-pack-weights --relax-group-packed-rows | filecheck %s
// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v2 --relax-pack-weights --relax-group-packed-rows \
// RUN:   | filecheck %s --check-prefix=SSE
// RUN: relax-opt %s --relax-set-target=target=cpu:neoverse-v1 --relax-pack-weights=tile=4 \
// RUN:     --relax-group-packed-rows=bf16=1 \
// RUN:   | filecheck %s --check-prefix=OPTION
// RUN: relax-opt %s --relax-pack-weights --relax-group-packed-rows | filecheck %s --check-prefix=NONE

// Passes pack as the module's target reads, where their options say nothing.
func.func @main(%x: tensor<3x64xbf16>, %w: tensor<64x96xbf16>) -> tensor<3x96xbf16>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %w) : (tensor<3x64xbf16>, tensor<64x96xbf16>) -> tensor<3x96xbf16>
  return %0 : tensor<3x96xbf16>
}

// CHECK: relax.weight_layouts = {bf16_rows = 2 : i64, columns = 32 : i64, int8_exact = 32 : i64, int8_rows = 4 : i64,
// CHECK: tensor<3x32x32x2xbf16>
// SSE: relax.weight_layouts = {bf16_rows = 1 : i64, columns = 8 : i64, int8_rows = 2 : i64, int8_unsigned = false}
// SSE: tensor<12x64x8xbf16>
// OPTION: relax.weight_layouts = {bf16_rows = 2 : i64, columns = 16 : i64, int8_exact = 32 : i64, int8_rows = 4 : i64,
// OPTION: tensor<24x64x4xbf16>
// NONE: tensor<3x64x32xbf16>
