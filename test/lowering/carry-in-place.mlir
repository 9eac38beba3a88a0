// RUN: relax-opt %s --relax-carry-in-place | filecheck %s

func.func private @work(tensor<4xf32>) -> tensor<4xf32>
// CHECK-LABEL: func.func @main(
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}})
// CHECK: %[[V:.*]] = {{.*}}call @work(%[[A]])
// CHECK: %[[APART:.*]] = bufferization.materialize_in_destination %[[V]]
// CHECK: %[[C:.*]] = bufferization.materialize_in_destination %[[APART]] in %[[A]]
// CHECK: scf.yield %[[C]]
func.func @main(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    %v = func.call @work(%a) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %v : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
