// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lazy-transform-params{extra-get=loader:!relax.object,\
// RUN:rank:i64 extra-set=rank})' | filecheck %s --check-prefix=BIND
// RUN: relax-opt %s --pass-pipeline='builtin.module(\
// RUN:relax-lazy-transform-params{callback=functions extra-get=loader:!relax.object,rank:i64 extra-set=rank})' \
// RUN:   | filecheck %s --check-prefix=CALL
// RUN: relax-opt %s \
// RUN:     --pass-pipeline='builtin.module(relax-lazy-get-input{functions=main extra-get=devices:tensor<?xi64,\
// RUN: {sym = ["d"]}>,x})' | filecheck %s --check-prefix=THERE
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lazy-set-output{functions=main extra-set=x})' \
// RUN:   | filecheck %s --check-prefix=OUT
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-lazy-get-input{functions=main_transform_params})' \
// RUN:   | filecheck %s --check-prefix=GET-ONLY

// What callbacks get besides index and name are inputs: bound to the callback, or passed by each call. An input of that
// name is used, if there is one; constants and duplicates are results like others.
// BIND-LABEL: @main_transform_params(%arg0: !relax.param_provider, %arg1: !relax.object {relax.name = "loader"},
// BIND-SAME: %arg2: i64 {relax.name = "rank"}, %arg3: !relax.output_sink)
// BIND-SAME:    relax.num_input = 4 : i64
// BIND-DAG:     %[[S:.*]] = "relax.bind_argument"(%arg3, %arg2) {name = "rank"} : {{.*}} -> !relax.output_sink
// BIND-DAG:     %[[L:.*]] = "relax.bind_argument"(%arg0, %arg1) {name = "loader"} : {{.*}} -> !relax.param_provider
// BIND-DAG:     %[[P:.*]] = "relax.bind_argument"(%[[L]], %arg2) {name = "rank"} : {{.*}} -> !relax.param_provider
// BIND:         %[[W:.*]] = "relax.get_param"(%[[P]]) {index = 0 : i64, name = "w"}
// BIND-NEXT:    %[[E:.*]] = "relax.exp"(%[[W]])
// BIND-NEXT:    "relax.set_output"(%[[S]], %[[E]]) {index = 0 : i64, name = "e"}
// BIND-NEXT:    "relax.set_output"(%[[S]], %[[E]]) {index = 2 : i64, name = "again"}
// BIND-NEXT:    %[[C:.*]] = "relax.constant"
// BIND-NEXT:    "relax.set_output"(%[[S]], %[[C]]) {index = 1 : i64, name = "c"}

// CALL-LABEL: @main_transform_params(%arg0: !relax.object {relax.name = "loader"}, %arg1: i64 {relax.name = "rank"})
// CALL-SAME: attributes {relax.num_input = 2 : i64
// CALL:         call @get_param_4xf32(%{{.*}}, %arg0, %arg1) {relax.name = "w"} : (index, !relax.object, i64)
// CALL-SAME:      -> tensor<4xf32>
// CALL:         call @set_output_4xf32(%{{.*}}, %{{.*}}, %arg1) {relax.name = "e"} : (index, tensor<4xf32>, i64) -> ()
// CALL:       func.func private @get_param_4xf32(index {relax.name = "index"}, !relax.object {relax.name = "loader"},
// CALL-SAME:       i64 {relax.name = "rank"}) -> tensor<4xf32>
// CALL:       func.func private @set_output_4xf32(index {relax.name = "index"}, tensor<4xf32> {relax.name = "value"},
// CALL-SAME:       i64 {relax.name = "rank"})

// THERE-LABEL: @main(%arg0: tensor<4xf32> {relax.name = "x"}, %arg1: !relax.param_provider,
// THERE-SAME: %arg2: tensor<?xi64, {sym = ["d"]}> {relax.name = "devices"})
// THERE-NEXT:    %[[D:.*]] = "relax.bind_argument"(%arg1, %arg2) {name = "devices"}
// THERE-NEXT:    %[[X:.*]] = "relax.bind_argument"(%[[D]], %arg0) {name = "x"}
// THERE-NEXT:    "relax.get_param"(%[[X]])

// The weights move behind what is added, with their names.
// OUT-LABEL: @main(%arg0: tensor<4xf32> {relax.name = "x"}, %arg1: !relax.output_sink, %arg2: tensor<4xf32>
// OUT-SAME: {relax.name = "e"}, %arg3: tensor<4xf32> {relax.name = "c"}, %arg4: tensor<4xf32> {relax.name = "again"})
// OUT-NEXT:    %[[S:.*]] = "relax.bind_argument"(%arg1, %arg0) {name = "x"}
// OUT-NEXT:    %[[A:.*]] = "relax.add"(%arg2, %arg3)
// OUT-NEXT:    "relax.set_output"(%[[S]], %[[A]]) {index = 0 : i64}

// A transform function without weights has only writes to pass the input on to.
// BIND-LABEL: @constant_transform_params(%arg0: !relax.output_sink, %arg1: i64 {relax.name = "rank"})
// BIND-NEXT:    %[[S:.*]] = "relax.bind_argument"(%arg0, %arg1) {name = "rank"}
// BIND-NEXT:    %[[C:.*]] = "relax.constant"
// BIND-NEXT:    "relax.set_output"(%[[S]], %[[C]]) {index = 0 : i64, name = "weight0"}

// Reads alone: results are returned.
// GET-ONLY-LABEL: @main_transform_params(%arg0: !relax.param_provider)
// GET-ONLY-SAME: -> (tensor<4xf32> {relax.name = "e"}, tensor<4xf32> {relax.name = "c"}, tensor<4xf32>
// GET-ONLY-SAME: {relax.name = "again"})
// GET-ONLY:         return %[[E:.*]], %{{.*}}, %[[E]]
func.func @main_transform_params(%w: tensor<4xf32> {relax.name = "w"})
    -> (tensor<4xf32> {relax.name = "e"}, tensor<4xf32> {relax.name = "c"}, tensor<4xf32> {relax.name = "again"})
    attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  %0 = "relax.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.constant"() {value = dense<1.0> : tensor<4xf32>} : () -> tensor<4xf32>
  return %0, %1, %0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {relax.name = "x"}, %e: tensor<4xf32> {relax.name = "e"}, %c: tensor<4xf32>
    {relax.name = "c"}, %d: tensor<4xf32> {relax.name = "again"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.add"(%e, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @constant_transform_params() -> tensor<4xf32>
    attributes {relax.num_input = 0 : i64, relax.transform_for = @constant} {
  %0 = "relax.constant"() {value = dense<1.0> : tensor<4xf32>} : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @constant(%x: tensor<4xf32>) attributes {relax.num_input = 0 : i64} {
  return
}
