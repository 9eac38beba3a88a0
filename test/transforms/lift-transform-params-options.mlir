// RUN: relax-opt %s --relax-lift-transform-params=shared=true | filecheck %s --check-prefix=SHARED
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lift-transform-params{shared=true},\
// RUN:relax-lift-transform-params)' | filecheck %s --check-prefix=SHARED
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lift-transform-params{functions=decode})' \
// RUN:   | filecheck %s --check-prefix=SOME

// One transform function for both: equal computations once, each function's own part as well.
// SHARED:      @transform_params(%arg0: tensor<8x4xf32> {relax.name = "w"}, %arg1: tensor<8xf32> {relax.name = "b"})
// SHARED-SAME:   -> (tensor<4x8xf32> {relax.name = "w.permute_dims"}, tensor<8xf32> {relax.name = "b.exp"})
// SHARED-SAME:   relax.transform_for = [@prefill, @decode]
// SHARED-COUNT-1: relax.permute_dims
// SHARED:      @prefill(%arg0: tensor<2x4xf32>, %arg1: tensor<4x8xf32> {relax.name = "w.permute_dims"})
// SHARED:      @decode(%arg0: tensor<1x4xf32>, %arg1: tensor<4x8xf32> {relax.name = "w.permute_dims"},
// SHARED-SAME:      %arg2: tensor<8xf32> {relax.name = "b.exp"})

// SOME-NOT:    prefill_transform_params
// SOME:        @prefill(%arg0: tensor<2x4xf32>, %arg1: tensor<8x4xf32> {relax.name = "w"})
// SOME:        @decode_transform_params
func.func @prefill(%x: tensor<2x4xf32>, %w: tensor<8x4xf32> {relax.name = "w"}) -> tensor<2x8xf32>
    attributes {relax.num_input = 1 : i64} {
  %t = "relax.permute_dims"(%w) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %y = "relax.matmul"(%x, %t) : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
func.func @decode(%x: tensor<1x4xf32>, %b: tensor<8xf32> {relax.name = "b"}, %w: tensor<8x4xf32> {relax.name = "w"})
    -> tensor<1x8xf32> attributes {relax.num_input = 1 : i64} {
  %t = "relax.permute_dims"(%w) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %y = "relax.matmul"(%x, %t) : (tensor<1x4xf32>, tensor<4x8xf32>) -> tensor<1x8xf32>
  %e = "relax.exp"(%b) : (tensor<8xf32>) -> tensor<8xf32>
  %z = "relax.add"(%y, %e) : (tensor<1x8xf32>, tensor<8xf32>) -> tensor<1x8xf32>
  return %z : tensor<1x8xf32>
}
