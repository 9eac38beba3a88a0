// RUN: relax-opt %s | relax-opt | filecheck %s

// CHECK-LABEL: func.func @get_param(
// CHECK: "relax.get_param"(%{{.*}}) {index = 0 : i64, name = "q_proj.weight"} : (!relax.param_provider)
// CHECK-SAME: -> tensor<4x4xf16>
func.func @get_param(%x: !relax.param_provider) {
  %0 = "relax.get_param"(%x) {index = 0 : i64, name = "q_proj.weight"} : (!relax.param_provider) -> tensor<4x4xf16>
  return
}

// CHECK-LABEL: func.func @get_param_2(
// CHECK: "relax.get_param"(%{{.*}}) {index = 1 : i64} : (!relax.param_provider) -> tensor<f32>
func.func @get_param_2(%x: !relax.param_provider) {
  %0 = "relax.get_param"(%x) {index = 1 : i64} : (!relax.param_provider) -> tensor<f32>
  return
}

// CHECK-LABEL: func.func @set_output(
// CHECK: "relax.set_output"(%{{.*}}, %{{.*}}) {index = 0 : i64, name = "packed"}
// CHECK-SAME: : (!relax.output_sink, tensor<4x4xf16>) -> ()
func.func @set_output(%x: !relax.output_sink, %y: tensor<4x4xf16>) {
  "relax.set_output"(%x, %y) {index = 0 : i64, name = "packed"} : (!relax.output_sink, tensor<4x4xf16>) -> ()
  return
}

// CHECK-LABEL: func.func @get_param_3(
// CHECK: "relax.get_param"(%{{.*}}) {name = "q_proj.weight"} : (!relax.param_provider) -> tensor<f32>
func.func @get_param_3(%x: !relax.param_provider) {
  %0 = "relax.get_param"(%x) {name = "q_proj.weight"} : (!relax.param_provider) -> tensor<f32>
  return
}

// CHECK-LABEL: func.func @bind_argument(
// CHECK: "relax.bind_argument"(%{{.*}}, %{{.*}}) {name = "rank"} : (!relax.param_provider, index)
// CHECK-SAME: -> !relax.param_provider
func.func @bind_argument(%x: !relax.param_provider, %y: index) {
  %0 = "relax.bind_argument"(%x, %y) {name = "rank"} : (!relax.param_provider, index) -> !relax.param_provider
  return
}
