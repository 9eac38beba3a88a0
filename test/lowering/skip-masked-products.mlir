// RUN: relax-opt %s --relax-skip-masked-products | filecheck %s
// RUN: relax-opt %s --relax-skip-masked-products --relax-skip-masked-products | filecheck %s

// What is computed for the product alone goes with it, and so does the choice; the mask stays.
// CHECK-LABEL: func.func @alone(
// CHECK-SAME: %[[X:[^:]*]]: {{[^,]*}}, {{.*}}%[[M:[^:]*]]: tensor<{{[^,]*}}i1
// CHECK: %[[ANY:.*]] = tensor.extract
// CHECK: %[[R:.*]] = scf.if %[[ANY]]
// CHECK: relax.abs
// CHECK: %[[P:.*]] = "relax.matmul"
// CHECK: %[[W:.*]] = "relax.where"(%[[M]], %[[P]], %[[X]])
// CHECK: scf.yield %[[W]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[X]]
// CHECK: return %[[R]]
func.func @alone(%x: tensor<?x8xf32, {sym = ["n"]}>, %m: tensor<?x1xi1, {sym = ["n"]}>, %w: tensor<8x8xf32>)
    -> tensor<?x8xf32, {sym = ["n"]}> attributes {relax.num_input = 2} {
  %0 = "relax.abs"(%x) : (tensor<?x8xf32, {sym = ["n"]}>) -> tensor<?x8xf32, {sym = ["n"]}>
  %1 = "relax.matmul"(%0, %w) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<8x8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  %2 = "relax.where"(%m, %1, %x) : (tensor<?x1xi1, {sym = ["n"]}>, tensor<?x8xf32, {sym = ["n"]}>,
      tensor<?x8xf32, {sym = ["n"]}>) -> tensor<?x8xf32, {sym = ["n"]}>
  return %2 : tensor<?x8xf32, {sym = ["n"]}>
}

// What others read stays, and so does what a call can fail in; with it what it reads.
// CHECK-LABEL: func.func @shared(
// CHECK: %[[A:.*]] = "relax.abs"
// CHECK: %[[T:.*]] = "relax.take"(%[[A]]
// CHECK: scf.if
// CHECK-NEXT: %[[P:.*]] = "relax.matmul"(%[[T]]
// CHECK: return %{{.*}}, %[[A]]
func.func @shared(%x: tensor<4x8xf32>, %i: tensor<4xi64>, %m: tensor<4x1xi1>, %w: tensor<8x8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>) attributes {relax.num_input = 3} {
  %0 = "relax.abs"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "relax.take"(%0, %i) {axis = 0} : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %2 = "relax.matmul"(%1, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %3 = "relax.where"(%m, %2, %x) : (tensor<4x1xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %3, %0 : tensor<4x8xf32>, tensor<4x8xf32>
}

// A mask of elements, a product of inputs, no weights at all, the value that is chosen otherwise.
// CHECK-LABEL: func.func @elements(
// CHECK-NOT: scf.if
// CHECK-LABEL: func.func @inputs(
// CHECK-NOT: scf.if
// CHECK-LABEL: func.func @plain(
// CHECK-NOT: scf.if
// CHECK-LABEL: func.func @otherwise(
// CHECK-NOT: scf.if
func.func @elements(%x: tensor<4x8xf32>, %m: tensor<4x8xi1>, %w: tensor<8x8xf32>) -> tensor<4x8xf32>
    attributes {relax.num_input = 2} {
  %0 = "relax.matmul"(%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = "relax.where"(%m, %0, %x) : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
func.func @inputs(%x: tensor<8x8xf32>, %m: tensor<8x1xi1>, %w: tensor<8x8xf32>) -> tensor<8x8xf32>
    attributes {relax.num_input = 2} {
  %0 = "relax.matmul"(%x, %x) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = "relax.where"(%m, %0, %w) : (tensor<8x1xi1>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
func.func @plain(%x: tensor<8x8xf32>, %m: tensor<8x1xi1>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = "relax.matmul"(%x, %w) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = "relax.where"(%m, %0, %x) : (tensor<8x1xi1>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
func.func @otherwise(%x: tensor<8x8xf32>, %m: tensor<8x1xi1>, %w: tensor<8x8xf32>) -> tensor<8x8xf32>
    attributes {relax.num_input = 2} {
  %0 = "relax.matmul"(%x, %w) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = "relax.where"(%m, %0, %0) : (tensor<8x1xi1>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
