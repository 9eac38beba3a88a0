// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @negative_index(%x: !relax.param_provider) {
  // expected-error @+1 {{'relax.get_param' op expected an index of 0 or more, got -1}}
  %0 = "relax.get_param"(%x) {index = -1 : i64} : (!relax.param_provider) -> tensor<4xf32>
  return
}

// -----

func.func @neither_index_nor_name(%x: !relax.param_provider) {
  // expected-error @+1 {{'relax.get_param' op expected attribute 'index' or 'name'}}
  %0 = "relax.get_param"(%x) : (!relax.param_provider) -> tensor<4xf32>
  return
}

// -----

func.func @unranked_weight(%x: !relax.param_provider) {
  // expected-error @+1 {{'relax.get_param' op expected a ranked tensor, got tensor<*xf32>}}
  %0 = "relax.get_param"(%x) {index = 0 : i64} : (!relax.param_provider) -> tensor<*xf32>
  return
}

// -----

func.func @no_provider(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected base type 'relax.param_provider' but got 'builtin.tensor'}}
  %0 = "relax.get_param"(%x) {index = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @negative_output(%sink: !relax.output_sink, %x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.set_output' op expected an index of 0 or more, got -1}}
  "relax.set_output"(%sink, %x) {index = -1 : i64} : (!relax.output_sink, tensor<4xf32>) -> ()
  return
}

// -----

func.func @output_is_no_tensor(%sink: !relax.output_sink, %x: f32) {
  // expected-error @+1 {{'relax.set_output' op expected a ranked tensor, got f32}}
  "relax.set_output"(%sink, %x) {index = 0 : i64} : (!relax.output_sink, f32) -> ()
  return
}

// -----

func.func @nameless_output(%sink: !relax.output_sink, %x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.set_output' op expected attribute 'index' or 'name'}}
  "relax.set_output"(%sink, %x) : (!relax.output_sink, tensor<4xf32>) -> ()
  return
}

// -----

func.func @reserved(%sink: !relax.output_sink, %x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.bind_argument' op expected an identifier other than index, name and value for attribute 'name', got 'value'}}
  %0 = "relax.bind_argument"(%sink, %x) {name = "value"} : (!relax.output_sink, tensor<4xf32>) -> !relax.output_sink
  return
}

// -----

func.func @no_identifier(%sink: !relax.output_sink, %x: tensor<4xf32>) {
  // expected-error @+1 {{'relax.bind_argument' op expected an identifier other than index, name and value for attribute 'name', got 'a b'}}
  %0 = "relax.bind_argument"(%sink, %x) {name = "a b"} : (!relax.output_sink, tensor<4xf32>) -> !relax.output_sink
  return
}

// -----

func.func @another_callback(%sink: !relax.output_sink, %x: index) {
  // expected-error @+1 {{expected '!relax.output_sink' but got '!relax.param_provider'}}
  %0 = "relax.bind_argument"(%sink, %x) {name = "rank"} : (!relax.output_sink, index) -> !relax.param_provider
  return
}
