// What shows passes at work. All of it goes to stderr.
// RUN: relax-opt %s --cse --mlir-print-ir-before-all -o /dev/null 2>&1 | filecheck %s --check-prefix=BEFORE
// RUN: relax-opt %s --cse --canonicalize --mlir-print-ir-after-all -o /dev/null 2>&1 \
// RUN:   | filecheck %s --check-prefix=AFTER
// RUN: relax-opt %s --cse --canonicalize --mlir-print-ir-after-all --mlir-print-ir-after-change -o /dev/null 2>&1 \
// RUN:   | filecheck %s --check-prefix=CHANGE
// RUN: relax-opt %s --cse --mlir-print-ir-after-all --mlir-print-ir-after-failure -o /dev/null 2>&1 \
// RUN:   | filecheck %s --check-prefix=QUIET --allow-empty
// RUN: relax-opt %s --affine-parallelize --mlir-print-ir-after-all --mlir-print-ir-module-scope -o /dev/null 2>&1 \
// RUN:   | filecheck %s --check-prefix=SCOPE
// RUN: relax-opt %s --cse --relax-canonicalize --mlir-print-ir-after=cse \
// RUN:   --mlir-print-ir-before=relax-canonicalize -o /dev/null 2>&1 | filecheck %s --check-prefix=SOME
// RUN: relax-opt %s --pass-pipeline='builtin.module(func.func(cse,canonicalize))' --mlir-print-ir-after=cse \
// RUN:   -o /dev/null 2>&1 | filecheck %s --check-prefix=NESTED
// RUN: relax-opt %s --pass-pipeline='builtin.module(func.func(cse),relax-canonicalize)' --mlir-print-ir-after=cse \
// RUN:   --mlir-print-ir-module-scope --mlir-print-op-generic --mlir-print-debuginfo -o /dev/null 2>&1 \
// RUN:   | filecheck %s --check-prefix=SOME-SCOPE
// RUN: relax-opt %s --cse --canonicalize --mlir-print-ir-after=cse,canonicalize --mlir-print-ir-after-change \
// RUN:   -o /dev/null 2>&1 | filecheck %s --check-prefix=CHANGE
// RUN: relax-opt %s --cse --mlir-print-ir-after=cse --mlir-print-ir-after-failure -o /dev/null 2>&1 \
// RUN:   | filecheck %s --check-prefix=QUIET --allow-empty
// RUN: relax-opt %s --cse --relax-canonicalize --mlir-print-ir-before-all --mlir-print-ir-after=cse -o /dev/null 2>&1 \
// RUN:   | filecheck %s --check-prefix=BOTH
// RUN: relax-opt %s --cse --relax-canonicalize --mlir-print-ir-after=cse --mlir-print-ir-tree-dir=%t.some -o /dev/null
// RUN: filecheck %s --check-prefix=TREE --input-file=%t.some/builtin_module_no-symbol-name/0_cse.mlir
// RUN: not relax-opt %s --cse --mlir-print-ir-after=csee 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: relax-opt %s --relax-canonicalize --cse --mlir-timing -o /dev/null 2>&1 | filecheck %s --check-prefix=TIME
// RUN: relax-opt %s --cse --mlir-pass-statistics -o /dev/null 2>&1 | filecheck %s --check-prefix=STATS
// RUN: relax-opt %s --cse --mlir-print-ir-after-all --mlir-print-ir-tree-dir=%t.dir -o /dev/null
// RUN: filecheck %s --check-prefix=TREE --input-file=%t.dir/builtin_module_no-symbol-name/0_cse.mlir

// BEFORE: IR Dump Before CSEPass
// BEFORE-COUNT-2: relax.add
// AFTER: IR Dump After CSEPass
// AFTER: IR Dump After CanonicalizerPass
// CHANGE: IR Dump After CSEPass
// CHANGE-NOT: IR Dump After Canonicalizer
// QUIET-NOT: IR Dump
// SCOPE: IR Dump After AffineParallelize
// SCOPE-NEXT: module {
// SOME: IR Dump After CSEPass: cse
// SOME: IR Dump Before {{.*}}relax-canonicalize
// SOME-NOT: IR Dump
// NESTED: IR Dump After CSEPass: cse
// NESTED-NEXT: func.func @main
// NESTED-NOT: IR Dump
// SOME-SCOPE: IR Dump After CSEPass: cse
// SOME-SCOPE: "builtin.module"
// SOME-SCOPE: loc(
// SOME-SCOPE-NOT: IR Dump
// BOTH: IR Dump Before CSEPass
// BOTH: IR Dump After CSEPass
// BOTH: IR Dump Before {{.*}}relax-canonicalize
// BOTH-NOT: IR Dump
// UNKNOWN: expected a pass to print the IR at, got 'csee', did you mean 'cse'
// TIME: Execution time report
// TIME: relax-canonicalize
// TIME: CSEPass
// STATS: Pass statistics report
// TREE: func.func @main
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "relax.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
