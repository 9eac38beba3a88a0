// RUN: relax-opt %s --relax-lower-checks | filecheck %s

func.func private @relax_check(i1, i64)
// CHECK-LABEL: func.func @main(
// CHECK: cf.cond_br %arg0, ^[[REST:.*]], ^[[FAILED:.*]](%arg1 : i64)
// CHECK: arith.subi
// CHECK: return
func.func @main(%ok: i1, %number: i64) -> i64 {
  %zero = arith.constant 0 : i64
  call @relax_check(%ok, %number) : (i1, i64) -> ()
  return %zero : i64
}
