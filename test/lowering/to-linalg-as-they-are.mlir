// Factors of products are read as they are where a target's kernels want no panels, and weights stay.
// RUN: relax-opt %s --relax-pack-weights --relax-to-linalg | filecheck %s

module attributes {relax.weight_layouts = {bf16_rows = 1 : i64, columns = 32 : i64, int8_rows = 4 : i64,
                                           int8_unsigned = true, panels = false}} {
  // CHECK-LABEL: func.func @main
  // CHECK-NOT: linalg
  // CHECK: call @contraction_0
  // CHECK-LABEL: func.func private @contraction_0
  // CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x64xbf16>, tensor<64x48xbf16>) {{.*}}relax.contraction
  func.func @main(%x: tensor<8x64xbf16>, %w: tensor<64x48xbf16>) -> tensor<8x48xbf16>
      attributes {relax.num_input = 1 : i64} {
    %0 = "relax.matmul"(%x, %w) : (tensor<8x64xbf16>, tensor<64x48xbf16>) -> tensor<8x48xbf16>
    return %0 : tensor<8x48xbf16>
  }
}
