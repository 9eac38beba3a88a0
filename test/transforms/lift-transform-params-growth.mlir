// RUN: relax-opt %s --split-input-file --relax-lift-transform-params='max-growth=1.2 growth-slack=0' | filecheck %s
// RUN: relax-opt %s --split-input-file --relax-lift-transform-params='max-growth=1.2 growth-slack=0' \
// RUN:     --relax-lift-transform-params='max-growth=1.2 growth-slack=0' | filecheck %s

// A value 1.15 times as large as what it comes from, and one exactly 1.2 times, are lifted; one 1.21 times as large is
// not.
// CHECK-LABEL: @exactly_at_the_limit_transform_params
// CHECK-SAME:    -> (tensor<100xf32> {relax.name = "c"}, tensor<115xf32> {relax.name = "a.concat"}, tensor<120xf32>
// CHECK-SAME:    {relax.name = "b.concat"})
// CHECK:       @exactly_at_the_limit(
// CHECK:         relax.concat
// CHECK-SAME:      tensor<121xf32>
// CHECK-NOT:     relax.concat
func.func @exactly_at_the_limit(%a: tensor<100xf32> {relax.name = "a"}, %b: tensor<100xf32> {relax.name = "b"},
    %c: tensor<100xf32> {relax.name = "c"})
    -> (tensor<115xf32>, tensor<120xf32>, tensor<121xf32>) attributes {relax.num_input = 0 : i64} {
  %p15 = "relax.full"() {value = 0.0 : f64} : () -> tensor<15xf32>
  %p20 = "relax.full"() {value = 0.0 : f64} : () -> tensor<20xf32>
  %p21 = "relax.full"() {value = 0.0 : f64} : () -> tensor<21xf32>
  %0 = "relax.concat"(%a, %p15) : (tensor<100xf32>, tensor<15xf32>) -> tensor<115xf32>
  %1 = "relax.concat"(%b, %p20) : (tensor<100xf32>, tensor<20xf32>) -> tensor<120xf32>
  %2 = "relax.concat"(%c, %p21) : (tensor<100xf32>, tensor<21xf32>) -> tensor<121xf32>
  return %0, %1, %2 : tensor<115xf32>, tensor<120xf32>, tensor<121xf32>
}

// -----

// Two ops that each grow by 1.2 grow by 1.44: the second one stays, also in the next run, which sees the first one's
// result as a weight.
// CHECK-LABEL: @chain_transform_params
// CHECK-SAME:    -> (tensor<120xf32> {relax.name = "w.concat"})
// CHECK:       @chain(
// CHECK:         "relax.concat"(%arg0, %{{.*}}) : (tensor<120xf32>, tensor<24xf32>)
func.func @chain(%w: tensor<100xf32> {relax.name = "w"}) -> tensor<144xf32> attributes {relax.num_input = 0 : i64} {
  %p20 = "relax.full"() {value = 0.0 : f64} : () -> tensor<20xf32>
  %p24 = "relax.full"() {value = 0.0 : f64} : () -> tensor<24xf32>
  %0 = "relax.concat"(%w, %p20) : (tensor<100xf32>, tensor<20xf32>) -> tensor<120xf32>
  %1 = "relax.concat"(%0, %p24) : (tensor<120xf32>, tensor<24xf32>) -> tensor<144xf32>
  return %1 : tensor<144xf32>
}

// -----

// What is small because little of a weight is read does not excuse growth: half of the weight, cast to twice the size,
// stays a cast.
// CHECK-LABEL: @slice_transform_params
// CHECK-SAME:    -> (tensor<50xf16> {relax.name = "w.strided_slice"})
// CHECK:       @slice(
// CHECK-NEXT:    "relax.astype"
func.func @slice(%w: tensor<100xf16> {relax.name = "w"}) -> tensor<50xf32> attributes {relax.num_input = 0 : i64} {
  %0 = "relax.strided_slice"(%w) {axes = array<i64: 0>, begin = [0], end = [50]} : (tensor<100xf16>) -> tensor<50xf16>
  %1 = "relax.astype"(%0) {dtype = f32} : (tensor<50xf16>) -> tensor<50xf32>
  return %1 : tensor<50xf32>
}

// -----

// A shrinking step behind a growing one makes up for it: the end counts.
// CHECK-LABEL: @there_and_back_transform_params
// CHECK-SAME:    -> (tensor<100xf16> {relax.name = "w.astype.exp.astype"})
func.func @there_and_back(%w: tensor<100xf16> {relax.name = "w"}) -> tensor<100xf16>
    attributes {relax.num_input = 0 : i64} {
  %0 = "relax.astype"(%w) {dtype = f32} : (tensor<100xf16>) -> tensor<100xf32>
  %1 = "relax.exp"(%0) : (tensor<100xf32>) -> tensor<100xf32>
  %2 = "relax.astype"(%1) {dtype = f16} : (tensor<100xf32>) -> tensor<100xf16>
  return %2 : tensor<100xf16>
}

// -----

// Dequantization to four times the size stays, wherever in the chain; the transpose of the quantized weight before it
// is lifted.
// CHECK-LABEL: @dequantize_transform_params
// CHECK-SAME:    -> (tensor<8xf32> {relax.name = "s"}, tensor<8xi8> {relax.name = "z"}, tensor<16x8xi8>
// CHECK-SAME:    {relax.name = "q.permute_dims"})
// CHECK:       @dequantize(
// CHECK-NEXT:    "relax.dequantize"
// CHECK-NEXT:    "relax.matmul"
func.func @dequantize(%x: tensor<2x16xf32>, %q: tensor<8x16xi8> {relax.name = "q"}, %s: tensor<8xf32>
    {relax.name = "s"}, %z: tensor<8xi8> {relax.name = "z"})
    -> tensor<2x8xf32> attributes {relax.num_input = 1 : i64} {
  %t = "relax.permute_dims"(%q) : (tensor<8x16xi8>) -> tensor<16x8xi8>
  %d = "relax.dequantize"(%t, %s, %z) {axis = 1 : i64} : (tensor<16x8xi8>, tensor<8xf32>, tensor<8xi8>)
      -> tensor<16x8xf32>
  %y = "relax.matmul"(%x, %d) : (tensor<2x16xf32>, tensor<16x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// A bias made as large as the activations stays; what is done to it before is lifted.
// CHECK-LABEL: @broadcast_transform_params
// CHECK-SAME:    -> (tensor<8xf32> {relax.name = "b.exp"})
// CHECK:       @broadcast(
// CHECK-NEXT:    "relax.broadcast_to"
// CHECK-NEXT:    "relax.add"
func.func @broadcast(%x: tensor<64x8xf32>, %b: tensor<8xf32> {relax.name = "b"}) -> tensor<64x8xf32>
    attributes {relax.num_input = 1 : i64} {
  %e = "relax.exp"(%b) : (tensor<8xf32>) -> tensor<8xf32>
  %l = "relax.broadcast_to"(%e) : (tensor<8xf32>) -> tensor<64x8xf32>
  %y = "relax.add"(%x, %l) : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
  return %y : tensor<64x8xf32>
}

// -----

// One weight, many values: the parts of a joint projection are together as large as it is. Of a part that grows, all
// results stay.
// CHECK-LABEL: @split_transform_params
// CHECK-SAME:    "w.split.0"
// CHECK-SAME:    "w.split.1"
// CHECK-SAME:    "w.split.2"
// CHECK-NOT:     "v.
// CHECK:       @split(
// CHECK:         "relax.concat"
// CHECK-NEXT:    "relax.split"
func.func @split(%w: tensor<12x4xf32> {relax.name = "w"}, %v: tensor<4x4xf32> {relax.name = "v"})
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>)
        attributes {relax.num_input = 0 : i64} {
  %q, %k, %l = "relax.split"(%w) {sections = 3 : i64} : (tensor<12x4xf32>)
      -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>)
  %c = "relax.concat"(%v, %v) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %a, %b = "relax.split"(%c) {sections = 2 : i64} : (tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
  return %q, %k, %l, %a, %b : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A loop on weights alone whose result is too large stays a loop; the weight math in it, and around it, is lifted all
// the same.
// CHECK-LABEL: @loop_transform_params
// CHECK-SAME:    -> (tensor<4xf32> {relax.name = "w.exp"}, tensor<4xf32> {relax.name = "w.abs"})
// CHECK:       @loop(
// CHECK:         "relax.concat"(%arg0, %arg0)
// CHECK:         scf.for
// CHECK-NEXT:      "relax.concat"(%arg1, %arg1)
func.func @loop(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<16xf32> attributes {relax.num_input = 0 : i64} {
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %i3 = arith.constant 3 : index
  %e = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %ee = "relax.concat"(%e, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %s = "relax.concat"(%ee, %ee) : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %0 = scf.for %i = %i0 to %i3 step %i1 iter_args(%c = %s) -> (tensor<16xf32>) {
    %a = "relax.abs"(%w) : (tensor<4xf32>) -> tensor<4xf32>
    %aa = "relax.concat"(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
    %l = "relax.concat"(%aa, %aa) : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
    %n = "relax.add"(%c, %l) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    scf.yield %n : tensor<16xf32>
  }
  return %0 : tensor<16xf32>
}

// -----

// Branches and loops on weights and constants are lifted whole when they do not grow.
// CHECK-LABEL: @control_flow_transform_params
// CHECK-SAME:    -> (tensor<4xf32> {relax.name = "w.for"}, tensor<4xf32> {relax.name = "w.if"})
func.func @control_flow(%w: tensor<4xf32> {relax.name = "w"}) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {relax.num_input = 0 : i64} {
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %i3 = arith.constant 3 : index
  %true = arith.constant true
  %0 = scf.for %i = %i0 to %i3 step %i1 iter_args(%c = %w) -> (tensor<4xf32>) {
    %n = "relax.add"(%c, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  %1 = scf.if %true -> tensor<4xf32> {
    %n = "relax.negative"(%w) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  } else {
    scf.yield %w : tensor<4xf32>
  }
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A call on weights alone whose result is too large is taken apart.
// CHECK-LABEL: @call_transform_params
// CHECK-SAME:    -> (tensor<4x4xi8> {relax.name = "q.permute_dims"})
// CHECK:       @call(
// CHECK-NEXT:    "relax.astype"(%arg0)
// CHECK-NOT:   private
func.func @call(%q: tensor<4x4xi8> {relax.name = "q"}) -> tensor<4x4xf32> attributes {relax.num_input = 0 : i64} {
  %0 = call @decoded(%q) : (tensor<4x4xi8>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func private @decoded(%q: tensor<4x4xi8>) -> tensor<4x4xf32> {
  %t = "relax.permute_dims"(%q) : (tensor<4x4xi8>) -> tensor<4x4xi8>
  %f = "relax.astype"(%t) {dtype = f32} : (tensor<4x4xi8>) -> tensor<4x4xf32>
  return %f : tensor<4x4xf32>
}

// -----

// Symbolic sizes compare when their ratio is one number; those that do not compare are not limited.
// CHECK-LABEL: @symbolic_transform_params
// CHECK-SAME:    tensor<?x4xf32, {sym = ["m"]}> {relax.name = "w.permute_dims"}
// CHECK-SAME:    tensor<?xf32> {relax.name = "v.concat"}
// CHECK:       @symbolic(
// CHECK:         "relax.astype"
// CHECK-SAME:      -> tensor<?x4xf64, {sym = ["m"]}>
func.func @symbolic(%w: tensor<4x?xf32, {sym = ["m"]}> {relax.name = "w"}, %v: tensor<?xf32> {relax.name = "v"})
    -> (tensor<?x4xf64, {sym = ["m"]}>, tensor<?xf32>) attributes {relax.num_input = 0 : i64} {
  %t = "relax.permute_dims"(%w) : (tensor<4x?xf32, {sym = ["m"]}>) -> tensor<?x4xf32, {sym = ["m"]}>
  %f = "relax.astype"(%t) {dtype = f64} : (tensor<?x4xf32, {sym = ["m"]}>) -> tensor<?x4xf64, {sym = ["m"]}>
  %c = "relax.concat"(%v, %v) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %f, %c : tensor<?x4xf64, {sym = ["m"]}>, tensor<?xf32>
}

// -----

// A deep and wide computation that ends small is lifted, large values in between and all.
// CHECK-LABEL: @deep_and_wide_transform_params
// CHECK-SAME:    -> (tensor<4xf32> {relax.name = "a+b.add+b+c.add.concat.concat.concat.concat.sum"})
// CHECK:       @deep_and_wide(%arg0: tensor<4xf32> {relax.name = "a+b.add+b+c.add.concat.concat.concat.concat.sum"})
// CHECK-NEXT:    return %arg0
func.func @deep_and_wide(%a: tensor<1x4xf32> {relax.name = "a"}, %b: tensor<1x4xf32> {relax.name = "b"},
    %c: tensor<1x4xf32> {relax.name = "c"}) -> tensor<4xf32> attributes {relax.num_input = 0 : i64} {
  %0 = "relax.add"(%a, %b) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %1 = "relax.add"(%b, %c) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %2 = "relax.concat"(%0, %1) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %3 = "relax.concat"(%2, %2) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %4 = "relax.concat"(%3, %3) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %5 = "relax.concat"(%4, %4) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  %6 = "relax.sum"(%5) {axis = array<i64: 0>} : (tensor<16x4xf32>) -> tensor<4xf32>
  return %6 : tensor<4xf32>
}

// -----

// Weights that come as one tuple: its size is that of its elements, which grow by nothing.
// CHECK-LABEL: @bundle_transform_params
// CHECK-SAME:    tensor<4xf32> {relax.name
// CHECK-SAME:    tensor<8xf16> {relax.name
// CHECK:       @bundle(%arg0: tensor<4xf32>
// CHECK-NEXT:    return %arg0, %arg1
func.func @bundle(%p: tuple<tensor<4xf32>, tensor<8xf16>> {relax.name = "params"}) -> (tensor<4xf32>, tensor<8xf16>)
    attributes {relax.num_input = 0 : i64} {
  %e:2 = builtin.unrealized_conversion_cast %p : tuple<tensor<4xf32>, tensor<8xf16>> to tensor<4xf32>, tensor<8xf16>
  return %e#0, %e#1 : tensor<4xf32>, tensor<8xf16>
}

// -----

// What comes from one value on two ways grows from that value, not from both: the loop is too large before and after
// the exponential is lifted out of it.
// CHECK-LABEL: @two_ways_transform_params
// CHECK-SAME:    -> (tensor<6xf32> {relax.name = "w"}, tensor<6xf32> {relax.name = "w.exp"})
// CHECK:       @two_ways(
// CHECK:         scf.while
func.func @two_ways(%w: tensor<6xf32> {relax.name = "w"}) -> tensor<6xf32> attributes {relax.num_input = 0 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0:2 = scf.while (%i = %c1, %v = %w) : (index, tensor<6xf32>) -> (index, tensor<6xf32>) {
    %more = arith.cmpi ugt, %i, %c0 : index
    %e = "relax.exp"(%w) : (tensor<6xf32>) -> tensor<6xf32>
    scf.condition(%more) %i, %e : index, tensor<6xf32>
  } do {
  ^bb0(%i: index, %v: tensor<6xf32>):
    %next = arith.subi %i, %c1 : index
    scf.yield %next, %w : index, tensor<6xf32>
  }
  return %0#1 : tensor<6xf32>
}

// -----

// A loop that is too large alone, and one that reads it and hides a barrier that nothing needs in a call: once the call
// is inlined the second loop is lifted as a whole, and the first one is judged no more.
// CHECK-LABEL: @after_inlining_transform_params
// CHECK:         scf.while
// CHECK:         scf.while
// CHECK:       @after_inlining(%arg0: tensor<6xf32> {relax.name =
// CHECK-NEXT:    return %arg0
func.func private @hides(%v: tensor<6xf32>) -> tensor<6xf32> {
  %0 = "relax.stop_lift_params"(%v) : (tensor<6xf32>) -> tensor<6xf32>
  %1 = "relax.exp"(%v) : (tensor<6xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}
func.func @after_inlining(%w: tensor<6xf32> {relax.name = "w"}, %u: tensor<6xf32> {relax.name = "u"}) -> tensor<6xf32>
    attributes {relax.num_input = 0 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0:2 = scf.while (%i = %c1, %v = %w) : (index, tensor<6xf32>) -> (index, tensor<6xf32>) {
    %more = arith.cmpi ugt, %i, %c0 : index
    scf.condition(%more) %i, %v : index, tensor<6xf32>
  } do {
  ^bb0(%i: index, %v: tensor<6xf32>):
    %next = arith.subi %i, %c1 : index
    scf.yield %next, %w : index, tensor<6xf32>
  }
  %1:2 = scf.while (%i = %c1, %v = %u) : (index, tensor<6xf32>) -> (index, tensor<6xf32>) {
    %more = arith.cmpi ugt, %i, %c0 : index
    scf.condition(%more) %i, %v : index, tensor<6xf32>
  } do {
  ^bb0(%i: index, %v: tensor<6xf32>):
    %next = arith.subi %i, %c1 : index
    %e = func.call @hides(%0#1) : (tensor<6xf32>) -> tensor<6xf32>
    scf.yield %next, %e : index, tensor<6xf32>
  }
  return %1#1 : tensor<6xf32>
}
