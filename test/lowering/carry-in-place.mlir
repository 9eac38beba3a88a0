// RUN: relax-opt %s --relax-carry-in-place | filecheck %s

func.func private @work(tensor<4xf32>) -> tensor<4xf32>
// CHECK-LABEL: func.func @main(
// CHECK: %[[START:.*]] = bufferization.alloc_tensor() copy(%{{.*}})
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %[[START]])
// CHECK: %[[V:.*]] = {{.*}}call @work(%[[A]])
// CHECK: %[[APART:.*]] = bufferization.alloc_tensor() copy(%[[V]])
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

// CHECK-LABEL: func.func @branch(
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}})
// CHECK: scf.if
// CHECK: %[[LOOP:.*]] = bufferization.alloc_tensor() copy(%[[R]])
// CHECK: scf.yield %[[LOOP]]
// CHECK: %[[KEPT:.*]] = bufferization.alloc_tensor() copy(%{{.*}})
// CHECK: scf.yield %[[KEPT]]
func.func @branch(%x: tensor<4xf32>, %n: index, %p: i1) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = func.call @work(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    %v = func.call @work(%a) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %v : tensor<4xf32>
  }
  %s = scf.if %p -> tensor<4xf32> {
    scf.yield %r : tensor<4xf32>
  } else {
    scf.yield %m : tensor<4xf32>
  }
  return %s, %m : tensor<4xf32>, tensor<4xf32>
}
