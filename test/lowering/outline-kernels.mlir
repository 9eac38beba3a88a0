// RUN: relax-opt %s --relax-outline-kernels | filecheck %s

// Of tensors that begin equally each has the beginning itself.
// CHECK-LABEL: func.func @beginnings(
// CHECK: %[[A:.*]] = tensor.insert_slice %arg0 into %[[E:.*]][0] [2] [1]
// CHECK: %[[B:.*]] = tensor.insert_slice %arg1 into %[[A]][2] [2] [1]
// CHECK: %[[D:.*]] = tensor.insert_slice %arg0 into %[[E]][0] [2] [1]
// CHECK: %[[C:.*]] = tensor.insert_slice %arg2 into %[[D]][2] [2] [1]
// CHECK: return %[[B]], %[[C]]
func.func @beginnings(%x: tensor<2xf32>, %y: tensor<2xf32>, %z: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %a = tensor.insert_slice %x into %e[0] [2] [1] : tensor<2xf32> into tensor<4xf32>
  %b = tensor.insert_slice %y into %a[2] [2] [1] : tensor<2xf32> into tensor<4xf32>
  %c = tensor.insert_slice %z into %a[2] [2] [1] : tensor<2xf32> into tensor<4xf32>
  return %b, %c : tensor<4xf32>, tensor<4xf32>
}

#id = affine_map<(d0) -> (d0)>
// Equal ones are one function.
// CHECK-LABEL: func.func @main(
// CHECK: %[[E:.*]] = tensor.empty
// CHECK: %[[Y:.*]] = call @[[KERNEL:.*]](%arg0, %[[E]])
// CHECK: %[[Z:.*]] = call @[[KERNEL]](%[[Y]], %[[E]])
// CHECK: return %[[Z]]
// CHECK: func.func private @[[KERNEL]](%{{.*}}: tensor<?xf32> {bufferization.writable = false},
// CHECK-SAME: %[[OUT:.*]]: tensor<?xf32> {bufferization.writable = true}) -> tensor<?xf32> attributes {relax.kernel}
// CHECK: linalg.generic
// CHECK-SAME: outs(%[[OUT]] : tensor<?xf32>)
// CHECK-NOT: func.func
func.func @main(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %e = tensor.empty(%n) : tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%a: f32, %b: f32):
      %0 = arith.addf %a, %a : f32
      linalg.yield %0 : f32
  } -> tensor<?xf32>
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%y : tensor<?xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%a: f32, %b: f32):
      %0 = arith.addf %a, %a : f32
      linalg.yield %0 : f32
  } -> tensor<?xf32>
  return %z : tensor<?xf32>
}
