// RUN: relax-opt %s --relax-keep-initial-values | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Without a turn the result is what it starts from: the body reads it.
// CHECK-LABEL: func.func @last
// CHECK: ^bb0(%[[A:.*]]: f32, %[[O:.*]]: f32):
// CHECK-NEXT: %[[J:.*]] = linalg.index 1 : index
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[TURN:.*]] = arith.cmpi sge, %[[J]], %[[ZERO]] : index
// CHECK-NEXT: %[[V:.*]] = arith.select %[[TURN]], %[[A]], %[[O]] : f32
// CHECK-NEXT: linalg.yield %[[V]] : f32
func.func @last(%x: tensor<?x?xf32>, %start: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%start : tensor<?xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// There are turns, or it starts from nothing, or reads it already.
// CHECK-LABEL: func.func @as_they_are
// CHECK-NOT: linalg.index
func.func @as_they_are(%x: tensor<?x?xf32>, %z: tensor<?x4xf32>, %n: index, %start: tensor<?xf32>)
    -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%z : tensor<?x4xf32>) outs(%start : tensor<?xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
  } -> tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
  } -> tensor<?xf32>
  %2 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%start : tensor<?xf32>) {
    ^bb0(%a: f32, %o: f32):
      %s = arith.addf %a, %o : f32
      linalg.yield %s : f32
  } -> tensor<?xf32>
  return %0, %1, %2 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
