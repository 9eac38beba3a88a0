// RUN: relax-opt %s --relax-check-scalars | filecheck %s
// RUN: relax-opt %s --relax-check-scalars --relax-check-scalars | filecheck %s

// An index that types do not prove to be inside is checked, inside of control flow, too; a second run adds nothing.
// CHECK-LABEL: @elements(
// CHECK-NEXT:    %[[Z:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[C4:.*]] = arith.constant 4 : index
// CHECK-NEXT:    %[[A:.*]] = arith.cmpi ult, %arg1, %[[C4]] : index
// CHECK-NEXT:    cf.assert %[[A]], "'tensor.extract' op expected an index in [0, 4)"
// CHECK-NEXT:    tensor.extract %arg0[%[[Z]], %arg1]
// CHECK-NEXT:    scf.if
// CHECK:           %[[N:.*]] = tensor.dim %arg2
// CHECK-NEXT:      %[[B:.*]] = arith.cmpi ult, %arg1, %[[N]] : index
// CHECK:           cf.assert %[[B]], "'tensor.insert' op expected an index in [0, size)"
// CHECK-NEXT:      cf.assert %{{.*}}, "'tensor.insert' op expected an index in [0, 4)"
// CHECK-NEXT:      tensor.insert
func.func @elements(%row: tensor<1x4xf32>, %i: index, %x: tensor<?x4xf32>, %flag: i1) -> tensor<?x4xf32> {
  %z = arith.constant 0 : index
  %e = tensor.extract %row[%z, %i] : tensor<1x4xf32>
  %r = scf.if %flag -> tensor<?x4xf32> {
    %n = tensor.insert %e into %x[%i, %i] : tensor<?x4xf32>
    scf.yield %n : tensor<?x4xf32>
  } else {
    scf.yield %x : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}

// The part of a tensor that begins, or ends, at a number that is not known, or is of a size that is not.
// CHECK-LABEL: @parts(
// CHECK:         cf.assert %{{.*}}, "'tensor.extract_slice' op expected a part inside of dimension 0"
// CHECK-NEXT:    tensor.extract_slice
// CHECK-NOT:     dimension 1
// CHECK:         cf.assert %{{.*}}, "'tensor.insert_slice' op expected a part inside of dimension 0"
// CHECK-NEXT:    tensor.insert_slice
func.func @parts(%x: tensor<16x4xf32>, %at: index, %step: index, %n: index) -> tensor<16x4xf32> {
  %a = tensor.extract_slice %x[%at, 0] [%n, 4] [%step, 1] : tensor<16x4xf32> to tensor<?x4xf32>
  %b = tensor.insert_slice %a into %x[2, 0] [%n, 4] [1, 1] : tensor<?x4xf32> into tensor<16x4xf32>
  return %b : tensor<16x4xf32>
}

// What constants and types say is not checked: divisors, shifts, steps, dimensions.
// CHECK-LABEL: @known(
// CHECK-NOT:     cf.assert
func.func @known(%x: tensor<4xf32>, %s: tensor<i64>, %n: index) -> (i64, index) {
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : i64
  %d = tensor.extract %s[] : tensor<i64>
  %e = tensor.extract %x[%c3] : tensor<4xf32>
  %q = arith.divsi %d, %c5 : i64
  %h = arith.shli %q, %c5 : i64
  %z = arith.constant 0 : index
  %size = tensor.dim %x, %z : tensor<4xf32>
  %r = scf.for %i = %z to %n step %c3 iter_args(%a = %size) -> index {
    scf.yield %a : index
  }
  return %h, %r : i64, index
}

// CHECK-LABEL: @numbers(
// CHECK:         %[[SOME:.*]] = arith.cmpi ne, %arg1
// CHECK:         cf.assert %[[SOME]], "'arith.divsi' op expected a divisor other than 0"
// CHECK-NEXT:    cf.assert %{{.*}}, "'arith.divsi' op expected a quotient within i64"
// CHECK-NEXT:    arith.divsi
// CHECK:         cf.assert %{{.*}}, "'arith.remui' op expected a divisor other than 0"
// CHECK-NEXT:    arith.remui
// CHECK:         cf.assert %{{.*}}, "'arith.shrsi' op expected a shift below 64"
// CHECK:         cf.assert %{{.*}}, "'arith.fptosi' op expected a number within i32"
// CHECK:         cf.assert %{{.*}}, "'scf.for' op expected a positive step"
// CHECK:         cf.assert %{{.*}}, "'tensor.dim' op expected an index in [0, 1)"
func.func @numbers(%a: i64, %b: i64, %e: i64, %f: f32, %i: index, %x: tensor<?xf32>) -> (i64, i64, i64, i32, index) {
  %q = arith.divsi %a, %b : i64
  %r = arith.remui %a, %e : i64
  %h = arith.shrsi %a, %b : i64
  %n = arith.fptosi %f : f32 to i32
  %z = arith.constant 0 : index
  %l = scf.for %k = %z to %i step %i iter_args(%c = %i) -> index {
    scf.yield %c : index
  }
  %d = tensor.dim %x, %i : tensor<?xf32>
  %m = arith.addi %l, %d : index
  return %q, %r, %h, %n, %m : i64, i64, i64, i32, index
}

// CHECK-LABEL: @more_than_there_is(
// CHECK:         cf.assert %{{.*}}, "'tensor.expand_shape' op expected parts of dimension 0"
// CHECK-NEXT:    tensor.expand_shape
func.func @more_than_there_is(%x: tensor<?xf32>, %n: index) -> tensor<2x?xf32> {
  %z = tensor.expand_shape %x [[0, 1]] output_shape [2, %n] : tensor<?xf32> into tensor<2x?xf32>
  return %z : tensor<2x?xf32>
}

// CHECK-LABEL: @sizes_of_loops(
// CHECK-SAME:    %[[X:.*]]: tensor<?xf32>, %[[Y:.*]]: tensor<?xf32>
// CHECK-DAG:     %[[N:.*]] = tensor.dim %[[X]]
// CHECK-DAG:     %[[M:.*]] = tensor.dim %[[Y]]
// CHECK:         cf.assert %{{.*}}, "'linalg.generic' op expected sizes that agree"
// CHECK:         linalg.generic
func.func @sizes_of_loops(%x: tensor<?xf32>, %y: tensor<?xf32>, %z: tensor<f32>) -> tensor<f32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a + 2)>, affine_map<(a) -> ()>],
                       iterator_types = ["reduction"]}
      ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%z : tensor<f32>) {
  ^bb0(%j: f32, %k: f32, %o: f32):
    %v = arith.addf %j, %k : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// What constants prove is not checked.
// CHECK-LABEL: @body(
// CHECK-NOT:     cf.assert
func.func @body(%x: tensor<4xi32>, %t: tensor<4xi32>) -> tensor<4xi32> {
  %e = tensor.empty() : tensor<4xi32>
  %y = linalg.map ins(%x : tensor<4xi32>) outs(%e : tensor<4xi32>) (%i: i32, %o: i32) {
    %c = arith.constant 3 : i32
    %d = arith.divsi %i, %c : i32
    linalg.yield %d : i32
  }
  return %y : tensor<4xi32>
}

// Of a map whose places no interval tells, all turns are gone through.
// CHECK-LABEL: func.func @turns(
// CHECK: %[[INSIDE:.*]] = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[SO_FAR:.*]] = %true
// CHECK-NEXT: %[[PLACE:.*]] = affine.apply #{{.*}}(%[[I]])
// CHECK-NEXT: %[[HERE:.*]] = arith.cmpi ult, %[[PLACE]], %{{.*}} : index
// CHECK-NEXT: %[[BOTH:.*]] = arith.andi %[[SO_FAR]], %[[HERE]] : i1
// CHECK-NEXT: scf.yield %[[BOTH]]
// CHECK: cf.assert %[[INSIDE]], "'linalg.generic' op expected sizes that agree"
// CHECK: linalg.generic
func.func @turns(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(a) -> (a floordiv 2)>, affine_map<(a) -> (a)>],
                       iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%y : tensor<?xf32>) {
  ^bb0(%j: f32, %o: f32):
    linalg.yield %j : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// What is checked already, under whatever message, is not checked again; another check is none, whatever it says.
// CHECK-LABEL: @checked(
// CHECK:         cf.assert %{{.*}}, "mine"
// CHECK-NEXT:    arith.divui
// CHECK-NEXT:    arith.remui
// CHECK:         cf.assert %{{.*}}, "'arith.remui' op expected a divisor other than 0"
// CHECK:         cf.assert %{{.*}}, "'arith.remui' op expected a divisor other than 0"
// CHECK-NEXT:    arith.remui
func.func @checked(%a: i64, %b: i64, %c: i64) -> (i64, i64, i64) {
  %z = arith.constant 0 : i64
  %some = arith.cmpi ne, %b, %z : i64
  cf.assert %some, "mine"
  %q = arith.divui %a, %b : i64
  %r = arith.remui %a, %b : i64
  cf.assert %some, "'arith.remui' op expected a divisor other than 0"
  %s = arith.remui %a, %c : i64
  return %q, %r, %s : i64, i64, i64
}

// What a body reads and divides by is looked at in every turn before, and limited in the body.
// CHECK-LABEL: @places(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32>, %[[I:.*]]: tensor<3xindex>
// CHECK:         %[[FINE:.*]] = linalg.generic {{.*}}iterator_types = ["reduction"]} ins(%[[I]], %{{.*}} : tensor<i8>)
// CHECK:           arith.cmpi ult, %{{.*}}, %c4 : index
// CHECK:         %[[NUMBER:.*]] = tensor.extract %[[FINE]][]
// CHECK:         %[[OK:.*]] = arith.cmpi ne, %[[NUMBER]]
// CHECK:         cf.assert %[[OK]], "'tensor.extract' op expected a place
// CHECK:         linalg.map
// CHECK:           %[[UPPER:.*]] = arith.minsi %{{.*}}, %c3 : index
// CHECK:           %[[LIMITED:.*]] = arith.maxsi %[[UPPER]]
// CHECK:           tensor.extract %[[X]][%[[LIMITED]]]
func.func @places(%x: tensor<4xf32>, %n: tensor<3xindex>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %y = linalg.map ins(%n : tensor<3xindex>) outs(%e : tensor<3xf32>) (%i: index, %o: f32) {
    %d = tensor.extract %x[%i] : tensor<4xf32>
    linalg.yield %d : f32
  }
  return %y : tensor<3xf32>
}

// A place in a tensor of unknown size, and a divisor that is read there: that there are elements is checked first.
// CHECK-LABEL: @chain(
// CHECK-SAME:    %{{.*}}: tensor<?xi64>, %[[Z:.*]]: tensor<?xi64>
// CHECK:         %[[N:.*]] = tensor.dim %[[Z]]
// CHECK:         %[[SOME:.*]] = arith.cmpi sgt, %[[N]]
// CHECK:         arith.ori %[[SOME]]
// CHECK-NEXT:    cf.assert %{{.*}}, "'tensor.extract' op expected a place
// CHECK:         cf.assert %{{.*}}, "'tensor.extract' op expected a place
// CHECK:         cf.assert %{{.*}}, "'arith.divsi' op expected a divisor other than 0 and a quotient within i64
// CHECK-NOT:     cf.assert
// CHECK:           arith.divsi
func.func @chain(%d: tensor<?xi64>, %z: tensor<?xi64>) -> tensor<?xi64> {
  %0 = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
      ins(%d : tensor<?xi64>) outs(%d : tensor<?xi64>) {
  ^bb0(%j: i64, %o: i64):
    %k = arith.index_cast %j : i64 to index
    %v = tensor.extract %z[%k] : tensor<?xi64>
    %w = arith.divsi %j, %v : i64
    linalg.yield %w : i64
  } -> tensor<?xi64>
  return %0 : tensor<?xi64>
}
