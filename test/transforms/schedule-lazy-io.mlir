// RUN: relax-opt %s --split-input-file --relax-schedule-lazy-io | filecheck %s

// All reads, then all casts, then all transposes: one weight after the other needs the bytes of one.
// CHECK-LABEL: @casts_then_transposes(%arg0: !relax.param_provider, %arg1: !relax.output_sink)
// CHECK-SAME:    relax.peak_bytes = 192 : i64
// CHECK-NEXT:    %[[A:.*]] = "relax.get_param"(%arg0) {index = 0 : i64, name = "a"}
// CHECK-NEXT:    %[[C:.*]] = "relax.astype"(%[[A]])
// CHECK-NEXT:    %[[T:.*]] = "relax.permute_dims"(%[[C]])
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[T]]) {index = 0 : i64}
// CHECK-NEXT:    %[[B:.*]] = "relax.get_param"(%arg0) {index = 1 : i64, name = "b"}
// CHECK-NEXT:    %[[D:.*]] = "relax.astype"(%[[B]])
// CHECK-NEXT:    %[[U:.*]] = "relax.permute_dims"(%[[D]])
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[U]]) {index = 1 : i64}
// CHECK-NEXT:    return
func.func @casts_then_transposes(%p: !relax.param_provider, %s: !relax.output_sink)
    attributes {relax.num_input = 2 : i64} {
  %a = "relax.get_param"(%p) {index = 0 : i64, name = "a"} : (!relax.param_provider) -> tensor<4x8xf32>
  %b = "relax.get_param"(%p) {index = 1 : i64, name = "b"} : (!relax.param_provider) -> tensor<4x8xf32>
  %c = "relax.astype"(%a) {dtype = f16} : (tensor<4x8xf32>) -> tensor<4x8xf16>
  %d = "relax.astype"(%b) {dtype = f16} : (tensor<4x8xf32>) -> tensor<4x8xf16>
  %t = "relax.permute_dims"(%c) : (tensor<4x8xf16>) -> tensor<8x4xf16>
  %u = "relax.permute_dims"(%d) : (tensor<4x8xf16>) -> tensor<8x4xf16>
  "relax.set_output"(%s, %t) {index = 0 : i64} : (!relax.output_sink, tensor<8x4xf16>) -> ()
  "relax.set_output"(%s, %u) {index = 1 : i64} : (!relax.output_sink, tensor<8x4xf16>) -> ()
  return
}

// -----

// What everything shares is read once and stays; the rest comes and goes.
// CHECK-LABEL: @shared
// CHECK-SAME:    relax.peak_bytes = 260 : i64
// CHECK-NEXT:    %[[K:.*]] = "relax.get_param"(%arg0) {index = 2 : i64}
// CHECK-NEXT:    %[[A:.*]] = "relax.get_param"(%arg0) {index = 0 : i64}
// CHECK-NEXT:    %[[X:.*]] = "relax.multiply"(%[[A]], %[[K]])
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[X]]) {index = 0 : i64}
// CHECK-NEXT:    %[[B:.*]] = "relax.get_param"(%arg0) {index = 1 : i64}
// CHECK-NEXT:    %[[Y:.*]] = "relax.multiply"(%[[B]], %[[K]])
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[Y]]) {index = 1 : i64}
// CHECK-NEXT:    return
func.func @shared(%p: !relax.param_provider, %s: !relax.output_sink) attributes {relax.num_input = 2 : i64} {
  %k = "relax.get_param"(%p) {index = 2 : i64} : (!relax.param_provider) -> tensor<f32>
  %a = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<4x8xf32>
  %b = "relax.get_param"(%p) {index = 1 : i64} : (!relax.param_provider) -> tensor<4x8xf32>
  %x = "relax.multiply"(%a, %k) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %y = "relax.multiply"(%b, %k) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  "relax.set_output"(%s, %x) {index = 0 : i64} : (!relax.output_sink, tensor<4x8xf32>) -> ()
  "relax.set_output"(%s, %y) {index = 1 : i64} : (!relax.output_sink, tensor<4x8xf32>) -> ()
  return
}

// -----

// Of two subtrees the one with the higher hill goes first: 512 + 16 for the mean, not 16 + 512 + 16.
// CHECK-LABEL: @hills
// CHECK-SAME:    relax.peak_bytes = 528 : i64
// CHECK-NEXT:    %[[B:.*]] = "relax.get_param"(%arg0) {index = 1 : i64}
// CHECK-NEXT:    %[[M:.*]] = "relax.mean"(%[[B]])
// CHECK-NEXT:    %[[A:.*]] = "relax.get_param"(%arg0) {index = 0 : i64}
// CHECK-NEXT:    "relax.add"(%[[A]], %[[M]])
func.func @hills(%p: !relax.param_provider, %s: !relax.output_sink) attributes {relax.num_input = 2 : i64} {
  %a = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<4xf32>
  %b = "relax.get_param"(%p) {index = 1 : i64} : (!relax.param_provider) -> tensor<32x4xf32>
  %m = "relax.mean"(%b) {axis = array<i64: 0>} : (tensor<32x4xf32>) -> tensor<4xf32>
  %c = "relax.add"(%a, %m) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "relax.set_output"(%s, %c) {index = 0 : i64} : (!relax.output_sink, tensor<4xf32>) -> ()
  return
}

// -----

// What has effects keeps its place among its kind and the writes.
// CHECK-LABEL: @effects
// CHECK-NEXT:    call @log()
// CHECK-NEXT:    %[[A:.*]] = "relax.get_param"(%arg0) {index = 0 : i64}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[A]]) {index = 0 : i64}
// CHECK-NEXT:    call @log()
// CHECK-NEXT:    %[[B:.*]] = "relax.get_param"(%arg0) {index = 1 : i64}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[B]]) {index = 1 : i64}
func.func private @log()
func.func @effects(%p: !relax.param_provider, %s: !relax.output_sink) attributes {relax.num_input = 2 : i64} {
  %b = "relax.get_param"(%p) {index = 1 : i64} : (!relax.param_provider) -> tensor<4xf32>
  %a = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<4xf32>
  call @log() : () -> ()
  "relax.set_output"(%s, %a) {index = 0 : i64} : (!relax.output_sink, tensor<4xf32>) -> ()
  call @log() : () -> ()
  "relax.set_output"(%s, %b) {index = 1 : i64} : (!relax.output_sink, tensor<4xf32>) -> ()
  return
}

// -----

// Blocks in regions are ordered, too, and count: 128 for the weight, 128 for its negative, 256 + 8 in the branch.
// CHECK-LABEL: @regions
// CHECK-SAME:    relax.peak_bytes = 520 : i64
// CHECK:         scf.if
// CHECK-NEXT:      %[[D:.*]] = "relax.astype"
// CHECK-NEXT:      %[[M:.*]] = "relax.mean"(%[[D]])
// CHECK-NEXT:      %[[C:.*]] = "relax.astype"(%[[M]])
// CHECK-NEXT:      %[[E:.*]] = "relax.exp"
// CHECK-NEXT:      "relax.add"(%[[E]], %[[C]])
func.func @regions(%p: !relax.param_provider, %s: !relax.output_sink) attributes {relax.num_input = 2 : i64} {
  %true = arith.constant true
  %w = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<4x8xf32>
  %n = "relax.negative"(%w) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = scf.if %true -> tensor<4x8xf32> {
    %e = "relax.exp"(%w) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %d = "relax.astype"(%n) {dtype = f64} : (tensor<4x8xf32>) -> tensor<4x8xf64>
    %m = "relax.mean"(%d) : (tensor<4x8xf64>) -> tensor<f64>
    %c = "relax.astype"(%m) {dtype = f32} : (tensor<f64>) -> tensor<f32>
    %a = "relax.add"(%e, %c) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %b = "relax.add"(%a, %n) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    scf.yield %b : tensor<4x8xf32>
  } else {
    scf.yield %w : tensor<4x8xf32>
  }
  "relax.set_output"(%s, %y) {index = 0 : i64} : (!relax.output_sink, tensor<4x8xf32>) -> ()
  return
}

// -----

// Sizes that are not known give no peak. A weight that defines a symbol is read before the symbol is used.
// CHECK-LABEL: @symbolic
// CHECK-NOT:     relax.peak_bytes
// CHECK:         %[[W:.*]] = "relax.get_param"(%arg0) {index = 0 : i64}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[W]]) {index = 1 : i64}
// CHECK-NEXT:    %[[Z:.*]] = "relax.full"
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[Z]]) {index = 0 : i64}
func.func @symbolic(%p: !relax.param_provider, %s: !relax.output_sink)
    attributes {relax.num_input = 2 : i64, relax.peak_bytes = 1 : i64} {
  %w = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<?xf32, {sym = ["k"]}>
  %z = "relax.full"() {value = 1.0} : () -> tensor<?x64xf32, {sym = ["k"]}>
  "relax.set_output"(%s, %z) {index = 0 : i64} : (!relax.output_sink, tensor<?x64xf32, {sym = ["k"]}>) -> ()
  "relax.set_output"(%s, %w) {index = 1 : i64} : (!relax.output_sink, tensor<?xf32, {sym = ["k"]}>) -> ()
  return
}

// -----

// Two reads that together define a symbol both stay before its use.
// CHECK-LABEL: @joint
// CHECK:         "relax.get_param"(%arg0) {index = 0 : i64}
// CHECK:         "relax.get_param"(%arg0) {index = 1 : i64}
// CHECK:         %[[M:.*]] = "relax.shape_value"() {value = ["m"]}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[M]]) {index = 0 : i64}
func.func @joint(%p: !relax.param_provider, %s: !relax.output_sink) attributes {relax.num_input = 2 : i64} {
  %sum = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<?xf32, {sym = ["k + m"]}>
  %one = "relax.get_param"(%p) {index = 1 : i64} : (!relax.param_provider) -> tensor<?xf32, {sym = ["k"]}>
  %m = "relax.shape_value"() {value = ["m"]} : () -> tensor<i64>
  %e = "relax.exp"(%one) : (tensor<?xf32, {sym = ["k"]}>) -> tensor<?xf32, {sym = ["k"]}>
  "relax.set_output"(%s, %m) {index = 0 : i64} : (!relax.output_sink, tensor<i64>) -> ()
  "relax.set_output"(%s, %sum) {index = 1 : i64} : (!relax.output_sink, tensor<?xf32, {sym = ["k + m"]}>) -> ()
  "relax.set_output"(%s, %e) {index = 2 : i64} : (!relax.output_sink, tensor<?xf32, {sym = ["k"]}>) -> ()
  return
}

// -----

// Reads alone, or writes alone: arguments and what is returned count to the end. A call counts what it holds inside.
// CHECK-LABEL: @reads_only(%arg0: tensor<16xf32>, %arg1: !relax.param_provider)
// CHECK-SAME:    relax.peak_bytes = 320 : i64
// CHECK-NEXT:    %[[B:.*]] = "relax.get_param"(%arg1) {index = 1 : i64}
// CHECK-NEXT:    %[[S:.*]] = call @half(%[[B]])
// CHECK-NEXT:    %[[A:.*]] = "relax.get_param"(%arg1) {index = 0 : i64}
// CHECK-NEXT:    return %[[A]], %[[S]]
// CHECK-LABEL: @writes_only(%arg0: tensor<16xf32>, %arg1: !relax.output_sink)
// CHECK-SAME:    relax.peak_bytes = 128 : i64
// CHECK-LABEL: @not_lazy
// CHECK-NOT:     relax.peak_bytes
// CHECK:         relax.exp
func.func @reads_only(%x: tensor<16xf32>, %p: !relax.param_provider) -> (tensor<16xf32>, tensor<8xf32>)
    attributes {relax.num_input = 2 : i64} {
  %a = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<16xf32>
  %b = "relax.get_param"(%p) {index = 1 : i64} : (!relax.param_provider) -> tensor<16xf32>
  %s = call @half(%b) : (tensor<16xf32>) -> tensor<8xf32>
  return %a, %s : tensor<16xf32>, tensor<8xf32>
}
func.func private @half(%b: tensor<16xf32>) -> tensor<8xf32> {
  %d = "relax.astype"(%b) {dtype = f64} : (tensor<16xf32>) -> tensor<16xf64>
  %f = "relax.astype"(%d) {dtype = f32} : (tensor<16xf64>) -> tensor<16xf32>
  %s:2 = "relax.split"(%f) {sections = 2 : i64} : (tensor<16xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %s#0 : tensor<8xf32>
}
func.func @writes_only(%x: tensor<16xf32>, %s: !relax.output_sink) attributes {relax.num_input = 2 : i64} {
  %a = "relax.exp"(%x) : (tensor<16xf32>) -> tensor<16xf32>
  "relax.set_output"(%s, %a) {index = 0 : i64} : (!relax.output_sink, tensor<16xf32>) -> ()
  return
}
func.func @not_lazy(%x: tensor<16xf32>) -> tensor<16xf32> attributes {relax.num_input = 1 : i64} {
  %a = "relax.exp"(%x) : (tensor<16xf32>) -> tensor<16xf32>
  return %a : tensor<16xf32>
}

// -----

// Callbacks that are functions are reads and writes like any other.
// CHECK-LABEL: @declared
// CHECK-SAME:    relax.peak_bytes = 32 : i64
// CHECK:         %[[A:.*]] = call @get(%{{.*}}) {relax.name = "a"}
// CHECK-NEXT:    %[[E:.*]] = "relax.exp"(%[[A]])
// CHECK:         call @set(%{{.*}}, %[[E]])
// CHECK:         %[[B:.*]] = call @get(%{{.*}}) {relax.name = "b"}
// CHECK-NEXT:    %[[F:.*]] = "relax.exp"(%[[B]])
// CHECK-NEXT:    call @set(%{{.*}}, %[[F]])
func.func private @get(index {relax.name = "index"}) -> tensor<4xf32> attributes {relax.callback = "get_param"}
func.func private @set(index {relax.name = "index"}, tensor<4xf32> {relax.name = "value"})
    attributes {relax.callback = "set_output"}
func.func @declared() {
  %i = arith.constant 0 : index
  %j = arith.constant 1 : index
  %a = call @get(%i) {relax.name = "a"} : (index) -> tensor<4xf32>
  %b = call @get(%j) {relax.name = "b"} : (index) -> tensor<4xf32>
  %e = "relax.exp"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %f = "relax.exp"(%b) : (tensor<4xf32>) -> tensor<4xf32>
  call @set(%i, %e) : (index, tensor<4xf32>) -> ()
  call @set(%j, %f) : (index, tensor<4xf32>) -> ()
  return
}
