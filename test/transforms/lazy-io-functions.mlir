// RUN: relax-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(relax-lazy-transform-params{callback=functions})' | filecheck %s
// RUN: relax-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(relax-lazy-transform-params{callback=functions},\
// RUN:relax-lazy-transform-params{callback=functions})' | filecheck %s
// RUN: relax-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(relax-lazy-get-input{callback=functions functions=main_transform_params},\
// RUN:relax-lazy-set-output{callback=functions functions=main_transform_params})' | filecheck %s

// Callbacks are functions that the module declares, one per type; no argument is added. A symbolic size is left open in
// the declaration, and matched with the symbol where the weight is read.
// CHECK-LABEL: @main_transform_params() attributes {relax.num_input = 0 : i64, relax.transform_for = @main}
// CHECK-NEXT:    %[[I:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[B:\w+]] = call @get_param_4xf32_cuda_0(%[[I]]) {relax.name = "b"} : (index)
// CHECK-SAME:    -> tensor<4xf32, {vdevice = "cuda:0"}>
// CHECK-NEXT:    %[[H:.*]] = "relax.astype"(%[[B]])
// CHECK-NEXT:    %[[I:.*]] = arith.constant 2 : index
// CHECK-NEXT:    call @set_output_4xf16_cuda_0(%[[I]], %[[H]]) {relax.name = "b.astype"}
// CHECK-NEXT:    %[[I:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[O:.*]] = call @get_param_Dx4xf32(%[[I]]) {relax.name = "a"} : (index) -> tensor<?x4xf32>
// CHECK-NEXT:    %[[A:.*]] = "relax.match_cast"(%[[O]]) : (tensor<?x4xf32>) -> tensor<?x4xf32, {sym = ["m"]}>
// CHECK-NEXT:    %[[E:.*]] = "relax.exp"(%[[A]])
// CHECK-NEXT:    %[[O:.*]] = "relax.match_cast"(%[[E]]) : (tensor<?x4xf32, {sym = ["m"]}>) -> tensor<?x4xf32>
// CHECK-NEXT:    %[[I:.*]] = arith.constant 1 : index
// CHECK-NEXT:    call @set_output_Dx4xf32(%[[I]], %[[O]]) {relax.name = "a.exp"}
// CHECK-NEXT:    %[[I:.*]] = arith.constant 2 : index
// CHECK-NEXT:    %[[C:.*]] = call @get_param_4xf32(%[[I]]) {relax.name = "c"} : (index) -> tensor<4xf32>
// CHECK-NEXT:    %[[I:.*]] = arith.constant 0 : index
// CHECK-NEXT:    call @set_output_4xf32(%[[I]], %[[C]]) {relax.name = "c"}
// CHECK-NEXT:    return
// CHECK:       func.func @main(
// CHECK-DAG:   func.func private @get_param_4xf32(index {{.*}}) -> tensor<4xf32> {{.*}}callback = "get_param"
// CHECK-DAG:   func.func private @get_param_Dx4xf32(index {{.*}}) -> tensor<?x4xf32> {{.*}}callback = "get_param"
// CHECK-DAG:   @set_output_4xf32(index {{.*}}, tensor<4xf32> {relax.name = "value"}) {{.*}}callback = "set_output"
// CHECK-DAG:   @set_output_4xf16_cuda_0(index {{.*}}, tensor<4xf16, {vdevice = "cuda:0"}> {relax.name = "value"})
// CHECK-DAG:   func.func private @set_output_Dx4xf32(index {{.*}}, tensor<?x4xf32> {relax.name = "value"})
func.func @main_transform_params(%a: tensor<?x4xf32, {sym = ["m"]}> {relax.name = "a"},
    %b: tensor<4xf32, {vdevice = "cuda:0"}> {relax.name = "b"}, %c: tensor<4xf32> {relax.name = "c"})
    -> (tensor<4xf32> {relax.name = "c"}, tensor<?x4xf32, {sym = ["m"]}> {relax.name = "a.exp"},
        tensor<4xf16, {vdevice = "cuda:0"}> {relax.name = "b.astype"})
    attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  %0 = "relax.astype"(%b) {dtype = f16} : (tensor<4xf32, {vdevice = "cuda:0"}>) -> tensor<4xf16, {vdevice = "cuda:0"}>
  %1 = "relax.exp"(%a) : (tensor<?x4xf32, {sym = ["m"]}>) -> tensor<?x4xf32, {sym = ["m"]}>
  return %c, %1, %0 : tensor<4xf32>, tensor<?x4xf32, {sym = ["m"]}>, tensor<4xf16, {vdevice = "cuda:0"}>
}
func.func @main(%x: tensor<4xf32>, %c: tensor<4xf32> {relax.name = "c"}, %a: tensor<?x4xf32, {sym = ["m"]}>
    {relax.name = "a.exp"}, %b: tensor<4xf16, {vdevice = "cuda:0"}> {relax.name = "b.astype"})
    -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
  return %c : tensor<4xf32>
}

// -----

// A declaration that is there is used, whatever it is called; a name that is taken gets a number.
// CHECK-LABEL: @main_transform_params()
// CHECK:         call @read_weight(%{{.*}}) {relax.name = "w"}
// CHECK:         call @set_output_4xf32_0(%{{.*}}, %{{.*}})
// CHECK:       func.func private @read_weight(index {relax.name = "index"}) -> tensor<4xf32>
// CHECK-SAME:       attributes {relax.callback = "get_param"}
// CHECK:       func.func private @set_output_4xf32(tensor<4xf32>)
// CHECK-NOT:   @get_param
// CHECK:       func.func private @set_output_4xf32_0(
// CHECK-NOT:   @get_param
func.func @main_transform_params(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  return %w : tensor<4xf32>
}
func.func @main(%w: tensor<4xf32> {relax.name = "w"}) attributes {relax.num_input = 0 : i64} {
  return
}
func.func private @read_weight(index {relax.name = "index"}) -> tensor<4xf32> attributes {relax.callback = "get_param"}
func.func private @set_output_4xf32(tensor<4xf32>)
