// RUN: relax-opt %s --relax-lazy-get-input=functions=main | filecheck %s --check-prefix=READ
// RUN: relax-opt %s --relax-lazy-transform-params | filecheck %s --check-prefix=WRITTEN
// RUN: relax-opt %s --relax-lazy-get-input=functions=main --relax-lazy-transform-params \
// RUN:   | filecheck %s --check-prefixes=WRITTEN,BOTH
// RUN: relax-opt %s --relax-lazy-transform-params --relax-lazy-get-input=functions=main \
// RUN:   | filecheck %s --check-prefixes=WRITTEN,BOTH
// RUN: relax-opt %s --relax-lazy-set-output=addressing=name | filecheck %s --check-prefix=NAME

// Results of a transform function without names are the weights that it prepares, in their order. They say so once
// these weights are no arguments any more, so that what is handed over under a name is read under that name, whichever
// comes first.
// READ:    @prepare({{.*}} -> (tensor<4xf32> {relax.name = "bias"}, tensor<2x2xf32> {relax.name = "weight2"})
// WRITTEN: "relax.set_output"(%arg1, %{{.*}}) {index = 1 : i64, name = "weight2"} : {{.*}}tensor<2x2xf32>
// WRITTEN: "relax.set_output"(%arg1, %{{.*}}) {index = 0 : i64, name = "bias"} : {{.*}}tensor<4xf32>
// BOTH:    "relax.get_param"(%arg1) {index = 1 : i64, name = "weight2"} : {{.*}} -> tensor<2x2xf32>
// BOTH:    "relax.get_param"(%arg1) {index = 0 : i64, name = "bias"} : {{.*}} -> tensor<4xf32>
// NAME:    "relax.set_output"(%arg0, %{{.*}}) {name = "bias"}
func.func @prepare(%w: tensor<2x2xf32> {relax.name = "w"}, %b: tensor<4xf32> {relax.name = "b"})
    -> (tensor<4xf32>, tensor<2x2xf32>) attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  %t = "relax.permute_dims"(%w) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %b, %t : tensor<4xf32>, tensor<2x2xf32>
}
func.func @main(%x: tensor<2x2xf32> {relax.name = "x"}, %b: tensor<4xf32> {relax.name = "bias"},
    %w: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<4xf32>) attributes {relax.num_input = 1 : i64} {
  %y = "relax.matmul"(%x, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %z = "relax.exp"(%b) : (tensor<4xf32>) -> tensor<4xf32>
  return %y, %z : tensor<2x2xf32>, tensor<4xf32>
}
