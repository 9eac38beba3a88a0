// RUN: relax-opt %s --relax-drop-arguments | filecheck %s

// CHECK-LABEL: llvm.func @main(
// CHECK-SAME: %[[A:.*]]: !llvm.ptr, %[[B:.*]]: i64)
// CHECK: llvm.call @kernel_0(%[[B]]) : (i64) -> ()
// CHECK: llvm.call @kernel.77(%[[A]]) : (!llvm.ptr) -> ()
// CHECK: llvm.call @kernel.77(%[[A]]) : (!llvm.ptr) -> ()
// CHECK: llvm.call @kernel.78(%[[A]]) : (!llvm.ptr) -> ()
// CHECK: llvm.call @other(%[[A]], %[[B]]) : (!llvm.ptr, i64) -> ()
llvm.func @main(%a: !llvm.ptr, %b: i64) {
  llvm.call @kernel_0(%a, %b) : (!llvm.ptr, i64) -> ()
  llvm.call @kernel.77..0(%a, %b) : (!llvm.ptr, i64) -> ()
  llvm.call @kernel.77..1(%b, %b, %a) : (i64, i64, !llvm.ptr) -> ()
  llvm.call @kernel.78..2(%a) : (!llvm.ptr) -> ()
  llvm.call @other(%a, %b) : (!llvm.ptr, i64) -> ()
  llvm.return
}
// CHECK: llvm.func internal @kernel_0(%[[C:.*]]: i64 {llvm.noundef})
// CHECK-SAME: attributes {no_inline, relax.arguments = array<i64: 2, 1>}
// CHECK-NEXT: llvm.add %[[C]], %[[C]]
llvm.func internal @kernel_0(%a: !llvm.ptr, %b: i64 {llvm.noundef}) attributes {no_inline} {
  %0 = llvm.add %b, %b : i64
  llvm.return
}
// CHECK: llvm.func hidden @kernel.77(!llvm.ptr) attributes {relax.arguments = array<i64: 2, 0>{{.*}}}
// CHECK-NOT: kernel.77
llvm.func @kernel.77..0(!llvm.ptr, i64) attributes {relax.arguments = array<i64: 2, 0>, sym_visibility = "private"}
llvm.func @kernel.77..1(i64, i64, !llvm.ptr) attributes {relax.arguments = array<i64: 3, 2>, sym_visibility = "private"}
// CHECK: llvm.func hidden @kernel.78(!llvm.ptr) attributes {relax.arguments = array<i64: 1, 0>{{.*}}}
llvm.func @kernel.78..2(!llvm.ptr) attributes {relax.arguments = array<i64: 1, 0>, sym_visibility = "private"}
// CHECK: llvm.func internal @other(%{{.*}}: !llvm.ptr, %{{.*}}: i64)
llvm.func internal @other(%a: !llvm.ptr, %b: i64) {
  llvm.return
}
