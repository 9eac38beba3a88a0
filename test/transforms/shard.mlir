// RUN: relax-opt %s --relax-shard=ranks=2 --relax-report -o %t 2>&1 | filecheck %s --check-prefix=REPORT
// RUN: filecheck %s < %t
// RUN: relax-opt %s --relax-shard=ranks=1 | filecheck %s --check-prefix=ONE
// RUN: relax-opt %s --relax-shard='ranks=2 keep=up' | filecheck %s --check-prefix=KEEP
// RUN: relax-opt %t --relax-shard=ranks=2 | filecheck %s

// A table by rows, a product by columns, one by rows, a bias with the columns; a norm is whole.

// REPORT: 2 ranks: 4 weights cut, 2.1 KiB -> 1.0 KiB each; 2 sums and 0 gathers over all ranks
// REPORT: table {{.*}} axis 0
// REPORT: up {{.*}} axis 0

// CHECK: relax.ranks = 2 : i64
// CHECK-SAME: relax.shards = {bias = array<i64: 0, 16>, down = array<i64: 0, 16>,
// CHECK-SAME: table = array<i64: 0, 32>, up = array<i64: 0, 16>}
// CHECK: func.func @main
// CHECK-SAME: tensor<16x8xf32> {relax.name = "table"}
// CHECK-SAME: tensor<8x8xf32> {relax.name = "up"}
// CHECK-SAME: tensor<8xf32> {relax.name = "bias"}
// CHECK-SAME: tensor<8x8xf32> {relax.name = "down"}
// CHECK-SAME: tensor<8xf32> {relax.name = "norm"}
// CHECK: %[[OWNER:.*]] = "relax.take"{{.*}} {axis = 0 : i64, wrap_negative_indices = false}
// CHECK: %[[RANK:.*]] = "relax.rank"()
// CHECK: "relax.equal"(%[[OWNER]], %[[RANK]])
// CHECK: "relax.all_reduce"(%{{.*}}) : (tensor<?x8xf32, {sym = ["n"]}>)
// CHECK: "relax.rms_norm"
// CHECK: "relax.matmul"{{.*}} -> tensor<?x8xf32, {sym = ["n"]}>
// CHECK: "relax.silu"
// CHECK: %[[TERM:.*]] = "relax.matmul"
// CHECK: %[[SUM:.*]] = "relax.all_reduce"(%[[TERM]])
// CHECK: return %[[SUM]]

// ONE-NOT: relax.ranks
// ONE-NOT: relax.all_reduce

// KEEP: relax.shards = {down = array<i64: 1, 8>, table = array<i64: 0, 32>}
// KEEP: "relax.all_gather"

func.func @main(%tokens: tensor<?xi64, {sym = ["n"]}> {relax.name = "tokens"},
                %table: tensor<32x8xf32> {relax.name = "table"}, %up: tensor<16x8xf32> {relax.name = "up"},
                %bias: tensor<16xf32> {relax.name = "bias"}, %down: tensor<16x8xf32> {relax.name = "down"},
                %norm: tensor<8xf32> {relax.name = "norm"})
    -> tensor<?x8xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.take"(%table, %tokens) {axis = 0 : i64, wrap_negative_indices = false}
      : (tensor<32x8xf32>, tensor<?xi64, {sym = ["n"]}>) -> tensor<?x8xf32, {sym = ["n"]}>
  %1 = "relax.rms_norm"(%0, %norm) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  %2 = "relax.permute_dims"(%up) : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %3 = "relax.matmul"(%1, %2) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<8x16xf32>) -> tensor<?x16xf32, {sym = ["n"]}>
  %4 = "relax.add"(%3, %bias) : (tensor<?x16xf32, {sym = ["n"]}>, tensor<16xf32>) -> tensor<?x16xf32, {sym = ["n"]}>
  %5 = "relax.silu"(%4) : (tensor<?x16xf32, {sym = ["n"]}>) -> tensor<?x16xf32, {sym = ["n"]}>
  %6 = "relax.matmul"(%5, %down) : (tensor<?x16xf32, {sym = ["n"]}>, tensor<16x8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  return %6 : tensor<?x8xf32, {sym = ["n"]}>
}
