// RUN: relax-opt %s --split-input-file --relax-compute-shape-values --cse | filecheck %s

// An expression of symbols that are dimensions, and a constant.
// CHECK-LABEL: @symbols
// CHECK:         %[[M:.*]] = tensor.dim %arg1, %c0 : tensor<?xf32, {sym = ["m"]}>
// CHECK:         %[[N:.*]] = tensor.dim %arg0, %c1 : tensor<3x?xf32, {sym = ["n"]}>
// CHECK:         %[[P:.*]] = arith.muli %[[M]], %[[N]] : index
// CHECK:         %[[R:.*]] = arith.subi %[[P]], %{{.*}} : index
// CHECK:         %[[C:.*]] = arith.constant 7 : index
// CHECK:         return %[[R]], %[[C]]
func.func @symbols(%x: tensor<3x?xf32, {sym = ["n"]}>, %y: tensor<?xf32, {sym = ["m"]}>) -> (index, index) {
  %0 = "relax.prim_value"() {value = ["n * m - 2"]} : () -> index
  %1 = "relax.prim_value"() {value = [7]} : () -> index
  return %0, %1 : index, index
}

// -----

// Where only an expression is bound it is solved for the symbol; m comes first, then n of what is left.
// CHECK-LABEL: @solved
// CHECK:         %[[D:.*]] = tensor.dim %arg0
// CHECK:         %[[M:.*]] = tensor.dim %arg1
// CHECK:         %[[REST:.*]] = arith.addi %[[M]], %{{.*}} : index
// CHECK:         %[[TWICE:.*]] = arith.subi %[[D]], %[[REST]] : index
// CHECK:         %[[N:.*]] = arith.floordivsi %[[TWICE]], %c2
// CHECK:         return %[[N]]
func.func @solved(%x: tensor<?xf32, {sym = ["n * 2 + m + 1"]}>, %y: tensor<?xf32, {sym = ["m"]}>) -> index {
  %0 = "relax.prim_value"() {value = ["n"]} : () -> index
  return %0 : index
}

// -----

// An expression that is a dimension as a whole needs no symbol.
// CHECK-LABEL: @whole
// CHECK:         %[[D:.*]] = tensor.dim %arg0
// CHECK-NEXT:    return %[[D]]
func.func @whole(%x: tensor<?xf32, {sym = ["n * m"]}>) -> index {
  %0 = "relax.prim_value"() {value = ["m * n"]} : () -> index
  return %0 : index
}

// -----

// A symbol of a match_cast, in the regions after it.
// CHECK-LABEL: @defined
// CHECK:         %[[X:.*]] = "relax.match_cast"(%arg0)
// CHECK:         scf.if
// CHECK:           %[[D:.*]] = tensor.dim %[[X]]
// CHECK-NEXT:      scf.yield %[[D]]
func.func @defined(%x: tensor<?xf32>, %c: i1, %i: index) -> index {
  %0 = "relax.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k"]}>
  %1 = scf.if %c -> index {
    %2 = "relax.prim_value"() {value = ["k"]} : () -> index
    scf.yield %2 : index
  } else {
    scf.yield %i : index
  }
  return %1 : index
}
