// RUN: relax-opt %s --relax-expand-matmul-of-sum | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-expand-matmul-of-sum{always=true})' \
// RUN:   | filecheck %s --check-prefix=ALWAYS
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-expand-matmul-of-sum,relax-adjust-matmul-order)' \
// RUN:   | filecheck %s --check-prefix=ADJUSTED

// A weight and an adapter that comes with the request.
// ADJUSTED-LABEL: @adapter(
// ADJUSTED-NEXT:    %0 = "relax.matmul"(%arg0, %arg3)
// ADJUSTED-NEXT:    %1 = "relax.matmul"(%arg0, %arg1)
// ADJUSTED-NEXT:    %2 = "relax.matmul"(%1, %arg2)
// ADJUSTED-NEXT:    %3 = "relax.add"(%0, %2)
// CHECK-LABEL: @adapter(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg1, %arg2) : ({{.*}}) -> tensor<64x64xf32
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %arg3) : ({{.*}}) -> tensor<?x64xf32
// CHECK-NEXT:    %2 = "relax.matmul"(%arg0, %0) : ({{.*}}) -> tensor<?x64xf32
// CHECK-NEXT:    %3 = "relax.add"(%1, %2)
// CHECK-NEXT:    return %3
func.func @adapter(%x: tensor<?x64xf32, {sym = ["n"]}> {relax.name = "x"}, %a: tensor<64x2xf32> {relax.name = "a"},
    %b: tensor<2x64xf32> {relax.name = "b"}, %w: tensor<64x64xf32> {relax.name = "w"})
    -> tensor<?x64xf32, {sym = ["n"]}> attributes {relax.num_input = 3 : i64, relax.symbol_ranges = {n = [1, 32]}} {
  %0 = "relax.matmul"(%a, %b) : (tensor<64x2xf32>, tensor<2x64xf32>) -> tensor<64x64xf32>
  %1 = "relax.add"(%w, %0) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "relax.matmul"(%x, %1) : (tensor<?x64xf32, {sym = ["n"]}>, tensor<64x64xf32>) -> tensor<?x64xf32, {sym = ["n"]}>
  return %2 : tensor<?x64xf32, {sym = ["n"]}>
}

// Two weights in the sum are added up for lifting; the product may be transposed.
// CHECK-LABEL: @several_weights(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg2, %arg1) : ({{.*}}) -> tensor<64x64xf32
// CHECK-NEXT:    %1 = "relax.permute_dims"(%0)
// CHECK-NEXT:    %2 = "relax.add"(%arg3, %arg4)
// CHECK-NEXT:    %3 = "relax.matmul"(%arg0, %2) : ({{.*}}) -> tensor<1x64xf32
// CHECK-NEXT:    %4 = "relax.matmul"(%arg0, %1) : ({{.*}}) -> tensor<1x64xf32
// CHECK-NEXT:    %5 = "relax.add"(%3, %4)
// CHECK-NEXT:    return %5
func.func @several_weights(%x: tensor<1x64xf32> {relax.name = "x"}, %a: tensor<2x64xf32> {relax.name = "a"},
    %b: tensor<64x2xf32> {relax.name = "b"}, %v: tensor<64x64xf32> {relax.name = "v"}, %w: tensor<64x64xf32>
    {relax.name = "w"}) -> tensor<1x64xf32> attributes {relax.num_input = 3 : i64} {
  %0 = "relax.matmul"(%b, %a) : (tensor<64x2xf32>, tensor<2x64xf32>) -> tensor<64x64xf32>
  %1 = "relax.permute_dims"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "relax.add"(%v, %1) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = "relax.add"(%2, %w) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = "relax.matmul"(%x, %3) : (tensor<1x64xf32>, tensor<64x64xf32>) -> tensor<1x64xf32>
  return %4 : tensor<1x64xf32>
}

// Left alone: lifting prepares the sum.
// ALWAYS-LABEL: @liftable(
// ALWAYS-COUNT-2: relax.matmul
// ALWAYS-NOT:     relax.matmul
// ALWAYS:         return
// CHECK-LABEL: @liftable(
// CHECK-NEXT:    %0 = "relax.matmul"(%arg1, %arg2) : ({{.*}}) -> tensor<64x64xf32
// CHECK-NEXT:    %1 = "relax.add"(%arg3, %0)
// CHECK-NEXT:    %2 = "relax.matmul"(%arg0, %1) : ({{.*}}) -> tensor<1x64xf32
// CHECK-NEXT:    return %2
func.func @liftable(%x: tensor<1x64xf32> {relax.name = "x"}, %a: tensor<64x2xf32> {relax.name = "a"},
    %b: tensor<2x64xf32> {relax.name = "b"}, %w: tensor<64x64xf32> {relax.name = "w"}) -> tensor<1x64xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.matmul"(%a, %b) : (tensor<64x2xf32>, tensor<2x64xf32>) -> tensor<64x64xf32>
  %1 = "relax.add"(%w, %0) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "relax.matmul"(%x, %1) : (tensor<1x64xf32>, tensor<64x64xf32>) -> tensor<1x64xf32>
  return %2 : tensor<1x64xf32>
}

// Left alone by default: it may take more operations.
// ALWAYS-LABEL: @not_proven(
// ALWAYS-NEXT:    %0 = "relax.matmul"(%arg0, %arg2)
// ALWAYS-NEXT:    %1 = "relax.matmul"(%arg0, %arg1)
// ALWAYS-NEXT:    %2 = "relax.add"(%0, %1)
// CHECK-LABEL: @not_proven(
// CHECK-NEXT:    %0 = "relax.add"(%arg1, %arg2)
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %0) : ({{.*}}) -> tensor<?x4xf32
// CHECK-NEXT:    return %1
func.func @not_proven(%x: tensor<?x4xf32, {sym = ["n"]}> {relax.name = "x"}, %d: tensor<4x4xf32> {relax.name = "d"},
    %w: tensor<4x4xf32> {relax.name = "w"}) -> tensor<?x4xf32, {sym = ["n"]}> attributes {relax.num_input = 2 : i64} {
  %0 = "relax.add"(%d, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x4xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
  return %1 : tensor<?x4xf32, {sym = ["n"]}>
}

// Left alone: a sum that is read twice, one that broadcasts, integers that wrap before they are widened.
// ALWAYS-LABEL: @stay(
// ALWAYS-COUNT-4: relax.matmul
// ALWAYS-NOT:     relax.matmul
// ALWAYS:         return
// CHECK-LABEL: @stay(
// CHECK-NEXT:    %0 = "relax.add"(%arg1, %arg4)
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %0) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %2 = "relax.matmul"(%arg1, %0) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %3 = "relax.add"(%arg4, %arg2)
// CHECK-NEXT:    %4 = "relax.matmul"(%arg0, %3) : ({{.*}}) -> tensor<4x4xf32
// CHECK-NEXT:    %5 = "relax.add"(%arg3, %arg5)
// CHECK-NEXT:    %6 = "relax.matmul"(%arg3, %5) {out_dtype = i32} : ({{.*}}) -> tensor<4x4xi32
// CHECK-NEXT:    return %1, %2, %4, %6
func.func @stay(%x: tensor<4x4xf32> {relax.name = "x"}, %y: tensor<4x4xf32> {relax.name = "y"}, %z: tensor<4xf32>
    {relax.name = "z"}, %i: tensor<4x4xi8> {relax.name = "i"}, %w: tensor<4x4xf32> {relax.name = "w"},
    %q: tensor<4x4xi8> {relax.name = "q"}) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xi32>)
    attributes {relax.num_input = 4 : i64} {
  %0 = "relax.add"(%y, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "relax.matmul"(%y, %0) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = "relax.add"(%w, %z) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %4 = "relax.matmul"(%x, %3) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = "relax.add"(%i, %q) : (tensor<4x4xi8>, tensor<4x4xi8>) -> tensor<4x4xi8>
  %6 = "relax.matmul"(%i, %5) {out_dtype = i32} : (tensor<4x4xi8>, tensor<4x4xi8>) -> tensor<4x4xi32>
  return %1, %2, %4, %6 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xi32>
}
