// Factors of products are read as they are where a target's kernels want no panels, and weights stay.
// RUN: relax-opt %s --relax-pack-weights --relax-to-linalg | filecheck %s

module attributes {relax.weight_layouts = {bf16_rows = 1 : i64, columns = 32 : i64, int8_rows = 4 : i64,
                                           int8_unsigned = true, panels = false}} {
  // CHECK-LABEL: func.func @main
  // CHECK-NOT: linalg
  // CHECK: call @contraction_0
  func.func @main(%x: tensor<8x64xbf16>, %w: tensor<64x48xbf16>) -> tensor<8x48xbf16>
      attributes {relax.num_input = 1 : i64} {
    %0 = "relax.matmul"(%x, %w) : (tensor<8x64xbf16>, tensor<64x48xbf16>) -> tensor<8x48xbf16>
    return %0 : tensor<8x48xbf16>
  }

  // What was permuted is read where it was if steps of k become neighbours there (%k), and moved if they stop (%q).
  // CHECK-LABEL: func.func @moved
  // CHECK: linalg.generic
  // CHECK-SAME: ins(%arg0 : tensor<64x8xbf16>)
  // CHECK: call @contraction_1(%{{[0-9]+}}, %arg1, %{{[0-9]+}}) :
  // CHECK-SAME: (tensor<8x64xbf16>, tensor<48x64xbf16>, tensor<8x48xbf16>)
  func.func @moved(%q: tensor<64x8xbf16>, %k: tensor<48x64xbf16>) -> tensor<8x48xbf16>
      attributes {relax.num_input = 2 : i64} {
    %0 = "relax.permute_dims"(%q) {axes = array<i64: 1, 0>} : (tensor<64x8xbf16>) -> tensor<8x64xbf16>
    %1 = "relax.permute_dims"(%k) {axes = array<i64: 1, 0>} : (tensor<48x64xbf16>) -> tensor<64x48xbf16>
    %2 = "relax.matmul"(%0, %1) : (tensor<8x64xbf16>, tensor<64x48xbf16>) -> tensor<8x48xbf16>
    return %2 : tensor<8x48xbf16>
  }
  // CHECK-LABEL: func.func private @contraction_0
  // CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x64xbf16>, tensor<64x48xbf16>) {{.*}}relax.contraction
}
