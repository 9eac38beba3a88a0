// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v3 --relax-expand-narrow-floats | filecheck %s
// RUN: relax-opt %s --relax-set-target=target=cpu:znver4 --relax-expand-narrow-floats | filecheck %s --check-prefix=HAS

// CHECK-LABEL: func.func @main(
// CHECK: arith.bitcast {{.*}} vector<8xbf16> to vector<8xi16>
// CHECK: arith.shli
// HAS: arith.extf
func.func @main(%x: vector<8xbf16>) -> vector<8xf32> {
  %y = arith.extf %x : vector<8xbf16> to vector<8xf32>
  return %y : vector<8xf32>
}
