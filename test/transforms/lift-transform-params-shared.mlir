// RUN: relax-opt %s --split-input-file --relax-lift-transform-params=shared=true | filecheck %s
// RUN: relax-opt %s --split-input-file --relax-lift-transform-params=shared=true \
// RUN:     --relax-lift-transform-params=shared=true | filecheck %s
// RUN: relax-opt %s --split-input-file --relax-lift-transform-params='shared=true functions=a,b' \
// RUN:   | filecheck %s --check-prefix=SOME

// The same computation twice in one function, and in another order in the other one: prepared once, for both.
// CHECK-LABEL: @transform_params
// CHECK-SAME:    -> (tensor<4x4xf32> {relax.name = "w.permute_dims"}, tensor<4x4xf32> {relax.name = "v.permute_dims"})
// CHECK-COUNT-2: relax.permute_dims
// CHECK-NOT:   relax.permute_dims"(
// CHECK:       @a(%arg0: tensor<4x4xf32> {relax.name = "w.permute_dims"}, %arg1: tensor<4x4xf32>
// CHECK-SAME:       {relax.name = "v.permute_dims"})
// CHECK:       @b(%arg0: tensor<4x4xf32> {relax.name = "v.permute_dims"}, %arg1: tensor<4x4xf32>
// CHECK-SAME:       {relax.name = "w.permute_dims"})
func.func @a(%w: tensor<4x4xf32> {relax.name = "w"}, %v: tensor<4x4xf32> {relax.name = "v"})
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) attributes {relax.num_input = 0 : i64} {
  %0 = "relax.permute_dims"(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relax.permute_dims"(%v) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "relax.permute_dims"(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
func.func @b(%v: tensor<4x4xf32> {relax.name = "v"}, %w: tensor<4x4xf32> {relax.name = "w"})
    -> (tensor<4x4xf32>, tensor<4x4xf32>) attributes {relax.num_input = 0 : i64} {
  %1 = "relax.permute_dims"(%v) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = "relax.permute_dims"(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Functions without weight math in common, one that does not read a weight of its own, and a cast: each gets its part.
// CHECK-LABEL: @transform_params
// CHECK-SAME:    -> (tensor<4xf32> {relax.name = "w.exp"}, tensor<?xf32, {sym = ["k"]}>
// CHECK-SAME:    {relax.name = "v.match_cast.exp"})
// CHECK:       @a(%arg0: tensor<4xf32> {relax.name = "w.exp"})
// CHECK:       @b(%arg0: tensor<?xf32, {sym = ["k"]}> {relax.name = "v.match_cast.exp"})
func.func @a(%w: tensor<4xf32> {relax.name = "w"}, %v: tensor<?xf32> {relax.name = "v"}) -> tensor<4xf32>
    attributes {relax.num_input = 0 : i64} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @b(%w: tensor<4xf32> {relax.name = "w"}, %v: tensor<?xf32> {relax.name = "v"}) -> tensor<?xf32, {sym = ["k"]}>
    attributes {relax.num_input = 0 : i64} {
  %0 = "relax.match_cast"(%v) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k"]}>
  %1 = "relax.exp"(%0) : (tensor<?xf32, {sym = ["k"]}>) -> tensor<?xf32, {sym = ["k"]}>
  return %1 : tensor<?xf32, {sym = ["k"]}>
}

// -----

// Functions that become equal are both kept. Only those asked for share.
// CHECK-LABEL: @transform_params
// CHECK:       @a(
// CHECK:       @b(
// CHECK:       @c(%arg0: tensor<4xf32> {relax.name = "w.exp"})
// SOME-LABEL: func.func @transform_params
// SOME-SAME:    relax.transform_for = [@a, @b]
// SOME:       @c(%arg0: tensor<4xf32> {relax.name = "w"})
// SOME:         relax.exp
func.func @a(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @b(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @c(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A symbol that a cast in one function defines is another one than a symbol of the same name in another function's
// weights.
// CHECK-LABEL: func.func @transform_params
// CHECK: "relax.match_cast"(%{{.*}}) : (tensor<?x2xf32>) -> tensor<?x2xf32, {sym = ["m_1"]}>
// CHECK: "relax.exp"(%{{.*}}) : (tensor<?x2xf32, {sym = ["m_1"]}>) -> tensor<?x2xf32, {sym = ["m_1"]}>
// CHECK: func.func @a(%{{.*}}: tensor<2x2xf32> {{.*}}, %{{.*}}: tensor<?x2xf32, {sym = ["m"]}>
// CHECK-SAME: {relax.name = "w.match_cast.exp"})
func.func @a(%x: tensor<2x2xf32> {relax.name = "x"}, %w: tensor<?x2xf32> {relax.name = "w"})
    -> tensor<?x2xf32, {sym = ["m"]}>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.match_cast"(%w) : (tensor<?x2xf32>) -> tensor<?x2xf32, {sym = ["m"]}>
  %1 = "relax.exp"(%0) : (tensor<?x2xf32, {sym = ["m"]}>) -> tensor<?x2xf32, {sym = ["m"]}>
  return %1 : tensor<?x2xf32, {sym = ["m"]}>
}
func.func @b(%x: tensor<2xf32> {relax.name = "x"}, %v: tensor<?x2xf32, {sym = ["m"]}> {relax.name = "v"})
    -> tensor<?x2xf32, {sym = ["m"]}> attributes {relax.num_input = 1 : i64} {
  return %v : tensor<?x2xf32, {sym = ["m"]}>
}
