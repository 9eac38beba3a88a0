// Each piece is a module of its own: the same name in each is no conflict.
// RUN: relax-opt %s --split-input-file | filecheck %s
// RUN: relax-opt %s --split-input-file --output-split-marker='// ~~~' | filecheck %s --check-prefix=MARKER
// RUN: not relax-opt %s 2>&1 | filecheck %s --check-prefix=WHOLE
// RUN: not relax-opt %s --split-input-file='// ~~~~~' 2>&1 | filecheck %s --check-prefix=WHOLE

// CHECK: module {
// CHECK-NEXT: func.func private @f()
// CHECK-NEXT: }
// CHECK: // -----
// CHECK: module {
// CHECK-NEXT: func.func private @f(i32)
// MARKER: @f()
// MARKER: // ~~~
// MARKER: @f(i32)
// WHOLE: split-input-file.mlir:21:1: error: redefinition of symbol named 'f'
func.func private @f()

// -----

func.func private @f(i32)
