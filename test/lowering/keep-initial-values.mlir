// RUN: relax-opt %s --relax-keep-initial-values | filecheck %s
// RUN: relax-opt %s --pass-pipeline='relax-keep-initial-values,relax-keep-initial-values{undo=true},canonicalize' \
// RUN:   | filecheck %s --check-prefix=UNDO

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Without a turn the result is what it starts from: the body reads it.
// UNDO-LABEL: func.func @last
// UNDO: linalg.index
// UNDO-LABEL: func.func @read_already
// UNDO-NOT: linalg.index
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

// While upstream fuses, so do bodies that read it already.
// CHECK-LABEL: func.func @read_already
// CHECK: %[[S:.*]] = arith.addf
// CHECK: %[[R:.*]] = arith.select %{{.*}}, %[[S]], %{{.*}} : f32
// CHECK-NEXT: linalg.yield %[[R]] : f32
func.func @read_already(%x: tensor<?x?xf32>, %start: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%start : tensor<?xf32>) {
    ^bb0(%a: f32, %o: f32):
      %s = arith.addf %a, %o : f32
      linalg.yield %s : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// There are turns, or it starts from nothing.
// CHECK-LABEL: func.func @as_they_are
// CHECK-NOT: linalg.index
func.func @as_they_are(%x: tensor<?x?xf32>, %z: tensor<?x4xf32>, %n: index, %start: tensor<?xf32>)
    -> (tensor<?xf32>, tensor<?xf32>) {
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
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}
