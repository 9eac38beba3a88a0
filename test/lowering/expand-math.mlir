// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v4 --relax-expand-math | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-COUNT-6: math.fma
// CHECK: return
func.func @main(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp %x : vector<16xf32>
  return %y : vector<16xf32>
}
