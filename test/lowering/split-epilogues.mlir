// RUN: relax-opt %s --relax-flatten-epilogues | filecheck %s

#left = affine_map<(p, g, c, k) -> (p, g, k)>
#right = affine_map<(p, g, c, k) -> (g, k, c)>
#out = affine_map<(p, g, c, k) -> (p, g, c)>
#image = affine_map<(n, h, w, c) -> (n, h, w, c)>
#channel = affine_map<(n, h, w, c) -> (0, c)>
#row = affine_map<(n, h, w, c) -> (w)>

// A convolution in three groups of four filters, whose channels a bias reads as twelve.
// CHECK-LABEL: func.func @channels(
// CHECK: %[[Y:.*]] = call @contraction_0(
// CHECK: %[[B:.*]] = tensor.expand_shape %arg2 {{\[\[}}0], [1, 2]]{{.*}} into tensor<1x3x4xf32>
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[Y]], %[[B]] : tensor<10x3x4xf32>, tensor<1x3x4xf32>)
// CHECK: %[[E:.*]] = tensor.expand_shape %[[R]] {{\[\[}}0, 1, 2], [3], [4]]
// CHECK: tensor.collapse_shape %[[E]] {{\[\[}}0], [1], [2], [3, 4]]
func.func @channels(%x: tensor<10x3x8xf32>, %w: tensor<3x8x4xf32>, %bias: tensor<1x12xf32>) -> tensor<1x2x5x12xf32> {
  %e = tensor.empty() : tensor<10x3x4xf32>
  %y = call @contraction_0(%x, %w, %e)
      : (tensor<10x3x8xf32>, tensor<3x8x4xf32>, tensor<10x3x4xf32>) -> tensor<10x3x4xf32>
  %z = tensor.expand_shape %y [[0, 1, 2], [3], [4]] output_shape [1, 2, 5, 3, 4]
      : tensor<10x3x4xf32> into tensor<1x2x5x3x4xf32>
  %m = tensor.collapse_shape %z [[0], [1], [2], [3, 4]] : tensor<1x2x5x3x4xf32> into tensor<1x2x5x12xf32>
  %d = tensor.empty() : tensor<1x2x5x12xf32>
  %r = linalg.generic {indexing_maps = [#image, #channel, #image],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%m, %bias : tensor<1x2x5x12xf32>, tensor<1x12xf32>) outs(%d : tensor<1x2x5x12xf32>) {
    ^bb0(%u: f32, %v: f32, %o: f32):
      %p = arith.addf %u, %v : f32
      linalg.yield %p : f32
  } -> tensor<1x2x5x12xf32>
  return %r : tensor<1x2x5x12xf32>
}

// The result is read as it is, but for its channels: what is added to them has the image's shape.
// CHECK-LABEL: func.func @residual(
// CHECK: %[[Y:.*]] = call @contraction_0(
// CHECK: %[[O:.*]] = tensor.expand_shape %arg2 {{\[\[}}0], [1, 2]]{{.*}} into tensor<10x3x4xf32>
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[Y]], %[[O]] : tensor<10x3x4xf32>, tensor<10x3x4xf32>)
// CHECK: tensor.collapse_shape %[[R]] {{\[\[}}0], [1, 2]]
func.func @residual(%x: tensor<10x3x8xf32>, %w: tensor<3x8x4xf32>, %other: tensor<10x12xf32>) -> tensor<10x12xf32> {
  %e = tensor.empty() : tensor<10x3x4xf32>
  %y = call @contraction_0(%x, %w, %e)
      : (tensor<10x3x8xf32>, tensor<3x8x4xf32>, tensor<10x3x4xf32>) -> tensor<10x3x4xf32>
  %m = tensor.collapse_shape %y [[0], [1, 2]] : tensor<10x3x4xf32> into tensor<10x12xf32>
  %d = tensor.empty() : tensor<10x12xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(p, c) -> (p, c)>, affine_map<(p, c) -> (p, c)>,
                                        affine_map<(p, c) -> (p, c)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%m, %other : tensor<10x12xf32>, tensor<10x12xf32>) outs(%d : tensor<10x12xf32>) {
    ^bb0(%u: f32, %v: f32, %o: f32):
      %p = arith.addf %u, %v : f32
      linalg.yield %p : f32
  } -> tensor<10x12xf32>
  return %r : tensor<10x12xf32>
}

// What is read by places along one side of the image stays behind the reshapes: rows of the result have none.
// CHECK-LABEL: func.func @along_one_side(
// CHECK: tensor.collapse_shape
// CHECK-NEXT: tensor.empty
// CHECK-NEXT: linalg.generic {{.*}} ins(%{{.*}}, %arg2 : tensor<1x2x5x12xf32>, tensor<5xf32>)
func.func @along_one_side(%x: tensor<10x3x8xf32>, %w: tensor<3x8x4xf32>, %side: tensor<5xf32>) -> tensor<1x2x5x12xf32> {
  %e = tensor.empty() : tensor<10x3x4xf32>
  %y = call @contraction_0(%x, %w, %e)
      : (tensor<10x3x8xf32>, tensor<3x8x4xf32>, tensor<10x3x4xf32>) -> tensor<10x3x4xf32>
  %z = tensor.expand_shape %y [[0, 1, 2], [3], [4]] output_shape [1, 2, 5, 3, 4]
      : tensor<10x3x4xf32> into tensor<1x2x5x3x4xf32>
  %m = tensor.collapse_shape %z [[0], [1], [2], [3, 4]] : tensor<1x2x5x3x4xf32> into tensor<1x2x5x12xf32>
  %d = tensor.empty() : tensor<1x2x5x12xf32>
  %r = linalg.generic {indexing_maps = [#image, #row, #image],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%m, %side : tensor<1x2x5x12xf32>, tensor<5xf32>) outs(%d : tensor<1x2x5x12xf32>) {
    ^bb0(%u: f32, %v: f32, %o: f32):
      %p = arith.addf %u, %v : f32
      linalg.yield %p : f32
  } -> tensor<1x2x5x12xf32>
  return %r : tensor<1x2x5x12xf32>
}

// Of open sizes, those of a batch, what the reshape was given says how large the destination is.
// CHECK-LABEL: func.func @open(
// CHECK: %[[Y:.*]] = call @contraction_1(
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[Y]], %{{.*}} : tensor<?x3x4xf32>, tensor<3x4xf32>)
// CHECK: %[[E:.*]] = tensor.expand_shape %[[R]] {{\[\[}}0, 1], [2], [3]] output_shape [%arg3, 5, 3, 4]
// CHECK: tensor.collapse_shape %[[E]]
func.func @open(%x: tensor<?x3x8xf32>, %w: tensor<3x8x4xf32>, %bias: tensor<12xf32>, %n: index)
    -> tensor<?x5x12xf32> {
  %five = arith.constant 5 : index
  %rows = arith.muli %n, %five : index
  %e = tensor.empty(%rows) : tensor<?x3x4xf32>
  %y = call @contraction_1(%x, %w, %e)
      : (tensor<?x3x8xf32>, tensor<3x8x4xf32>, tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
  %z = tensor.expand_shape %y [[0, 1], [2], [3]] output_shape [%n, 5, 3, 4]
      : tensor<?x3x4xf32> into tensor<?x5x3x4xf32>
  %m = tensor.collapse_shape %z [[0], [1], [2, 3]] : tensor<?x5x3x4xf32> into tensor<?x5x12xf32>
  %d = tensor.empty(%n) : tensor<?x5x12xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, w, c) -> (n, w, c)>, affine_map<(n, w, c) -> (c)>,
                                        affine_map<(n, w, c) -> (n, w, c)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%m, %bias : tensor<?x5x12xf32>, tensor<12xf32>) outs(%d : tensor<?x5x12xf32>) {
    ^bb0(%u: f32, %v: f32, %o: f32):
      %p = arith.addf %u, %v : f32
      linalg.yield %p : f32
  } -> tensor<?x5x12xf32>
  return %r : tensor<?x5x12xf32>
}

func.func private @contraction_0(%x: tensor<10x3x8xf32>, %w: tensor<3x8x4xf32>, %out: tensor<10x3x4xf32>)
    -> tensor<10x3x4xf32> attributes {relax.kernel} {
  %0 = linalg.generic {indexing_maps = [#left, #right, #out],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"], relax.contraction}
      ins(%x, %w : tensor<10x3x8xf32>, tensor<3x8x4xf32>) outs(%out : tensor<10x3x4xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %1 = arith.mulf %a, %b : f32
      %2 = arith.addf %c, %1 : f32
      linalg.yield %2 : f32
  } -> tensor<10x3x4xf32>
  return %0 : tensor<10x3x4xf32>
}

func.func private @contraction_1(%x: tensor<?x3x8xf32>, %w: tensor<3x8x4xf32>, %out: tensor<?x3x4xf32>)
    -> tensor<?x3x4xf32> attributes {relax.kernel} {
  %0 = linalg.generic {indexing_maps = [#left, #right, #out],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"], relax.contraction}
      ins(%x, %w : tensor<?x3x8xf32>, tensor<3x8x4xf32>) outs(%out : tensor<?x3x4xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %1 = arith.mulf %a, %b : f32
      %2 = arith.addf %c, %1 : f32
      linalg.yield %2 : f32
  } -> tensor<?x3x4xf32>
  return %0 : tensor<?x3x4xf32>
}
