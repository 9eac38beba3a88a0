// RUN: relax-opt %s --relax-set-cuda-target=target=cuda:sm_90a | filecheck %s
// RUN: not relax-opt %s --relax-set-cuda-target=target=cuda:sm_10 2>&1 | filecheck %s --check-prefix=WRONG
// RUN: not relax-opt %s --relax-lower-cuda-kernels 2>&1 | filecheck %s --check-prefix=NONE

// WRONG: expected target 'cuda:' and one of {{.*}}, got 'cuda:sm_10'
// NONE: expected a module with relax.cuda_target, which relax-set-cuda-target writes, got none

// CHECK: module attributes {relax.cuda_target = "cuda:sm_90a",
// CHECK-SAME: relax.weight_layouts = {{.*}}panels = false}
func.func @main() {
  return
}
