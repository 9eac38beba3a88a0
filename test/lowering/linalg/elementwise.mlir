// RUN: relax-opt %s --relax-to-linalg --split-input-file | filecheck %s

// Narrow floats compute in f32 and round once; the size comes from the argument.
func.func @narrow(%x: tensor<?x64xbf16, {sym = ["n"]}>) -> tensor<?x64xbf16, {sym = ["n"]}> {
  %0 = "relax.exp"(%x) : (tensor<?x64xbf16, {sym = ["n"]}>) -> tensor<?x64xbf16, {sym = ["n"]}>
  return %0 : tensor<?x64xbf16, {sym = ["n"]}>
}

// CHECK: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @narrow(
// CHECK-SAME: %[[X:.*]]: tensor<?x64xbf16>) -> tensor<?x64xbf16>
// CHECK: %[[N:.*]] = tensor.dim %[[X]]
// CHECK: %[[OUT:.*]] = tensor.empty(%[[N]]) : tensor<?x64xbf16>
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[ID]]], iterator_types = ["parallel", "parallel"]} ins(%[[X]]
// CHECK-SAME: outs(%[[OUT]]
// CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : bf16 to f32
// CHECK: %[[EXP:.*]] = math.exp %[[WIDE]] : f32
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[EXP]] : f32 to bf16
// CHECK: linalg.yield %[[ROUNDED]] : bf16

// -----

// Broadcasting is an index map: a missing dimension is not read, one of size one is read at 0.
func.func @broadcast(%x: tensor<4x1x5xf32>, %y: tensor<3x1xf32>) -> tensor<4x3x5xf32> {
  %0 = "relax.add"(%x, %y) : (tensor<4x1x5xf32>, tensor<3x1xf32>) -> tensor<4x3x5xf32>
  return %0 : tensor<4x3x5xf32>
}

// CHECK-DAG: #[[X_MAP:.*]] = affine_map<(d0, d1, d2) -> (d0, 0, d2)>
// CHECK-DAG: #[[Y_MAP:.*]] = affine_map<(d0, d1, d2) -> (d1, 0)>
// CHECK-DAG: #[[OUT_MAP:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-LABEL: func.func @broadcast(
// CHECK: linalg.generic {indexing_maps = [#[[X_MAP]], #[[Y_MAP]], #[[OUT_MAP]]]
// CHECK: arith.addf

// -----

// Truth values are bytes of 0 or 1.
func.func @truth(%x: tensor<4xf32>, %m: tensor<4xi1>) -> tensor<4xi1> {
  %0 = "relax.isnan"(%x) : (tensor<4xf32>) -> tensor<4xi1>
  %1 = "relax.logical_and"(%0, %m) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return %1 : tensor<4xi1>
}

// CHECK-LABEL: func.func @truth(
// CHECK-SAME: tensor<4xf32>, %[[M:.*]]: tensor<4xi8>) -> tensor<4xi8>
// CHECK: arith.cmpf une
// CHECK: arith.extui %{{.*}} : i1 to i8
// CHECK: arith.cmpi ne, %{{.*}} : i8
// CHECK: arith.cmpi ne, %{{.*}} : i8
// CHECK: arith.andi %{{.*}} : i1
// CHECK: arith.extui %{{.*}} : i1 to i8

// -----

// A constant operand is a number in the body, and an integer division by it needs no guard.
func.func @constant(%x: tensor<4xi32>) -> tensor<4xi32> {
  %c = "relax.full"() {value = 3 : i64} : () -> tensor<i32>
  %0 = "relax.divide"(%x, %c) : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// CHECK-LABEL: func.func @constant(
// CHECK: linalg.generic {{.*}} ins(%{{[a-z0-9]*}} : tensor<4xi32>) outs
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[THREE:.*]] = arith.constant 3 : i32
// CHECK-NEXT: arith.divsi %{{.*}}, %[[THREE]] : i32
// CHECK-NEXT: linalg.yield

// -----

// Dimensions of which nothing is known are compared at run time.
func.func @unknown(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "relax.add"(%x, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK: module attributes {relax.checks = ["{{.*}}'relax.add' op expected broadcastable shapes, got [?] and [?]:
// CHECK-SAME: expected dimension 0 of rhs to be {d0_0}, got {d1_0}"]}
// CHECK-LABEL: func.func @unknown(
// CHECK: %[[SAME:.*]] = arith.cmpi eq
// CHECK: %[[NUMBER:.*]] = arith.constant 0 : i64
// CHECK: call @relax_check(%[[SAME]], %[[NUMBER]]) : (i1, i64) -> ()
// CHECK: func.func private @relax_check(i1, i64)
