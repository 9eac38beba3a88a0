// RUN: relax-opt %s --relax-note-ops | filecheck %s

// CHECK-LABEL: func.func private @kernel_0(
// CHECK-SAME: relax.ops = ["relax.exp", "relax.log"]
func.func private @kernel_0(%a: f32) -> f32 attributes {relax.kernel} {
  %0 = math.exp %a : f32 loc("relax.exp"("m.mlir":1:2))
  %1 = math.absf %0 : f32
  %2 = math.log %1 : f32 loc("relax.log"("m.mlir":2:2))
  return %2 : f32
}

// CHECK-LABEL: func.func @none()
// CHECK-NOT: relax.ops
func.func @none() {
  return
}
