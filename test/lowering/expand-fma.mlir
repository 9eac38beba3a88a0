// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64 --relax-expand-fma | filecheck %s
// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v3 --relax-expand-fma | filecheck %s --check-prefix=HAS

// CHECK-LABEL: func.func @main(
// CHECK: %[[P:.*]] = arith.mulf %arg0, %arg1
// CHECK: arith.addf %[[P]], %arg2
// HAS: vector.fma
func.func @main(%a: vector<4xf32>, %b: vector<4xf32>, %c: vector<4xf32>) -> vector<4xf32> {
  %y = vector.fma %a, %b, %c : vector<4xf32>
  return %y : vector<4xf32>
}
