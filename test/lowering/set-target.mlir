// RUN: relax-opt %s --relax-set-target="target=cpu:x86-64-v3 openmp=true" | filecheck %s
// RUN: relax-opt %s --relax-set-target=target=cpu:znver4 --relax-set-target=target=cpu:neoverse-n1 \
// RUN:   | filecheck %s --check-prefix=AGAIN
// RUN: not relax-opt %s --relax-set-target=target=gpu 2>&1 | filecheck %s --check-prefix=WRONG

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// All that later steps ask is in the module, so that its text is compiled alike on any machine.
// CHECK: module attributes {relax.target = {cpu = "x86-64-v3", features = "{{.*}}+avx2{{.*}}", openmp = true,
// CHECK-SAME: triple = "x86_64-unknown-linux-gnu", vector_bits = 256 : i64

// The last one counts.
// AGAIN: relax.target = {cpu = "neoverse-n1"
// AGAIN-SAME: openmp = false
// AGAIN-SAME: vector_bits = 128 : i64

// WRONG: error: expected target 'cpu', got 'gpu'
