// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lazy-transform-params{addressing=index})' \
// RUN:   | filecheck %s --check-prefix=INDEX
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lazy-transform-params{addressing=name})' \
// RUN:   | filecheck %s --check-prefix=NAME
// RUN: relax-opt %s \
// RUN:     --pass-pipeline='builtin.module(relax-lazy-transform-params{addressing=index callback=functions})' \
// RUN:   | filecheck %s --check-prefix=CALL-INDEX
// RUN: relax-opt %s --pass-pipeline='builtin.module(\
// RUN:relax-lazy-get-input{addressing=name callback=functions functions=main_transform_params},\
// RUN:relax-lazy-set-output{addressing=name callback=functions functions=main_transform_params})' \
// RUN:   | filecheck %s --check-prefix=CALL-NAME

// Reads and writes say of which weight or result they are by position, by name, or both.
// INDEX:      "relax.get_param"(%arg0) {index = 0 : i64} :
// INDEX:      "relax.set_output"(%arg1, %{{.*}}) {index = 0 : i64} :
// NAME:       "relax.get_param"(%arg0) {name = "w"} :
// NAME:       "relax.set_output"(%arg1, %{{.*}}) {name = "e"} :
// CALL-INDEX: call @get_param_4xf32(%{{.*}}) : (index) -> tensor<4xf32>
// CALL-INDEX: call @set_output_4xf32(%{{.*}}, %{{.*}}) : (index, tensor<4xf32>) -> ()
// CALL-NAME:  call @get_param_4xf32() {relax.name = "w"} : () -> tensor<4xf32>
// CALL-NAME:  call @set_output_4xf32(%{{.*}}) {relax.name = "e"} : (tensor<4xf32>) -> ()
func.func @main_transform_params(%w: tensor<4xf32> {relax.name = "w"}) -> (tensor<4xf32> {relax.name = "e"})
    attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%e: tensor<4xf32> {relax.name = "e"}) attributes {relax.num_input = 0 : i64} {
  return
}
