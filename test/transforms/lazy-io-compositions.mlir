// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lift-transform-params,relax-lazy-get-input,\
// RUN:relax-lazy-set-output)' | filecheck %s --check-prefix=LIFT
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lift-transform-params,relax-lazy-transform-params)' \
// RUN:   | filecheck %s --check-prefix=LIFT
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lift-transform-params,relax-lazy-transform-params,\
// RUN:relax-lazy-transform-params,relax-lift-transform-params)' | filecheck %s --check-prefix=LIFT
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lift-transform-params,relax-lazy-set-output,\
// RUN:relax-lazy-get-input)' | filecheck %s --check-prefix=TURNED
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lift-transform-params{shared=true},\
// RUN:relax-lazy-transform-params,relax-lift-transform-params{shared=true})' | filecheck %s --check-prefix=SHARED
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lazy-get-input,relax-lift-transform-params)' \
// RUN:   | filecheck %s --check-prefix=NOTHING

// What lifting makes is made lazy per weight, at both ends, in either order; a second time changes nothing, nor
// does lifting again. Inference and functions that it calls stay as they are.
// LIFT:        @main_transform_params(%arg0: !relax.param_provider, %arg1: !relax.output_sink)
// LIFT-NEXT:     %[[A:.*]] = "relax.get_param"(%arg0) {index = 0 : i64, name = "a"}
// LIFT-NEXT:     %[[T:.*]] = "relax.permute_dims"(%[[A]])
// LIFT-NEXT:     "relax.set_output"(%arg1, %[[T]]) {index = 1 : i64, name = "a.permute_dims"}
// LIFT-NEXT:     %[[B:.*]] = "relax.get_param"(%arg0) {index = 1 : i64, name = "b"}
// LIFT-NEXT:     "relax.set_output"(%arg1, %[[B]]) {index = 0 : i64, name = "b"}
// LIFT-NEXT:     return
// LIFT:        @main(%arg0: tensor<2x4xf32> {relax.name = "x"}, %arg1: tensor<3xf32> {relax.name = "b"},
// LIFT-SAME:      %arg2: tensor<4x3xf32> {relax.name = "a.permute_dims"})

// TURNED:      @main_transform_params(%arg0: !relax.output_sink, %arg1: !relax.param_provider)
// TURNED-NEXT:   %[[B:.*]] = "relax.get_param"(%arg1) {index = 1 : i64, name = "b"}
// TURNED-NEXT:   "relax.set_output"(%arg0, %[[B]]) {index = 0 : i64, name = "b"}
// TURNED-NEXT:   %[[A:.*]] = "relax.get_param"(%arg1) {index = 0 : i64, name = "a"}
// TURNED-NEXT:   %[[T:.*]] = "relax.permute_dims"(%[[A]])
// TURNED-NEXT:   "relax.set_output"(%arg0, %[[T]]) {index = 1 : i64, name = "a.permute_dims"}
// TURNED-NEXT:   return

// SHARED:      @transform_params(%arg0: !relax.param_provider, %arg1: !relax.output_sink)
// SHARED-COUNT-2: "relax.get_param"
// SHARED-NOT:     "relax.get_param"
// SHARED:      @main(%arg0: tensor<2x4xf32> {relax.name = "x"}, %arg1: tensor<3xf32> {relax.name = "b"},
// SHARED-SAME:      %arg2: tensor<4x3xf32> {relax.name = "a.permute_dims"})

// Once inference reads its weights itself there is nothing to lift.
// NOTHING-NOT: transform
// NOTHING:     @main(%arg0: tensor<2x4xf32> {relax.name = "x"}, %arg1: !relax.param_provider)
func.func @main(%x: tensor<2x4xf32> {relax.name = "x"}, %a: tensor<3x4xf32> {relax.name = "a"}, %b: tensor<3xf32>
    {relax.name = "b"}) -> tensor<2x3xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.permute_dims"(%a) : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %2 = "relax.add"(%1, %b) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}
