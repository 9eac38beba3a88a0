// RUN: relax-opt %s --relax-bufferize | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %arg0: memref<?xf32>, %arg1: memref<?xf32>)
// CHECK: %[[H:.*]] = memref.alloc
// CHECK: call @kernel_0(%arg0, %[[H]])
// CHECK: call @kernel_0(%[[H]], %arg1)
// CHECK-NEXT: return
func.func @main(%x: tensor<?xf32> {bufferization.writable = false}, %out: tensor<?xf32> {bufferization.writable = true})
    -> tensor<?xf32>
    attributes {relax.entry = {checks = [], inputs = [{dtype = "f32", name = "x", shape = ["n"]}], memory = [],
    name = "main", outputs = [{dtype = "f32", name = "y", shape = ["n"]}], safe = 4 : i64, sizes = [], state = [],
    step = false, symbol = "relaxir_main", symbols = [{min = 0 : i64, name = "n"}], updates = [], weights = []}} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %h = call @kernel_0(%x, %e) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %y = call @kernel_0(%h, %out) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %r = bufferization.materialize_in_destination %y in %out : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
#id = affine_map<(d0) -> (d0)>
func.func private @kernel_0(%x: tensor<?xf32> {bufferization.writable = false},
                            %out: tensor<?xf32> {bufferization.writable = true}) -> tensor<?xf32>
                                attributes {relax.kernel} {
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%out : tensor<?xf32>) {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// What a branch chooses may be an argument, which nobody writes to: upstream copies the other one, half written.
// CHECK-LABEL: func.func @chosen(
// CHECK: %[[A:.*]] = memref.alloc
// CHECK: memref.copy %arg0
// CHECK-NOT: memref.alloc
// CHECK: %[[PART:.*]] = memref.subview %[[A]][0, 2]
// CHECK: memref.copy %arg1, %[[PART]]
// CHECK-NOT: memref.copy
// CHECK: arith.select %{{.*}}, %[[A]], %arg1
func.func @chosen(%x: tensor<?x2xf32> {bufferization.writable = false},
                  %y: tensor<?x?xf32> {bufferization.writable = false}, %c: i1) -> f32 attributes {relax.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %x, %c0 : tensor<?x2xf32>
  %m = tensor.dim %y, %c1 : tensor<?x?xf32>
  %w = arith.addi %m, %c2 : index
  %e = tensor.empty(%n, %w) : tensor<?x?xf32>
  %a = tensor.insert_slice %x into %e[0, 0] [%n, 2] [1, 1] : tensor<?x2xf32> into tensor<?x?xf32>
  %b = tensor.insert_slice %y into %a[0, 2] [%n, %m] [1, 1] : tensor<?x?xf32> into tensor<?x?xf32>
  %s = arith.select %c, %b, %y : tensor<?x?xf32>
  %v = tensor.extract %s[%c0, %c0] : tensor<?x?xf32>
  return %v : f32
}

// Slices of computed sizes are views, and what hides these sizes from the analysis is gone.
// CHECK-LABEL: func.func private @slices(
// CHECK-NOT: arith.ori
// CHECK-NOT: memref.alloc
// CHECK: %[[SIZE:.*]] = arith.minsi
// CHECK: %[[FROM:.*]] = memref.subview %arg0[%arg2] [%[[SIZE]]] [1]
// CHECK: %[[TO:.*]] = memref.subview %arg1[%arg2] [%[[SIZE]]] [1]
// CHECK: linalg.generic {{.*}} ins(%[[FROM]] : {{.*}}) outs(%[[TO]] :
func.func private @slices(%x: tensor<?xf32> {bufferization.writable = false},
                          %out: tensor<?xf32> {bufferization.writable = true}, %i: index) -> tensor<?xf32>
                              attributes {relax.kernel} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %left = arith.subi %n, %i : index
  %size = arith.minsi %left, %c8 : index
  %a = tensor.extract_slice %x[%i] [%size] [1] : tensor<?xf32> to tensor<?xf32>
  %b = tensor.extract_slice %out[%i] [%size] [1] : tensor<?xf32> to tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%a : tensor<?xf32>) outs(%b : tensor<?xf32>) {
    ^bb0(%p: f32, %q: f32):
      %s = arith.negf %p : f32
      linalg.yield %s : f32
  } -> tensor<?xf32>
  %r = tensor.insert_slice %y into %out[%i] [%size] [1] : tensor<?xf32> into tensor<?xf32>
  return %r : tensor<?xf32>
}

// The first part along the second dimension has gaps between its rows, where there is more than one; the first along
// the first dimension has none.
// CHECK-LABEL: func.func @parts(
// CHECK: %[[PART:.*]] = memref.subview %arg0[0, 0, 0] [3, 1,
// CHECK: %[[COPY:.*]] = memref.alloc
// CHECK-NEXT: memref.copy %[[PART]], %[[COPY]]
// CHECK: call @kernel_1(%[[COPY]],
// CHECK-NOT: memref.copy
// CHECK: call @kernel_2(
// CHECK-NEXT: return
func.func @parts(%x: tensor<3x4x?xf32> {bufferization.writable = false},
    %out: tensor<3x1x?xf32> {bufferization.writable = true}, %more: tensor<1x4x?xf32> {bufferization.writable = true})
    -> (tensor<3x1x?xf32>, tensor<1x4x?xf32>)
    attributes {relax.entry = {checks = [], inputs = [{dtype = "f32", name = "x", shape = [3 : i64, 4 : i64, "n"]}],
    memory = [], name = "parts", outputs = [{dtype = "f32", name = "y", shape = [3 : i64, 1 : i64, "n"]},
    {dtype = "f32", name = "z", shape = [1 : i64, 4 : i64, "n"]}], safe = 4 : i64, sizes = [], state = [],
    step = false, symbol = "relaxir_parts", symbols = [{min = 0 : i64, name = "n"}], updates = [], weights = []}} {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %x, %c2 : tensor<3x4x?xf32>
  %p = tensor.extract_slice %x[0, 0, 0] [3, 1, %n] [1, 1, 1] : tensor<3x4x?xf32> to tensor<3x1x?xf32>
  %y = call @kernel_1(%p, %out) : (tensor<3x1x?xf32>, tensor<3x1x?xf32>) -> tensor<3x1x?xf32>
  %q = tensor.extract_slice %x[0, 0, 0] [1, 4, %n] [1, 1, 1] : tensor<3x4x?xf32> to tensor<1x4x?xf32>
  %z = call @kernel_2(%q, %more) : (tensor<1x4x?xf32>, tensor<1x4x?xf32>) -> tensor<1x4x?xf32>
  %r = bufferization.materialize_in_destination %y in %out
      : (tensor<3x1x?xf32>, tensor<3x1x?xf32>) -> tensor<3x1x?xf32>
  %s = bufferization.materialize_in_destination %z in %more
      : (tensor<1x4x?xf32>, tensor<1x4x?xf32>) -> tensor<1x4x?xf32>
  return %r, %s : tensor<3x1x?xf32>, tensor<1x4x?xf32>
}
#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func private @kernel_1(%x: tensor<3x1x?xf32> {bufferization.writable = false},
    %out: tensor<3x1x?xf32> {bufferization.writable = true}) -> tensor<3x1x?xf32> attributes {relax.kernel} {
  %y = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<3x1x?xf32>) outs(%out : tensor<3x1x?xf32>) {
  ^bb0(%in: f32, %o: f32):
    %e = math.exp %in : f32
    linalg.yield %e : f32
  } -> tensor<3x1x?xf32>
  return %y : tensor<3x1x?xf32>
}
func.func private @kernel_2(%x: tensor<1x4x?xf32> {bufferization.writable = false},
    %out: tensor<1x4x?xf32> {bufferization.writable = true}) -> tensor<1x4x?xf32> attributes {relax.kernel} {
  %y = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x4x?xf32>) outs(%out : tensor<1x4x?xf32>) {
  ^bb0(%in: f32, %o: f32):
    %e = math.exp %in : f32
    linalg.yield %e : f32
  } -> tensor<1x4x?xf32>
  return %y : tensor<1x4x?xf32>
}
