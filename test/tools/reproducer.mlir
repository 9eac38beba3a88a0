// A failing pipeline leaves its input and itself in a file that runs it again; a pipeline that succeeds leaves nothing.
// RUN: not relax-opt %s --cse --transform-interpreter --mlir-pass-pipeline-crash-reproducer=%t 2>&1 | filecheck %s
// RUN: filecheck %s --check-prefix=FILE --input-file=%t
// RUN: not relax-opt %t --run-reproducer 2>&1 | filecheck %s --check-prefix=AGAIN
// RUN: relax-opt %s --cse --mlir-pass-pipeline-crash-reproducer=%t.none -o /dev/null
// RUN: not relax-opt %t.none
// RUN: not relax-opt %s --run-reproducer 2>&1 | filecheck %s --check-prefix=PLAIN

// CHECK: reproducer.mlir: error: could not find a nested named sequence with name: __transform_main
// CHECK: note: reproducer generated at '{{.*}}'
// FILE: func.func @main
// FILE: mlir_reproducer: {
// FILE-NEXT: pipeline: "builtin.module(cse,transform-interpreter)"
// AGAIN: error: could not find a nested named sequence
// PLAIN: relax-opt: error: expected a crash reproducer with a 'mlir_reproducer' resource, got a plain module
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
