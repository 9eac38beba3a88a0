// RUN: relax-opt %s --relax-shard=ranks=2 --split-input-file --verify-diagnostics
// RUN: not relax-opt %s --relax-shard=ranks=0 2>&1 | filecheck %s --check-prefix=RANKS
// RUN: not relax-opt %s --relax-shard='ranks=2 keep=x' 2>&1 | filecheck %s --check-prefix=KEEP

// RANKS: expected 1 rank or more, got 0
// KEEP: expected a weight to keep, got 'x'

// Three heads of four numbers: the columns could be cut, the heads cannot.
func.func @main(%x: tensor<2x8xf32>, %w: tensor<8x12xf32> {relax.name = "k_proj"}) -> tensor<2x3x4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%x, %w) : (tensor<2x8xf32>, tensor<8x12xf32>) -> tensor<2x12xf32>
  // expected-error @+1 {{'relax.reshape' op expected a dimension that 2 ranks can share, as heads of attention, got 3 (weight 'k_proj')}}
  %1 = "relax.reshape"(%0) : (tensor<2x12xf32>) -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}

// -----

// Columns of queries can be cut, the three heads of keys cannot.
func.func @attention(%x: tensor<2x8xf32>, %k: tensor<3x5x4xf32>, %w: tensor<8x24xf32> {relax.name = "q_proj"})
    -> tensor<6x2x4xf32> attributes {relax.num_input = 2 : i64} {
  %0 = "relax.matmul"(%x, %w) : (tensor<2x8xf32>, tensor<8x24xf32>) -> tensor<2x24xf32>
  %1 = "relax.reshape"(%0) : (tensor<2x24xf32>) -> tensor<2x6x4xf32>
  %2 = "relax.permute_dims"(%1) {axes = array<i64: 1, 0, 2>} : (tensor<2x6x4xf32>) -> tensor<6x2x4xf32>
  // expected-error @+1 {{'relax.attention' op expected heads of queries and keys that 2 ranks can share, got 6 and 3 (weight 'q_proj')}}
  %3 = "relax.attention"(%2, %k, %k) : (tensor<6x2x4xf32>, tensor<3x5x4xf32>, tensor<3x5x4xf32>) -> tensor<6x2x4xf32>
  return %3 : tensor<6x2x4xf32>
}

// -----

// expected-error @+1 {{expected a module for one rank, got one for 3}}
module attributes {relax.ranks = 3 : i64} {}

// -----

// expected-error @+1 {{'builtin.module' op expected relax.ranks such as 2 : i64, got "2"}}
module attributes {relax.ranks = "2"} {}
