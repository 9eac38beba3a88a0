// RUN: relax-opt %s --relax-keep-checks | filecheck %s
// RUN: relax-opt %s --relax-keep-checks --relax-keep-checks | filecheck %s
// RUN: relax-opt %s --relax-keep-checks --relax-canonicalize --cse --relax-to-linalg --canonicalize --cse \
// RUN:   | filecheck %s --check-prefix=LINALG

// What is read by the result is left alone, and so is what fails for no operands.
// CHECK-LABEL: func.func @take(
// CHECK-NEXT: %[[A:.*]] = "relax.take"
// CHECK-NEXT: "relax.keep"(%[[A]])
// CHECK-NEXT: relax.abs
// CHECK-NEXT: %[[B:.*]] = "relax.take"
// CHECK-NEXT: relax.exp
// CHECK-NEXT: return
// LINALG-LABEL: func.func @take(
// LINALG: call @relax_check
// LINALG: call @relax_check
// LINALG-NOT: relax.keep
// LINALG: return
func.func @take(%x: tensor<4xf32>, %i: tensor<2xi64>, %j: tensor<3xi64>) -> tensor<3xf32> {
  %0 = "relax.take"(%x, %i) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  %1 = "relax.abs"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = "relax.take"(%x, %j) : (tensor<4xf32>, tensor<3xi64>) -> tensor<3xf32>
  %3 = "relax.exp"(%2) : (tensor<3xf32>) -> tensor<3xf32>
  return %3 : tensor<3xf32>
}


// Sizes that types leave open, and those that symbols may make impossible.
// CHECK-LABEL: func.func @sizes(
// CHECK: relax.subtract
// CHECK-NEXT: relax.keep
// CHECK-NEXT: relax.strided_slice
// CHECK-NEXT: relax.keep
// CHECK-NEXT: relax.prim_value
// CHECK-NEXT: relax.keep
// CHECK-NEXT: tensor.cast
// CHECK-NEXT: relax.keep
// CHECK-NEXT: relax.add
// CHECK-NEXT: return
func.func @sizes(%x: tensor<?xf32, {sym = ["n"]}>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "relax.subtract"(%y, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<2xf32>
  %1 = "relax.strided_slice"(%x) {axes = array<i64: 0>, begin = [5], end = ["n"]}
    : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n - 5"]}>
  %2 = "relax.prim_value"() {value = ["4 // n"]} : () -> index
  %3 = tensor.cast %y : tensor<?xf32> to tensor<3xf32>
  %4 = "relax.add"(%x, %x) : (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>)
    -> tensor<?xf32, {sym = ["n"]}>
  return %y : tensor<?xf32>
}

// What a branch or a loop hands on is read where its result is.
// CHECK-LABEL: func.func @regions(
// CHECK: scf.if
// CHECK-NEXT: %[[A:.*]] = "relax.take"
// CHECK-NEXT: %[[B:.*]] = "relax.take"
// CHECK-NEXT: "relax.keep"(%[[B]])
// CHECK-NEXT: scf.yield %[[A]], %[[B]]
// CHECK: scf.for
// CHECK-NEXT: %[[C:.*]] = "relax.take"
// CHECK-NEXT: %[[D:.*]] = "relax.take"
// CHECK-NEXT: "relax.keep"(%[[D]])
// CHECK-NEXT: scf.yield %[[C]], %[[D]]
func.func @regions(%x: tensor<2xf32>, %i: tensor<2xi64>, %c: i1) -> (tensor<2xf32>, tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0:2 = scf.if %c -> (tensor<2xf32>, tensor<2xf32>) {
    %2 = "relax.take"(%x, %i) : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
    %3 = "relax.take"(%2, %i) : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
    scf.yield %2, %3 : tensor<2xf32>, tensor<2xf32>
  } else {
    scf.yield %x, %x : tensor<2xf32>, tensor<2xf32>
  }
  %1:2 = scf.for %k = %c0 to %c4 step %c1 iter_args(%a = %x, %b = %x) -> (tensor<2xf32>, tensor<2xf32>) {
    %2 = "relax.take"(%a, %i) : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
    %3 = "relax.take"(%b, %i) : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
    scf.yield %2, %3 : tensor<2xf32>, tensor<2xf32>
  }
  return %0#0, %1#0 : tensor<2xf32>, tensor<2xf32>
}

// The same of a loop with a condition, in both of its parts.
// CHECK-LABEL: func.func @while(
// CHECK: scf.while
// CHECK-NEXT: %[[A:.*]] = "relax.take"
// CHECK-NEXT: %[[B:.*]] = "relax.take"
// CHECK-NEXT: "relax.keep"(%[[B]])
// CHECK-NEXT: tensor.extract
// CHECK: scf.condition(%{{.*}}) %[[A]], %[[B]]
// CHECK: ^bb0
// CHECK-NEXT: %[[C:.*]] = "relax.take"
// CHECK-NEXT: %[[D:.*]] = "relax.take"
// CHECK-NEXT: "relax.keep"(%[[D]])
// CHECK-NEXT: scf.yield %[[C]], %[[D]]
func.func @while(%x: tensor<2xf32>, %i: tensor<2xi64>, %go: tensor<i1>) -> tensor<2xf32> {
  %0:2 = scf.while (%a = %x, %b = %x) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %2 = "relax.take"(%a, %i) : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
    %3 = "relax.take"(%b, %i) : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
    %c = tensor.extract %go[] : tensor<i1>
    scf.condition(%c) %2, %3 : tensor<2xf32>, tensor<2xf32>
  } do {
  ^bb0(%a: tensor<2xf32>, %b: tensor<2xf32>):
    %2 = "relax.take"(%a, %i) : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
    %3 = "relax.take"(%b, %i) : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
    scf.yield %2, %3 : tensor<2xf32>, tensor<2xf32>
  }
  return %0#0 : tensor<2xf32>
}
