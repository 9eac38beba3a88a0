// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v4 --relax-expand-math | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-COUNT-6: math.fma
// CHECK: return
func.func @main(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp %x : vector<16xf32>
  return %y : vector<16xf32>
}

// Quantized and dequantized in one kernel: the number stays the float that it is.
// CHECK-LABEL: func.func @requantized(
// CHECK:      %[[Z:.*]] = arith.sitofp %arg1
// CHECK-NEXT: %[[D:.*]] = arith.subf %arg0, %[[Z]]
// CHECK-NEXT: return %[[D]], %arg0
func.func @requantized(%x: vector<16xf32>, %z: vector<16xi32>) -> (vector<16xf32>, vector<16xf32>) {
  %q = arith.fptoui %x {relax.integral} : vector<16xf32> to vector<16xi8>
  %w = arith.extui %q : vector<16xi8> to vector<16xi32>
  %d = arith.subi %w, %z : vector<16xi32>
  %y = arith.sitofp %d : vector<16xi32> to vector<16xf32>
  %r = arith.sitofp %w : vector<16xi32> to vector<16xf32>
  return %y, %r : vector<16xf32>, vector<16xf32>
}

// Others may have a fraction.
// CHECK-LABEL: func.func @truncated(
// CHECK: arith.fptosi
// CHECK: arith.sitofp
// CHECK: return
func.func @truncated(%x: vector<16xf32>) -> vector<16xf32> {
  %q = arith.fptosi %x : vector<16xf32> to vector<16xi8>
  %w = arith.extsi %q : vector<16xi8> to vector<16xi32>
  %y = arith.sitofp %w : vector<16xi32> to vector<16xf32>
  return %y : vector<16xf32>
}

// A maximum or minimum of a number, which is one instruction.
// CHECK-LABEL: func.func @limited(
// CHECK: arith.cmpf ogt, %arg0
// CHECK: arith.cmpf olt
// CHECK-NOT: numf
// CHECK: return
func.func @limited(%x: vector<16xf32>) -> vector<16xf32> {
  %l = arith.constant dense<0.0> : vector<16xf32>
  %h = arith.constant dense<255.0> : vector<16xf32>
  %0 = arith.maxnumf %l, %x {relax.number_first} : vector<16xf32>
  %1 = arith.minnumf %h, %0 {relax.number_first} : vector<16xf32>
  return %1 : vector<16xf32>
}
