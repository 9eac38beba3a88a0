// RUN: relax-opt %s --relax-inline-private-functions --mlir-print-debuginfo --mlir-print-local-scope \
// RUN:     --mlir-use-nameloc-as-prefix | filecheck %s

// An inlined op keeps its name and its own place, and says where it was called from, through all levels.
// CHECK-LABEL: @main
// CHECK-NEXT:    %logits = "relax.exp"{{.*}} loc(callsite("logits"("{{.*}}":13:8) at
// CHECK-SAME:    callsite("{{.*}}":10:8 at "{{.*}}":18:8)))
// CHECK-NEXT:    return %logits
func.func private @outer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("logits"("model.py":13:8))
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @outer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
