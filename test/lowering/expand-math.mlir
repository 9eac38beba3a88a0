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

// Rounded and converted at once, and moved by the zero point as an integer; dequantized, it needs none in between.
// CHECK-LABEL: func.func @quantized(
// CHECK:      %[[Z:.*]] = arith.extui %arg1 : vector<16xi8> to vector<16xi32>
// CHECK-NEXT: %[[W:.*]] = llvm.call_intrinsic "llvm.lrint"(%arg0) : (vector<16xf32>) -> vector<16xi32>
// CHECK:      %[[S:.*]] = arith.addi %[[W]], %[[Z]]
// CHECK-NEXT: %[[Q:.*]] = arith.trunci %[[S]] : vector<16xi32> to vector<16xi8>
// CHECK-NOT:  arith.sitofp
// CHECK:      %[[D:.*]] = arith.addf %{{\w+}}, %cst{{\w*}}
// CHECK-NEXT: return %[[Q]], %[[D]]
func.func @quantized(%x: vector<16xf32>, %z: vector<16xi8>) -> (vector<16xi8>, vector<16xf32>) {
  %0 = math.roundeven %x : vector<16xf32>
  %1 = arith.uitofp %z : vector<16xi8> to vector<16xf32>
  %2 = arith.addf %0, %1 : vector<16xf32>
  %q = arith.fptoui %2 {relax.integral} : vector<16xf32> to vector<16xi8>
  %w = arith.extui %q : vector<16xi8> to vector<16xi32>
  %v = arith.extui %z : vector<16xi8> to vector<16xi32>
  %d = arith.subi %w, %v : vector<16xi32>
  %y = arith.sitofp %d : vector<16xi32> to vector<16xf32>
  return %q, %y : vector<16xi8>, vector<16xf32>
}

// Zero points that are one number; of what another one is taken from, both are there.
// CHECK-LABEL: func.func @numbers(
// CHECK:      %{{\w+}} = arith.extsi %arg1 : i8 to i32
// CHECK:      %[[W:.*]] = llvm.call_intrinsic "llvm.lrint"(%arg0) : (vector<16xf32>) -> vector<16xi32>
// CHECK:      arith.addi %[[W]], %{{\w+}}
// CHECK:      llvm.call_intrinsic "llvm.lrint"(%arg2) : (f32) -> i32
// CHECK:      arith.addi
// CHECK:      %[[D:.*]] = arith.subf
// CHECK:      return
func.func @numbers(%x: vector<16xf32>, %z: i8, %s: f32) -> (vector<16xi8>, i8, f32) {
  %0 = math.roundeven %x : vector<16xf32>
  %1 = arith.sitofp %z : i8 to f32
  %2 = vector.broadcast %1 : f32 to vector<16xf32>
  %3 = arith.addf %0, %2 : vector<16xf32>
  %4 = arith.fptosi %3 {relax.integral} : vector<16xf32> to vector<16xi8>
  %c = arith.constant 3.0 : f32
  %5 = math.roundeven %s : f32
  %6 = arith.addf %5, %c : f32
  %7 = arith.fptosi %6 {relax.integral} : f32 to i8
  %8 = arith.extsi %7 : i8 to i32
  %d = arith.constant 4 : i32
  %9 = arith.subi %8, %d : i32
  %10 = arith.sitofp %9 : i32 to f32
  return %4, %7, %10 : vector<16xi8>, i8, f32
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
