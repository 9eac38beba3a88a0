// RUN: relax-opt %s --relax-partition-transforms | filecheck %s

// Equal computations are one function that runs once for each weight; a weight that stays as it is, is a copy.
// CHECK: module attributes {relax.preparation = {fingerprint = "{{[0-9a-f]+}}"
// CHECK-SAME: prepared_weights = [{dtype = "f32", name = "c", ops = [], shape = [4], sources = ["c"]}
// CHECK-SAME: {dtype = "f32", name = "a.exp", ops = ["exp"], shape = [4], sources = ["a"]}
// CHECK-SAME: {dtype = "f32", name = "b.exp", ops = ["exp"], shape = [4], sources = ["b"]}]
// CHECK-SAME: raw_weights = [{dtype = "f32", name = "c", shape = [4]}, {dtype = "f32", name = "a", shape = [4]}
// CHECK-SAME: steps = [{arena_bytes = 0 : i64, gets = ["c"], sets = ["c"]}
// CHECK-SAME: gets = ["a"], sets = ["a.exp"], symbol = "relaxir_main_transform_params_step0"}
// CHECK-SAME: gets = ["b"], sets = ["b.exp"], symbol = "relaxir_main_transform_params_step0"}]}}

// CHECK-LABEL: func.func @main(
func.func @main(%x: tensor<4xf32> {relax.name = "x"}, %a: tensor<4xf32> {relax.name = "a.exp"},
                %b: tensor<4xf32> {relax.name = "b.exp"}, %c: tensor<4xf32> {relax.name = "c"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.add"(%x, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.add"(%0, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "relax.add"(%1, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK: func.func @main_transform_params.step0(%{{.*}}: tensor<4xf32> {relax.name = "a"})
// CHECK-SAME: relax.entry = {
// CHECK-SAME: step = true
// CHECK-NEXT: "relax.exp"
// CHECK-NOT: func.func
func.func @main_transform_params(%a: tensor<4xf32> {relax.name = "a"}, %b: tensor<4xf32> {relax.name = "b"},
                                 %c: tensor<4xf32> {relax.name = "c"})
    -> (tensor<4xf32> {relax.name = "a.exp"}, tensor<4xf32> {relax.name = "b.exp"}, tensor<4xf32> {relax.name = "c"})
    attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  %0 = "relax.exp"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.exp"(%b) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
