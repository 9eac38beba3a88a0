// RUN: relax-opt %s \
// RUN:     --pass-pipeline='builtin.module(relax-lift-transform-params{shared=true growth-slack=0 max-growth=1})' \
// RUN:   | filecheck %s --check-prefix=ONCE
// RUN: relax-opt %s \
// RUN:     --pass-pipeline='builtin.module(relax-lift-transform-params{shared=true growth-slack=0 max-growth=1},\
// RUN:relax-lift-transform-params{functions=a})' | filecheck %s
// RUN: relax-opt %s \
// RUN:     --pass-pipeline='builtin.module(relax-lift-transform-params{shared=true growth-slack=0 max-growth=1},\
// RUN:relax-lift-transform-params{functions=a},relax-lift-transform-params{functions=a})' | filecheck %s
// RUN: relax-opt %s \
// RUN:     --pass-pipeline='builtin.module(relax-lift-transform-params{shared=true growth-slack=0 max-growth=1},\
// RUN:relax-lazy-get-input{functions=b},relax-lift-transform-params{functions=a})' | filecheck %s --check-prefix=LAZY

// One of two functions is lifted from once more: what it alone took goes, what the other one takes stays.
// ONCE:      @transform_params
// ONCE-SAME:   -> (tensor<4xbf16> {relax.name = "w"}, tensor<4xbf16> {relax.name = "v"})
// CHECK:      @transform_params
// CHECK-SAME:   -> (tensor<4xbf16> {relax.name = "v"}, tensor<4xf32> {relax.name = "w.astype"}, tensor<4xf32>
// CHECK-SAME:   {relax.name = "v.astype"})
// CHECK:      @a(%arg0: tensor<4xf32> {relax.name = "w.astype"}, %arg1: tensor<4xf32> {relax.name = "v.astype"})
// CHECK:      @b(%arg0: tensor<4xbf16> {relax.name = "v"})
// A function that reads weights by itself may need any of them.
// LAZY:      @transform_params
// LAZY-SAME:   -> (tensor<4xbf16> {relax.name = "w"}, tensor<4xbf16> {relax.name = "v"}, tensor<4xf32>
// LAZY-SAME:   {relax.name = "w.astype"}, tensor<4xf32> {relax.name = "v.astype"})
func.func @a(%w: tensor<4xbf16> {relax.name = "w"}, %v: tensor<4xbf16> {relax.name = "v"})
    -> (tensor<4xf32>, tensor<4xf32>) attributes {relax.num_input = 0 : i64} {
  %0 = "relax.astype"(%w) {dtype = f32} : (tensor<4xbf16>) -> tensor<4xf32>
  %1 = "relax.astype"(%v) {dtype = f32} : (tensor<4xbf16>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func @b(%v: tensor<4xbf16> {relax.name = "v"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  %0 = "relax.astype"(%v) {dtype = f32} : (tensor<4xbf16>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
