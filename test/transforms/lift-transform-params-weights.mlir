// RUN: relax-opt %s --split-input-file --relax-lift-transform-params | filecheck %s
// RUN: relax-opt %s --split-input-file --relax-lift-transform-params --relax-lift-transform-params | filecheck %s

// A tied weight: rows are looked up in it as it is, and the product wants it transposed; both are prepared weights.
// CHECK-LABEL: @tied_transform_params
// CHECK-SAME:    -> (tensor<8x4xf32> {relax.name = "embed"}, tensor<4x8xf32> {relax.name = "embed.permute_dims"})
// CHECK:       @tied(
// CHECK-NEXT:    "relax.take"(%arg1, %arg0)
// CHECK-NEXT:    "relax.matmul"(%{{.*}}, %arg2)
func.func @tied(%i: tensor<3xi64>, %w: tensor<8x4xf32> {relax.name = "embed"}) -> tensor<3x8xf32>
    attributes {relax.num_input = 1 : i64} {
  %x = "relax.take"(%w, %i) : (tensor<8x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %t = "relax.permute_dims"(%w) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %y = "relax.matmul"(%x, %t) : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

// -----

// A low-rank update merges into its weight: one prepared weight out of three.
// CHECK-LABEL: @low_rank_update_transform_params
// CHECK-SAME:    -> (tensor<8x8xf32> {relax.name = "w+b+a.matmul.add"})
// CHECK:       @low_rank_update(%arg0: tensor<2x8xf32>, %arg1: tensor<8x8xf32> {relax.name = "w+b+a.matmul.add"})
func.func @low_rank_update(%x: tensor<2x8xf32>, %w: tensor<8x8xf32> {relax.name = "w"}, %a: tensor<1x8xf32>
    {relax.name = "a"}, %b: tensor<8x1xf32> {relax.name = "b"})
    -> tensor<2x8xf32> attributes {relax.num_input = 1 : i64} {
  %u = "relax.matmul"(%b, %a) : (tensor<8x1xf32>, tensor<1x8xf32>) -> tensor<8x8xf32>
  %m = "relax.add"(%w, %u) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = "relax.matmul"(%x, %m) : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// A tree of weight math that inference reads at several levels: each level it reads is prepared, in program order.
// CHECK-LABEL: @levels_transform_params
// CHECK-SAME:    -> (tensor<4xf32> {relax.name = "w.exp"}, tensor<4xf32> {relax.name = "w.exp.abs.negative"})
// CHECK:       @levels(
// CHECK-NEXT:    "relax.add"(%arg0, %arg1)
// CHECK-NEXT:    "relax.add"(%{{.*}}, %arg2)
func.func @levels(%x: tensor<4xf32>, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relax.negative"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "relax.add"(%x, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = "relax.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// Small kinds of weights: one byte, truth values, half bytes, no elements, no dimensions.
// CHECK-LABEL: @kinds_transform_params
// CHECK-SAME:    tensor<1xi8> {relax.name = "byte.negative"}
// CHECK-SAME:    tensor<4xi1> {relax.name = "flags.logical_not"}
// CHECK-SAME:    tensor<4x2xi4> {relax.name = "nibbles.permute_dims"}
// CHECK-SAME:    tensor<0xf32> {relax.name = "none.exp"}
// CHECK-SAME:    tensor<f32> {relax.name = "scale.exp"}
func.func @kinds(%a: tensor<1xi8> {relax.name = "byte"}, %b: tensor<4xi1> {relax.name = "flags"}, %c: tensor<2x4xi4>
    {relax.name = "nibbles"},
                 %d: tensor<0xf32> {relax.name = "none"}, %e: tensor<f32> {relax.name = "scale"})
    -> (tensor<1xi8>, tensor<4xi1>, tensor<4x2xi4>, tensor<0xf32>, tensor<f32>) attributes {relax.num_input = 0 : i64} {
  %0 = "relax.negative"(%a) : (tensor<1xi8>) -> tensor<1xi8>
  %1 = "relax.logical_not"(%b) : (tensor<4xi1>) -> tensor<4xi1>
  %2 = "relax.permute_dims"(%c) : (tensor<2x4xi4>) -> tensor<4x2xi4>
  %3 = "relax.exp"(%d) : (tensor<0xf32>) -> tensor<0xf32>
  %4 = "relax.exp"(%e) : (tensor<f32>) -> tensor<f32>
  return %0, %1, %2, %3, %4 : tensor<1xi8>, tensor<4xi1>, tensor<4x2xi4>, tensor<0xf32>, tensor<f32>
}

// -----

// A weight stays on its device, and a copy of it to another one is made once, at preparation.
// CHECK-LABEL: @devices_transform_params
// CHECK-SAME:    -> (tensor<4xf32, {vdevice = "cuda:0"}> {relax.name = "w.exp"}, tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK-SAME:    {relax.name = "v.to_vdevice"})
// CHECK:       @devices(
// CHECK-NEXT:    return %arg0, %arg1
module attributes {relax.vdevices = ["cpu:0", "cuda:0"]} {
  func.func @devices(%w: tensor<4xf32, {vdevice = "cuda:0"}> {relax.name = "w"}, %v: tensor<4xf32, {vdevice = "cpu:0"}>
      {relax.name = "v"})
      -> (tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cuda:0"}>)
          attributes {relax.num_input = 0 : i64} {
    %0 = "relax.exp"(%w) : (tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf32, {vdevice = "cuda:0"}>
    %1 = "relax.to_vdevice"(%v) {vdevice = "cuda:0"} : (tensor<4xf32, {vdevice = "cpu:0"}>)
        -> tensor<4xf32, {vdevice = "cuda:0"}>
    return %0, %1 : tensor<4xf32, {vdevice = "cuda:0"}>, tensor<4xf32, {vdevice = "cuda:0"}>
  }
}

// -----

// Nothing in it, and no weight that anything reads: there is a transform function, and it prepares nothing.
// CHECK-LABEL: @empty_transform_params()
// CHECK-NEXT:    return
// CHECK:       @empty() attributes {relax.num_input = 0 : i64}
func.func @empty(%w: tensor<4xf32> {relax.name = "w"}) attributes {relax.num_input = 0 : i64} {
  return
}

// -----

// A product of two symbols in a weight's shape determines neither; what mentions them waits for the inputs that do.
// CHECK-LABEL: @product_of_symbols_transform_params
// CHECK-SAME:    -> (tensor<?xf32, {sym = ["m * n"]}> {relax.name = "w"})
// CHECK:       @product_of_symbols(
// CHECK-NEXT:    "relax.exp"(%arg1)
func.func @product_of_symbols(%x: tensor<?x?xf32, {sym = ["m", "n"]}>, %w: tensor<?xf32, {sym = ["m * n"]}>
    {relax.name = "w"})
    -> tensor<?xf32, {sym = ["m * n"]}> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.exp"(%w) : (tensor<?xf32, {sym = ["m * n"]}>) -> tensor<?xf32, {sym = ["m * n"]}>
  return %0 : tensor<?xf32, {sym = ["m * n"]}>
}

// -----

// A callee that calls another one by a size of its own is not inlined: the caller has another size of that name.
// CHECK-LABEL: @own_size_transform_params
// CHECK:       @own_size(
// CHECK-NEXT:    call @casts
func.func @own_size(%x: tensor<?xf32, {sym = ["m"]}>, %v: tensor<?xf32> {relax.name = "v"}, %w: tensor<4xf32>
    {relax.name = "w"}) -> (tensor<4xf32>, tensor<?xf32, {sym = ["m"]}>) attributes {relax.num_input = 1 : i64} {
  %0 = call @casts(%v, %w) : (tensor<?xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %x : tensor<4xf32>, tensor<?xf32, {sym = ["m"]}>
}
func.func private @casts(%v: tensor<?xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %c = "relax.match_cast"(%v) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["m"]}>
  %e = "relax.stop_lift_params"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %s = call @summed(%c) : (tensor<?xf32, {sym = ["m"]}>) -> tensor<f32>
  %y = "relax.add"(%e, %s) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @summed(%v: tensor<?xf32, {sym = ["m"]}>) -> tensor<f32> attributes {no_inline} {
  %0 = "relax.sum"(%v) : (tensor<?xf32, {sym = ["m"]}>) -> tensor<f32>
  return %0 : tensor<f32>
}
