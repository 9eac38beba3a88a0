// RUN: relax-opt %s --relax-lift-transform-params='max-growth=1 growth-slack=16 max-total-growth=1' \
// RUN:   | filecheck %s --check-prefixes=CHECK,SLACK
// RUN: relax-opt %s --relax-lift-transform-params='max-growth=0 growth-slack=0 max-total-growth=0' \
// RUN:   | filecheck %s --check-prefixes=CHECK,FREE
// RUN: relax-opt %s --relax-lift-transform-params | filecheck %s --check-prefixes=CHECK,DEFAULT
// RUN: not relax-opt %s --relax-lift-transform-params=max-growth=-1 2>&1 | filecheck %s --check-prefix=NEGATIVE
// RUN: not relax-opt %s --relax-lift-transform-params=growth-slack=-1 2>&1 | filecheck %s --check-prefix=SLACKLESS
// RUN: not relax-opt %s --relax-lift-transform-params=max-total-growth=nan 2>&1 | filecheck %s --check-prefix=NUMBER

// NEGATIVE: error: expected 0 or more for option 'max-growth', got -1.0
// SLACKLESS: error: expected 0 or more for option 'growth-slack', got -1
// NUMBER: error: expected 0 or more for option 'max-total-growth', got nan

// 16 bytes more are nothing to speak of, 20 are too much; 0 is no limit; by default small values may grow at will.
// CHECK-LABEL: @few_bytes_transform_params(
// SLACK-SAME:    -> (tensor<4xf32> {relax.name = "w.concat"})
// FREE-SAME:     -> (tensor<4xf32> {relax.name = "w.concat"})
// DEFAULT-SAME:  -> (tensor<4xf32> {relax.name = "w.concat"})
func.func @few_bytes(%w: tensor<4xi8> {relax.name = "v"}, %c: tensor<0xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 0 : i64} {
  %p = "relax.full"() {value = 0.0 : f64} : () -> tensor<4xf32>
  %0 = "relax.concat"(%c, %p) : (tensor<0xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK-LABEL: @more_bytes_transform_params(
// SLACK-SAME:    -> (tensor<4xf32> {relax.name = "w"})
// FREE-SAME:     -> (tensor<9xf32> {relax.name = "w.concat"})
// DEFAULT-SAME:  -> (tensor<9xf32> {relax.name = "w.concat"})
func.func @more_bytes(%w: tensor<4xf32> {relax.name = "w"}) -> tensor<9xf32> attributes {relax.num_input = 0 : i64} {
  %p = "relax.full"() {value = 0.0 : f64} : () -> tensor<5xf32>
  %0 = "relax.concat"(%w, %p) : (tensor<4xf32>, tensor<5xf32>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}
// A matrix of 4 MiB in f16 stays f16 by default: casting it adds more than the slack.
// CHECK-LABEL: @cast_transform_params(
// SLACK-SAME:    -> (tensor<1024x2048xf16> {relax.name = "w"})
// FREE-SAME:     -> (tensor<1024x2048xf32> {relax.name = "w.astype"})
// DEFAULT-SAME:  -> (tensor<1024x2048xf16> {relax.name = "w"})
func.func @cast(%w: tensor<1024x2048xf16> {relax.name = "w"}) -> tensor<1024x2048xf32>
    attributes {relax.num_input = 0 : i64} {
  %0 = "relax.astype"(%w) {dtype = f32} : (tensor<1024x2048xf16>) -> tensor<1024x2048xf32>
  return %0 : tensor<1024x2048xf32>
}
