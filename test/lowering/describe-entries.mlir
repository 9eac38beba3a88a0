// RUN: relax-opt %s --relax-describe-entries --split-input-file --verify-diagnostics | filecheck %s

// Names, shapes with symbols and their ranges, state: what types and attributes say now, and forget later.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: relax.entry = {checks = [], inputs = [{dtype = "f32", name = "x", shape = ["n", 4]}]
// CHECK-SAME: name = "main", outputs = [{dtype = "i1", name = "y", shape = ["n", 4]}]
// CHECK-SAME: state = [{argument = 1 : i64, dtype = "i64", first = "AwAAAAAAAAA=", name = "count", shape = []}]
// CHECK-SAME: step = false, symbol = "relaxir_main", symbols = [{max = 9 : i64, min = 2 : i64, name = "n"}]
// CHECK-SAME: updates = {{\[\[}}1, 1]], weights = [{dtype = "f32", name = "w", shape = [4]}]}
// CHECK-NOT: relax.state
func.func @main(%x: tensor<?x4xf32, {sym = ["n"]}> {relax.name = "x"}, %s: tensor<i64> {relax.name = "count"},
                %w: tensor<4xf32> {relax.name = "w"})
    -> (tensor<?x4xi1, {sym = ["n"]}> {relax.name = "y"}, tensor<i64> {relax.name = "count"})
    attributes {relax.num_input = 2 : i64, relax.state = {count = dense<3> : tensor<i64>},
                relax.symbol_ranges = {n = [2, 9]}} {
  %y = "relax.less"(%x, %w) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4xf32>) -> tensor<?x4xi1, {sym = ["n"]}>
  return %y, %s : tensor<?x4xi1, {sym = ["n"]}>, tensor<i64>
}

// -----

func.func @a.b(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
// expected-error@unknown {{expected function names that differ in C, got @a.b and @a_b}}
func.func @a_b(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// What data decides the size of comes in as much memory as it can need, with its sizes.
// CHECK-LABEL: func.func @bounded(
// CHECK-SAME: relax.entry = {bounded = [{output = "y", sizes = "y.sizes"}]
// CHECK-SAME: outputs = [{dtype = "f32", name = "y", shape = ["n", 4]}, {dtype = "i64", name = "y.sizes", shape = [2]}]
// CHECK: %[[Y:.*]] = "relax.match_cast"
// CHECK: %[[ALL:.*]] = "relax.index_copy"(%{{.*}}, %{{.*}}, %[[Y]]) {axis = 0 : i64}
// CHECK: %[[SIZES:.*]] = "relax.concat"
// CHECK: return %[[ALL]], %[[SIZES]]
func.func @bounded(%x: tensor<?x4xf32, {sym = ["n"]}>, %end: tensor<1xi64>)
    -> (tensor<?x4xf32, {sym = ["u"]}> {relax.name = "y"}) attributes {relax.num_input = 2 : i64} {
  %begin = "relax.full"() {value = 0} : () -> tensor<1xi64>
  %0 = "relax.dynamic_strided_slice"(%x, %begin, %end) {axes = array<i64: 0>}
      : (tensor<?x4xf32, {sym = ["n"]}>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x4xf32>
  %y = "relax.match_cast"(%0) : (tensor<?x4xf32>) -> tensor<?x4xf32, {sym = ["u"]}>
  return %y : tensor<?x4xf32, {sym = ["u"]}>
}

// -----

// expected-error @+1 {{expected dimensions of 'output0' of @unbounded that its inputs determine, got}}
func.func @unbounded(%x: tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["u"]}>
    attributes {relax.num_input = 1 : i64} {
  %0 = scf.execute_region -> tensor<?x4xf32> {
    %1 = tensor.cast %x : tensor<?x4xf32, {sym = ["n"]}> to tensor<?x4xf32>
    scf.yield %1 : tensor<?x4xf32>
  }
  %y = "relax.match_cast"(%0) : (tensor<?x4xf32>) -> tensor<?x4xf32, {sym = ["u"]}>
  return %y : tensor<?x4xf32, {sym = ["u"]}>
}
