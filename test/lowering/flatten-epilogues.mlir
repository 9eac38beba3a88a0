// RUN: relax-opt %s --relax-flatten-epilogues | filecheck %s

#id = affine_map<(n, h, w, c) -> (n, h, w, c)>
#channel = affine_map<(n, h, w, c) -> (c)>
#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>
// CHECK-LABEL: func.func @main(
// CHECK: %[[Y:.*]] = call @contraction_0(
// CHECK: %[[R:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[Y]], %arg2
// CHECK: tensor.expand_shape %[[R]]
func.func @main(%x: tensor<12x8xf32>, %w: tensor<8x16xf32>, %bias: tensor<16xf32>) -> tensor<1x3x4x16xf32> {
  %e = tensor.empty() : tensor<12x16xf32>
  %y = call @contraction_0(%x, %w, %e) : (tensor<12x8xf32>, tensor<8x16xf32>, tensor<12x16xf32>) -> tensor<12x16xf32>
  %z = tensor.expand_shape %y [[0, 1, 2], [3]] output_shape [1, 3, 4, 16] : tensor<12x16xf32> into tensor<1x3x4x16xf32>
  %d = tensor.empty() : tensor<1x3x4x16xf32>
  %r = linalg.generic {indexing_maps = [#id, #channel, #id],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%z, %bias : tensor<1x3x4x16xf32>, tensor<16xf32>) outs(%d : tensor<1x3x4x16xf32>) {
    ^bb0(%u: f32, %v: f32, %o: f32):
      %p = arith.addf %u, %v : f32
      linalg.yield %p : f32
  } -> tensor<1x3x4x16xf32>
  return %r : tensor<1x3x4x16xf32>
}
func.func private @contraction_0(%x: tensor<12x8xf32>, %w: tensor<8x16xf32>, %out: tensor<12x16xf32>)
    -> tensor<12x16xf32> attributes {relax.kernel} {
  %0 = linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "parallel", "reduction"],
                       relax.contraction}
      ins(%x, %w : tensor<12x8xf32>, tensor<8x16xf32>) outs(%out : tensor<12x16xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %1 = arith.mulf %a, %b : f32
      %2 = arith.addf %c, %1 : f32
      linalg.yield %2 : f32
  } -> tensor<12x16xf32>
  return %0 : tensor<12x16xf32>
}
