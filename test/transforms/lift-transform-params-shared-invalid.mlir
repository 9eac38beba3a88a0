// RUN: relax-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(relax-lift-transform-params{shared=true})'

func.func @a(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<4xf32>
}
// expected-error@+1 {{'func.func' op expected one type for the shared weight 'w', got 'tensor<4xf32>' and 'tensor<5xf32>'}}
func.func @b(%w: tensor<5xf32> {relax.name = "w"}) -> tensor<5xf32> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<5xf32>
}

// -----

func.func @c(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<4xf32>
}
// expected-error@+1 {{'func.func' op expected one type for the shared weight 'w', got 'tensor<4xf32>' and 'tensor<4xf16>'}}
func.func @d(%w: tensor<4xf16> {relax.name = "w"}) -> tensor<4xf16> attributes {relax.num_input = 0 : i64} {
  return %w : tensor<4xf16>
}

// -----

// A cast defines "m", a call is typed by it, and another function's weight has an "m" of its own: one of them needs a
// new name.
func.func @main(%x: tensor<2x2xf32>, %w: tensor<2x2xf32> {relax.name = "w"}) -> tensor<2x2xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.match_cast"(%w) : (tensor<2x2xf32>) -> tensor<?x2xf32, {sym = ["m"]}>
  // expected-error @+1 {{'func.call' op expected a symbol that no other function's weights have, got 'm': inline it first}}
  %1 = call @negative(%0) : (tensor<?x2xf32, {sym = ["m"]}>) -> tensor<?x2xf32, {sym = ["m"]}>
  %2 = "relax.match_cast"(%1) : (tensor<?x2xf32, {sym = ["m"]}>) -> tensor<2x2xf32>
  return %2 : tensor<2x2xf32>
}
func.func @decode(%x: tensor<2xf32>, %v: tensor<?x2xf32, {sym = ["m"]}> {relax.name = "v"})
    -> tensor<?x2xf32, {sym = ["m"]}>
    attributes {relax.num_input = 1 : i64} {
  return %v : tensor<?x2xf32, {sym = ["m"]}>
}
func.func private @negative(%x: tensor<?x2xf32, {sym = ["m"]}>) -> tensor<?x2xf32, {sym = ["m"]}>
    attributes {no_inline} {
  %0 = "relax.negative"(%x) : (tensor<?x2xf32, {sym = ["m"]}>) -> tensor<?x2xf32, {sym = ["m"]}>
  return %0 : tensor<?x2xf32, {sym = ["m"]}>
}

// -----

// Its result does not mention the symbol, what it takes does.
func.func @main(%x: tensor<2x2xf32>, %w: tensor<2x2xf32> {relax.name = "w"}) -> tensor<2xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.match_cast"(%w) : (tensor<2x2xf32>) -> tensor<?x2xf32, {sym = ["m"]}>
  // expected-error @+1 {{'func.call' op expected a symbol that no other function's weights have, got 'm': inline it first}}
  %1 = call @sum(%0) : (tensor<?x2xf32, {sym = ["m"]}>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func @decode(%x: tensor<2xf32>, %v: tensor<?x2xf32, {sym = ["m"]}> {relax.name = "v"})
    -> tensor<?x2xf32, {sym = ["m"]}>
    attributes {relax.num_input = 1 : i64} {
  return %v : tensor<?x2xf32, {sym = ["m"]}>
}
func.func private @sum(%x: tensor<?x2xf32, {sym = ["m"]}>) -> tensor<2xf32> attributes {no_inline} {
  %0 = "relax.sum"(%x) {axis = array<i64: 0>} : (tensor<?x2xf32, {sym = ["m"]}>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @first(%x: tensor<4xf32>,
    %w: tuple<tensor<4xf32>> {relax.name = "all", relax.bundled = [{relax.name = "a"}]}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = builtin.unrealized_conversion_cast %w : tuple<tensor<4xf32>> to tensor<4xf32>
  %1 = "relax.negative"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relax.add"(%x, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// expected-error@+1 {{'func.func' op expected one tuple for the shared weights 'all', got those of a and b}}
func.func @second(%x: tensor<4xf32>,
    %w: tuple<tensor<4xf32>> {relax.name = "all", relax.bundled = [{relax.name = "b"}]}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = builtin.unrealized_conversion_cast %w : tuple<tensor<4xf32>> to tensor<4xf32>
  %1 = "relax.negative"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relax.add"(%x, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
