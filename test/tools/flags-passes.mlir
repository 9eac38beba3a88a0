// Passes as flags, in order, and as pipelines; ours and MLIR's.
// RUN: relax-opt %s --cse --canonicalize | filecheck %s --check-prefix=ONE
// RUN: relax-opt %s -cse | filecheck %s --check-prefix=ONE
// RUN: relax-opt %s --pass-pipeline='builtin.module(func.func(cse))' | filecheck %s --check-prefix=ONE
// RUN: relax-opt %s --pass-pipeline='cse,canonicalize{max-iterations=3}' | filecheck %s --check-prefix=ONE
// RUN: relax-opt %s --canonicalize='max-iterations=3 region-simplify=disabled' --cse --dump-pass-pipeline 2>&1 \
// RUN:   | filecheck %s --check-prefix=DUMP
// RUN: relax-opt %s --affine-parallelize --dump-pass-pipeline 2>&1 | filecheck %s --check-prefix=NESTED
// RUN: relax-opt %s --relax-reorder-take-after-matmul=always=true --dump-pass-pipeline 2>&1 \
// RUN:   | filecheck %s --check-prefix=OURS
// RUN: relax-opt %s --pass-pipeline='builtin.module()' | filecheck %s --check-prefix=TWO
// RUN: relax-opt %s | filecheck %s --check-prefix=TWO

// DUMP: builtin.module(canonicalize{{.*}}max-iterations=3{{.*}},cse)
// OURS: builtin.module(relax-reorder-take-after-matmul{always=true})
// NESTED: builtin.module(func.func(affine-parallelize
// ONE-COUNT-1: relax.add
// ONE-NOT: relax.add
// TWO-COUNT-2: relax.add
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "relax.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
