// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @rank(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.match_cast' op expected a type that tensor<4xf32> can have, got tensor<2x2xf32>}}
  %0 = "relax.match_cast"(%x) : (tensor<4xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @dtype(%x: tensor<?xf32>) {
  // expected-error @+1 {{'relax.match_cast' op expected a type that tensor<?xf32> can have, got tensor<nxf16>}}
  %0 = "relax.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf16, {sym = ["n"]}>
  return
}

// -----

func.func @size(%x: tensor<4x?xf32>) {
  // expected-error @+1 {{'relax.match_cast' op expected a type that tensor<4x?xf32> can have, got tensor<5xnxf32>}}
  %0 = "relax.match_cast"(%x) : (tensor<4x?xf32>) -> tensor<5x?xf32, {sym = ["n"]}>
  return
}

// -----

func.func @stop_lift_params_changes_nothing(%x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.stop_lift_params' op expected result tensor<4xf32>, got tensor<4xf16>}}
  %0 = "relax.stop_lift_params"(%x) : (tensor<4xf32>) -> tensor<4xf16>
  return
}

// -----

func.func @prim_value_count() {
  // expected-error @+1 {{'relax.prim_value' op expected one expression for attribute 'value', got 2}}
  %0 = "relax.prim_value"() {value = ["n", "m"]} : () -> index
  return
}

// -----

func.func @prim_value_type() {
  // expected-error @+1 {{expected base type 'builtin.index' but got 'builtin.integer'}}
  %0 = "relax.prim_value"() {value = ["n"]} : () -> i64
  return
}
