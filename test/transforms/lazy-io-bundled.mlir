// RUN: relax-opt %s --relax-bundle-model-params --relax-lazy-get-input | filecheck %s
// RUN: relax-opt %s --relax-lazy-get-input | filecheck %s
// RUN: relax-opt %s --relax-lift-transform-params --relax-bundle-model-params --relax-lazy-transform-params \
// RUN:   | filecheck %s --check-prefix=PREPARED
// RUN: relax-opt %s --relax-bundle-model-params --relax-lift-transform-params --relax-lazy-transform-params \
// RUN:   | filecheck %s --check-prefix=PREPARED

// Weights in a tuple are read one by one, by the names that the tuple keeps.
// CHECK-LABEL: @main(
// CHECK-SAME:    %arg1: !relax.param_provider)
// CHECK-NEXT:    "relax.get_param"(%arg1) {index = 0 : i64, name = "w"}
// CHECK-NEXT:    "relax.permute_dims"
// CHECK-NEXT:    "relax.matmul"
// CHECK-NEXT:    "relax.get_param"(%arg1) {index = 1 : i64, name = "b"}
// CHECK-NEXT:    "relax.add"
// PREPARED-LABEL: @main_transform_params(
// PREPARED-SAME:    !relax.param_provider, {{.*}}: !relax.output_sink)
// PREPARED-DAG:     "relax.get_param"(%arg0) {index = 0 : i64, name = "w"}
// PREPARED-DAG:     "relax.get_param"(%arg0) {index = 1 : i64, name = "b"}
// PREPARED-DAG:     "relax.set_output"(%arg1, %{{.*}}) {index = 0 : i64, name = "b"}
// PREPARED-DAG:     "relax.set_output"(%arg1, %{{.*}}) {index = 1 : i64, name = "w.permute_dims"}
// PREPARED:         return
func.func @main(%x: tensor<2x4xf32> {relax.name = "x"}, %w: tensor<4x4xf32> {relax.name = "w"}, %b: tensor<4xf32>
    {relax.name = "b"}) -> tensor<2x4xf32> attributes {relax.num_input = 1 : i64} {
  %t = "relax.permute_dims"(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = "relax.matmul"(%x, %t) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %z = "relax.add"(%y, %b) : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}
