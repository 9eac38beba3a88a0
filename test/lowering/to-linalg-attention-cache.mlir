// RUN: relax-opt %s --relax-to-linalg=tile=16 --canonicalize | filecheck %s

// A cache in f16 is read as it is. One token has dot products with its keys; of 24, a block is widened for all rows.
// CHECK-LABEL: func.func @one_token
// CHECK: call @[[ONE:[a-z_0-9]+]](%arg0, %arg1, %arg2
// CHECK: call @[[MANY:[a-z_0-9]+]](%arg3, %arg1, %arg2
// CHECK: func.func private @[[ONE]]({{.*}}: tensor<1x2x40x4xf16>, {{.*}}: tensor<1x2x40x4xf16>
// CHECK-NOT: linalg.copy ins({{.*}}xf16>)
// CHECK: func.func private @[[MANY]]({{.*}} tensor<1x2x40x4xf16>
// CHECK: linalg.copy ins({{.*}} : tensor<40x4xf16>) outs({{.*}} : tensor<40x4xf32>)
// CHECK: linalg.copy ins({{.*}} : tensor<40x4xf16>) outs({{.*}} : tensor<40x4xf32>)
func.func @one_token(%q: tensor<1x2x1x4xf32>, %k: tensor<1x2x40x4xf16>, %v: tensor<1x2x40x4xf16>,
                     %many: tensor<1x2x24x4xf32>)
    -> (tensor<1x2x1x4xf32>, tensor<1x2x24x4xf32>) {
  %0 = "relax.astype"(%k) {dtype = f32} : (tensor<1x2x40x4xf16>) -> tensor<1x2x40x4xf32>
  %1 = "relax.astype"(%v) {dtype = f32} : (tensor<1x2x40x4xf16>) -> tensor<1x2x40x4xf32>
  %2 = "relax.attention"(%q, %0, %1) {causal = false}
      : (tensor<1x2x1x4xf32>, tensor<1x2x40x4xf32>, tensor<1x2x40x4xf32>) -> tensor<1x2x1x4xf32>
  %3 = "relax.attention"(%many, %0, %1) {causal = false}
      : (tensor<1x2x24x4xf32>, tensor<1x2x40x4xf32>, tensor<1x2x40x4xf32>) -> tensor<1x2x24x4xf32>
  return %2, %3 : tensor<1x2x1x4xf32>, tensor<1x2x24x4xf32>
}
