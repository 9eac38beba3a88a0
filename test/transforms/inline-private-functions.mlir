// RUN: relax-opt %s --split-input-file --relax-inline-private-functions | filecheck %s

// Every call gets its own copy, through several levels; the private functions go.
// CHECK-LABEL: @levels(%arg0: tensor<2x4xf32>, %arg1: tensor<4x4xf32>)
// CHECK-NEXT:    %0 = "relax.permute_dims"(%arg1)
// CHECK-NEXT:    %1 = "relax.matmul"(%arg0, %0)
// CHECK-NEXT:    %2 = "relax.permute_dims"(%arg1)
// CHECK-NEXT:    %3 = "relax.matmul"(%1, %2)
// CHECK-NEXT:    return %3, %arg0
// CHECK-NOT:   private
func.func private @transposed(%w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %t = "relax.permute_dims"(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %t : tensor<4x4xf32>
}
func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %t = call @transposed(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = "relax.matmul"(%x, %t) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y, %x : tensor<2x4xf32>, tensor<2x4xf32>
}
func.func @levels(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0:2 = call @layer(%x, %w) : (tensor<2x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %1:2 = call @layer(%0#0, %w) : (tensor<2x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  return %1#0, %0#1 : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// A call in a branch is inlined there; a region of the callee comes along.
// CHECK-LABEL: @regions
// CHECK:         scf.if %arg1
// CHECK:           scf.for
// CHECK:             "relax.exp"
// CHECK:         else
// CHECK-NEXT:      scf.yield %arg0
func.func @regions(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %0 = scf.if %c -> tensor<4xf32> {
    %1 = func.call @loop(%x) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
func.func private @loop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %0 = scf.for %i = %i0 to %i1 step %i1 iter_args(%c = %x) -> (tensor<4xf32>) {
    %n = "relax.exp"(%c) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// A symbol that the callee defines is renamed from the second call on, everywhere it occurs: types and attributes. The
// result is matched with the name that the caller knows it by. Symbols of arguments are the caller's own.
// CHECK-LABEL: @symbols
// CHECK:         %0 = "relax.match_cast"(%arg0) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k"]}>
// CHECK-NEXT:    %1 = "relax.shape_value"() {value = ["n + k"]}
// CHECK-NEXT:    %2 = "relax.match_cast"(%arg1) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k_1"]}>
// CHECK-NEXT:    %3 = "relax.shape_value"() {value = ["k_1 + n"]}
// CHECK-NEXT:    %4 = "relax.match_cast"(%2) : (tensor<?xf32, {sym = ["k_1"]}>) -> tensor<?xf32, {sym = ["k"]}>
// CHECK-NEXT:    return %0, %4, %1, %3
func.func @symbols(%a: tensor<?xf32>, %b: tensor<?xf32>, %x: tensor<?xf32, {sym = ["n"]}>)
    -> (tensor<?xf32, {sym = ["k"]}>, tensor<?xf32, {sym = ["k"]}>, tensor<i64>, tensor<i64>) {
  %0:2 = call @sized(%a, %x) : (tensor<?xf32>, tensor<?xf32, {sym = ["n"]}>)
      -> (tensor<?xf32, {sym = ["k"]}>, tensor<i64>)
  %1:2 = call @sized(%b, %x) : (tensor<?xf32>, tensor<?xf32, {sym = ["n"]}>)
      -> (tensor<?xf32, {sym = ["k"]}>, tensor<i64>)
  return %0#0, %1#0, %0#1, %1#1 : tensor<?xf32, {sym = ["k"]}>, tensor<?xf32, {sym = ["k"]}>, tensor<i64>, tensor<i64>
}
func.func private @sized(%a: tensor<?xf32>, %x: tensor<?xf32, {sym = ["n"]}>)
    -> (tensor<?xf32, {sym = ["k"]}>, tensor<i64>) {
  %0 = "relax.match_cast"(%a) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k"]}>
  %1 = "relax.shape_value"() {value = ["n + k"]} : () -> tensor<i64>
  return %0, %1 : tensor<?xf32, {sym = ["k"]}>, tensor<i64>
}

// -----

// Public functions, declarations and functions marked no_inline stay, and so does what an attribute refers to.
// CHECK-LABEL: @stays
// CHECK-NEXT:    call @public
// CHECK-NEXT:    call @declared
// CHECK-NEXT:    call @marked
// CHECK:       func.func @public
// CHECK:       func.func private @declared
// CHECK:       func.func private @marked
// CHECK-NOT:   @unused
// CHECK:       func.func private @named
func.func @stays(%x: tensor<4xf32>) -> tensor<4xf32> attributes {keep = [@named]} {
  %0 = call @public(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @declared(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = call @marked(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func @public(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
func.func private @marked(%x: tensor<4xf32>) -> tensor<4xf32> attributes {no_inline} {
  return %x : tensor<4xf32>
}
func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @named(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// A symbol of the callee is what the caller casts: 4 in one function, "m * 2" in another, in types and attributes
// alike. The result is what the caller's users know; a second tensor of the symbol is matched with what is known.
// CHECK-LABEL: @static
// CHECK-NEXT:    %0 = "relax.match_cast"(%arg0) : (tensor<4xf32>) -> tensor<?xf32, {sym = ["n"]}>
// CHECK-NEXT:    %1 = "relax.match_cast"(%arg1) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<4xf32>
// CHECK-NEXT:    %2 = "relax.shape_value"() {value = [5]} : () -> tensor<f32>
// CHECK-NEXT:    %3 = scf.if %arg2 -> (tensor<4xf32>) {
// CHECK-NEXT:      %5 = "relax.add"(%arg0, %2) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:      scf.yield %5 : tensor<4xf32>
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %1 : tensor<4xf32>
// CHECK:         %4 = "relax.match_cast"(%3) : (tensor<4xf32>) -> tensor<?xf32, {sym = ["n"]}>
// CHECK-NEXT:    return %4 : tensor<?xf32, {sym = ["n"]}>
// CHECK-LABEL: @expression
// CHECK:         "relax.shape_value"() {value = ["m * 2 + 1"]} : () -> tensor<f32>
// CHECK:           "relax.add"(%arg0, %{{\w+}}) : (tensor<?xf32, {sym = ["m * 2"]}>, tensor<f32>)
// CHECK-SAME:      -> tensor<?xf32, {sym = ["m * 2"]}>
// CHECK:           scf.yield %arg0 : tensor<?xf32, {sym = ["m * 2"]}>
func.func @static(%x: tensor<4xf32>, %y: tensor<?xf32, {sym = ["n"]}>, %c: i1) -> tensor<?xf32, {sym = ["n"]}> {
  %0 = "relax.match_cast"(%x) : (tensor<4xf32>) -> tensor<?xf32, {sym = ["n"]}>
  %1 = call @more(%0, %y, %c) : (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>, i1)
      -> tensor<?xf32, {sym = ["n"]}>
  return %1 : tensor<?xf32, {sym = ["n"]}>
}
func.func @expression(%x: tensor<?xf32, {sym = ["m * 2"]}>, %c: i1) -> tensor<?xf32, {sym = ["n"]}> {
  %0 = "relax.match_cast"(%x) : (tensor<?xf32, {sym = ["m * 2"]}>) -> tensor<?xf32, {sym = ["n"]}>
  %1 = call @more(%0, %0, %c) : (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>, i1)
      -> tensor<?xf32, {sym = ["n"]}>
  return %1 : tensor<?xf32, {sym = ["n"]}>
}
func.func private @more(%x: tensor<?xf32, {sym = ["n"]}>, %y: tensor<?xf32, {sym = ["n"]}>, %c: i1)
    -> tensor<?xf32, {sym = ["n"]}> {
  %n = "relax.shape_value"() {value = ["n + 1"]} : () -> tensor<f32>
  %0 = scf.if %c -> tensor<?xf32, {sym = ["n"]}> {
    %1 = "relax.add"(%x, %n) : (tensor<?xf32, {sym = ["n"]}>, tensor<f32>) -> tensor<?xf32, {sym = ["n"]}>
    scf.yield %1 : tensor<?xf32, {sym = ["n"]}>
  } else {
    scf.yield %y : tensor<?xf32, {sym = ["n"]}>
  }
  return %0 : tensor<?xf32, {sym = ["n"]}>
}

// -----

// Another shape for each instance: what the callee takes as unknown is a symbol of its own each time, also of nested
// calls.
// CHECK-LABEL: @instances
// CHECK:         %[[A:.*]] = "relax.match_cast"(%0) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k"]}>
// CHECK-NEXT:    "relax.exp"(%[[A]]) : (tensor<?xf32, {sym = ["k"]}>) -> tensor<?xf32, {sym = ["k"]}>
// CHECK:         %[[B:.*]] = "relax.match_cast"(%1) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k_1"]}>
// CHECK-NEXT:    "relax.exp"(%[[B]]) : (tensor<?xf32, {sym = ["k_1"]}>) -> tensor<?xf32, {sym = ["k_1"]}>
func.func @instances(%x: tensor<4xf32>, %y: tensor<8xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = "relax.match_cast"(%x) : (tensor<4xf32>) -> tensor<?xf32>
  %1 = "relax.match_cast"(%y) : (tensor<8xf32>) -> tensor<?xf32>
  %2 = call @outer(%0) : (tensor<?xf32>) -> tensor<?xf32>
  %3 = call @outer(%1) : (tensor<?xf32>) -> tensor<?xf32>
  return %2, %3 : tensor<?xf32>, tensor<?xf32>
}
func.func private @outer(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @any_size(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @any_size(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "relax.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k"]}>
  %1 = "relax.exp"(%0) : (tensor<?xf32, {sym = ["k"]}>) -> tensor<?xf32, {sym = ["k"]}>
  %2 = "relax.match_cast"(%1) : (tensor<?xf32, {sym = ["k"]}>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}

// -----

// A symbol stays where a call that remains, or an op of another dialect, relies on it.
// CHECK-LABEL: @relied_on
// CHECK:         call @marked(%0) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}>
// CHECK:         "relax.add"(%{{.*}}, %{{.*}}) : (tensor<?x?xf32, {sym = ["n", "n"]}>, tensor<?xf32, {sym = ["n"]}>)
// CHECK:         tensor.empty(%{{.*}}) : tensor<?xf32, {sym = ["m"]}>
func.func @relied_on(%x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<?x?xf32, {sym = ["n", "n"]}> {
  %0 = "relax.match_cast"(%x) : (tensor<4xf32>) -> tensor<?xf32, {sym = ["n"]}>
  %1 = "relax.match_cast"(%y) : (tensor<5xf32>) -> tensor<?xf32, {sym = ["m"]}>
  %2 = call @relying(%0, %1) : (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["m"]}>)
      -> tensor<?x?xf32, {sym = ["n", "n"]}>
  return %2 : tensor<?x?xf32, {sym = ["n", "n"]}>
}
func.func private @relying(%x: tensor<?xf32, {sym = ["n"]}>, %y: tensor<?xf32, {sym = ["m"]}>)
    -> tensor<?x?xf32, {sym = ["n", "n"]}> {
  %0 = call @marked(%x) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}>
  %1 = "relax.full"() {value = 0.0} : () -> tensor<?x?xf32, {sym = ["n", "n"]}>
  %2 = "relax.add"(%1, %0) : (tensor<?x?xf32, {sym = ["n", "n"]}>, tensor<?xf32, {sym = ["n"]}>)
      -> tensor<?x?xf32, {sym = ["n", "n"]}>
  %c0 = arith.constant 0 : index
  %d = tensor.dim %y, %c0 : tensor<?xf32, {sym = ["m"]}>
  %3 = tensor.empty(%d) : tensor<?xf32, {sym = ["m"]}>
  return %2 : tensor<?x?xf32, {sym = ["n", "n"]}>
}
func.func private @marked(%x: tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}> attributes {no_inline} {
  return %x : tensor<?xf32, {sym = ["n"]}>
}

// -----

// Tuples: symbols are replaced in them as well, and a result is what the caller's users know.
// CHECK-LABEL: @tuples
// CHECK:         builtin.unrealized_conversion_cast %arg0, %{{\w+}}
// CHECK-SAME:      : tensor<4xf32>, tensor<?xf32, {sym = ["k"]}> to tuple
// CHECK:         %[[P:\w+]] = builtin.unrealized_conversion_cast %arg0, %{{\w+}}
// CHECK-SAME:      : tensor<4xf32>, tensor<?xf32, {sym = ["k_1"]}> to
// CHECK-SAME:      tuple<tensor<4xf32>, tensor<?xf32, {sym = ["k_1"]}>>
// CHECK-NEXT:    %[[E:.*]]:2 = builtin.unrealized_conversion_cast %[[P]]
// CHECK-NEXT:    %[[N:.*]] = "relax.match_cast"(%[[E]]#0) : (tensor<4xf32>) -> tensor<?xf32, {sym = ["n"]}>
// CHECK-NEXT:    %[[K:\w+]] = "relax.match_cast"(%[[E]]#1) : (tensor<?xf32, {sym = ["k_1"]}>)
// CHECK-SAME:    -> tensor<?xf32, {sym = ["k"]}>
// CHECK-NEXT:    %[[R:.*]] = builtin.unrealized_conversion_cast %[[N]], %[[K]]
// CHECK-NEXT:    return %{{.*}}, %[[R]]
!pair = tuple<tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["k"]}>>
func.func @tuples(%x: tensor<4xf32>, %y: tensor<?xf32>) -> (!pair, !pair) {
  %0 = "relax.match_cast"(%x) : (tensor<4xf32>) -> tensor<?xf32, {sym = ["n"]}>
  %1 = call @pair(%0, %y) : (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32>) -> !pair
  %2 = call @pair(%0, %y) : (tensor<?xf32, {sym = ["n"]}>, tensor<?xf32>) -> !pair
  return %1, %2 : !pair, !pair
}
func.func private @pair(%x: tensor<?xf32, {sym = ["n"]}>, %y: tensor<?xf32>) -> !pair {
  %0 = "relax.match_cast"(%y) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k"]}>
  %1 = builtin.unrealized_conversion_cast %x, %0 : tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["k"]}> to !pair
  return %1 : !pair
}
