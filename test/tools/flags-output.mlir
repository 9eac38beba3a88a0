// What controls how the result is written.
// RUN: relax-opt %s -o %t
// RUN: filecheck %s --check-prefix=PRETTY < %t
// RUN: relax-opt --output=%t2 %s
// RUN: filecheck %s --check-prefix=PRETTY --input-file=%t2
// RUN: relax-opt < %s | filecheck %s --check-prefix=PRETTY
// RUN: relax-opt - < %s | filecheck %s --check-prefix=PRETTY
// RUN: relax-opt %s --mlir-print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: relax-opt %s --mlir-print-debuginfo | filecheck %s --check-prefix=LOC
// RUN: relax-opt %s --split-input-file --mlir-print-debuginfo | filecheck %s --check-prefix=LOC
// RUN: relax-opt --mlir-print-debuginfo < %s | filecheck %s --check-prefix=STDIN
// RUN: relax-opt %s --mlir-elide-elementsattrs-if-larger=2 | filecheck %s --check-prefix=ELIDED
// RUN: relax-opt %s --mlir-use-nameloc-as-prefix | filecheck %s --check-prefix=NAMED
// RUN: relax-opt %s --emit=script | filecheck %s --check-prefix=SCRIPT

// PRETTY: module {
// PRETTY-NEXT: func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32>
// PRETTY-NEXT: arith.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>
// GENERIC: "func.func"() <{function_type =
// LOC: loc("{{.*}}flags-output.mlir":[[LINE:.*]]:8)
// STDIN: loc("<stdin>":
// ELIDED: dense_resource<__elided__>
// NAMED: %sum = "relax.add"
// SCRIPT: func @main(%input0: f32[4]) -> (f32[4]) {
// SCRIPT: add(%
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = "relax.add"(%x, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("sum")
  return %0 : tensor<4xf32>
}
