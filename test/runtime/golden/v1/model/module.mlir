module attributes {relax.weight_layouts = {bf16_rows = 1 : i64, columns = 8 : i64, int8_rows = 2 : i64, int8_unsigned = false}} {
  func.func @main_transform_params(%arg0: tensor<8x4xf32> {relax.name = "fc.weight"}, %arg1: tensor<8xf32> {relax.name = "scale"}) -> (tensor<8xf32> {relax.name = "scale"}, tensor<1x4x8xf32> {relax.name = "fc.weight.permute_dims.pack_weight"}) attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
    %0 = "relax.permute_dims"(%arg0) {axes = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
    %1 = "relax.pack_weight"(%0) {layout = "tile 8"} : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
    return %arg1, %1 : tensor<8xf32>, tensor<1x4x8xf32>
  }
  func.func @main(%arg0: tensor<?x4xf32, {sym = ["n"]}> {relax.name = "x"}, %arg1: tensor<?xi64, {sym = ["n"]}> {relax.name = "rows"}, %arg2: tensor<1xf32> {relax.name = "count"}, %arg3: tensor<8xf32> {relax.name = "scale"}, %arg4: tensor<1x4x8xf32> {relax.name = "fc.weight.permute_dims.pack_weight"}) -> (tensor<?x8xf32, {sym = ["n"]}> {relax.name = "y"}, tensor<1xf32> {relax.name = "count"}) attributes {relax.num_input = 3 : i64, relax.state = {count = dense<0.000000e+00> : tensor<1xf32>}} {
    %cst = arith.constant dense<1.000000e+00> : tensor<1xf32>
    %0 = "relax.add"(%arg2, %cst) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %1 = "relax.packed_matmul"(%arg0, %arg4) {layout = "tile 8", n = 8 : i64} : (tensor<?x4xf32, {sym = ["n"]}>, tensor<1x4x8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
    %2 = "relax.multiply"(%1, %arg3) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
    %3 = "relax.take"(%2, %arg1) {axis = 0 : i64} : (tensor<?x8xf32, {sym = ["n"]}>, tensor<?xi64, {sym = ["n"]}>) -> tensor<?x8xf32, {sym = ["n"]}>
    %4 = "relax.add"(%3, %0) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<1xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
    return %4, %0 : tensor<?x8xf32, {sym = ["n"]}>, tensor<1xf32>
  }
}
