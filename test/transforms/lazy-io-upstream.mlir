// RUN: relax-opt %s --split-input-file --pass-pipeline='builtin.module(cse,canonicalize,symbol-dce)' | filecheck %s
// RUN: relax-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(relax-canonicalize),cse,sccp,\
// RUN:loop-invariant-code-motion,remove-dead-values,canonicalize,symbol-dce)' | filecheck %s

// Upstream merges equal reads and drops unused ones; writes stay, equal or not, each in its place.
// CHECK-LABEL: @writes(
// CHECK-NEXT:    %[[W:.*]] = "relax.get_param"(%arg0) {index = 0 : i64, name = "w"}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[W]]) {index = 0 : i64, name = "a"}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[W]]) {index = 1 : i64, name = "b"}
// CHECK-NEXT:    "relax.set_output"(%arg1, %[[W]]) {index = 1 : i64, name = "b"}
// CHECK-NEXT:    return
func.func @writes(%p: !relax.param_provider, %s: !relax.output_sink) attributes {relax.num_input = 2 : i64} {
  %0 = "relax.get_param"(%p) {index = 0 : i64, name = "w"} : (!relax.param_provider) -> tensor<4xf32>
  "relax.set_output"(%s, %0) {index = 0 : i64, name = "a"} : (!relax.output_sink, tensor<4xf32>) -> ()
  %1 = "relax.get_param"(%p) {index = 0 : i64, name = "w"} : (!relax.param_provider) -> tensor<4xf32>
  %2 = "relax.get_param"(%p) {index = 1 : i64, name = "unused"} : (!relax.param_provider) -> tensor<4xf32>
  "relax.set_output"(%s, %1) {index = 1 : i64, name = "b"} : (!relax.output_sink, tensor<4xf32>) -> ()
  "relax.set_output"(%s, %1) {index = 1 : i64, name = "b"} : (!relax.output_sink, tensor<4xf32>) -> ()
  return
}

// -----

// Binding is pure: once for one value, and not for nothing.
// CHECK-LABEL: @binds(
// CHECK-NEXT:    %[[S:.*]] = "relax.bind_argument"(%arg0, %arg1) {name = "rank"}
// CHECK-NEXT:    "relax.set_output"(%[[S]], %arg2) {index = 0 : i64}
// CHECK-NEXT:    "relax.set_output"(%[[S]], %arg2) {index = 1 : i64}
// CHECK-NEXT:    return
func.func @binds(%s: !relax.output_sink, %rank: i64, %x: tensor<4xf32>) attributes {relax.num_input = 3 : i64} {
  %0 = "relax.bind_argument"(%s, %rank) {name = "rank"} : (!relax.output_sink, i64) -> !relax.output_sink
  %1 = "relax.bind_argument"(%s, %rank) {name = "rank"} : (!relax.output_sink, i64) -> !relax.output_sink
  %2 = "relax.bind_argument"(%s, %rank) {name = "unused"} : (!relax.output_sink, i64) -> !relax.output_sink
  "relax.set_output"(%0, %x) {index = 0 : i64} : (!relax.output_sink, tensor<4xf32>) -> ()
  "relax.set_output"(%1, %x) {index = 1 : i64} : (!relax.output_sink, tensor<4xf32>) -> ()
  return
}

// -----

// A write in a branch or a loop stays there, and its loop stays; so does a function that only writes, as long as it is
// called.
// CHECK-LABEL: @regions(
// CHECK:         scf.if
// CHECK-NEXT:      "relax.set_output"(%arg0, %{{.*}}) {index = 0 : i64}
// CHECK:         scf.for
// CHECK-NEXT:      "relax.set_output"(%arg0, %{{.*}}) {index = 1 : i64}
// CHECK:         call @hand_over(%arg0, %{{.*}})
// CHECK:       func.func private @hand_over
// CHECK-NEXT:    "relax.set_output"
// CHECK-NOT:   @unused
func.func @regions(%s: !relax.output_sink, %c: i1, %n: index, %x: tensor<4xf32>)
    attributes {relax.num_input = 4 : i64} {
  scf.if %c {
    "relax.set_output"(%s, %x) {index = 0 : i64} : (!relax.output_sink, tensor<4xf32>) -> ()
  }
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  scf.for %i = %i0 to %n step %i1 {
    "relax.set_output"(%s, %x) {index = 1 : i64} : (!relax.output_sink, tensor<4xf32>) -> ()
  }
  call @hand_over(%s, %x) : (!relax.output_sink, tensor<4xf32>) -> ()
  return
}
func.func private @hand_over(%s: !relax.output_sink, %x: tensor<4xf32>) {
  "relax.set_output"(%s, %x) {index = 2 : i64} : (!relax.output_sink, tensor<4xf32>) -> ()
  return
}
func.func private @unused(%s: !relax.output_sink, %x: tensor<4xf32>) {
  "relax.set_output"(%s, %x) {index = 2 : i64} : (!relax.output_sink, tensor<4xf32>) -> ()
  return
}

// -----

// Declared callbacks have whatever effects: calls stay as they are, declarations as long as they are called.
// CHECK-LABEL: @calls(
// CHECK-COUNT-2: call @get_param_4xf32
// CHECK-COUNT-2: call @set_output_4xf32
// CHECK-NOT:   call
// CHECK:       func.func private @get_param_4xf32
// CHECK:       func.func private @set_output_4xf32
// CHECK-NOT:   @set_output_8xf32
func.func @calls() attributes {relax.num_input = 0 : i64} {
  %i0 = arith.constant 0 : index
  %0 = call @get_param_4xf32(%i0) : (index) -> tensor<4xf32>
  %1 = call @get_param_4xf32(%i0) : (index) -> tensor<4xf32>
  call @set_output_4xf32(%i0, %0) : (index, tensor<4xf32>) -> ()
  call @set_output_4xf32(%i0, %0) : (index, tensor<4xf32>) -> ()
  return
}
func.func private @get_param_4xf32(index {relax.name = "index"}) -> tensor<4xf32>
    attributes {relax.callback = "get_param"}
func.func private @set_output_4xf32(index {relax.name = "index"}, tensor<4xf32> {relax.name = "value"})
    attributes {relax.callback = "set_output"}
func.func private @set_output_8xf32(index {relax.name = "index"}, tensor<8xf32> {relax.name = "value"})
    attributes {relax.callback = "set_output"}
