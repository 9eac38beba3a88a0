// RUN: relax-opt %s --relax-lift-transform-params='growth-slack=0 max-growth=1' | filecheck %s
// RUN: relax-opt %s --relax-lift-transform-params='growth-slack=0 max-growth=1' \
// RUN:   --relax-lift-transform-params='growth-slack=0 max-growth=1' | filecheck %s

// With all that is lifted at first the loop is too much, and is opened; when other values have stayed in inference for
// the same reason, there is room for it. It is lifted now, and not by the next run.
// CHECK-LABEL: @main_transform_params(
// CHECK-SAME:    -> (tensor<2x3xf32> {relax.name = "w.abs"}, tensor<2x3xf32> {relax.name = "w.for"})
// CHECK:       @main(
// CHECK-NOT:     scf.for
func.func private @ends(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "relax.abs"(%v) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "relax.stop_lift_params"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %v : tensor<2x3xf32>
}
func.func @main(%x: tensor<i1> {relax.name = "x"}, %w: tensor<2x3xf32> {relax.name = "w"})
    -> tensor<i1> attributes {relax.num_input = 1 : i64} {
  %0 = call @ends(%w) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %1 = scf.for %i = %i0 to %i0 step %i1 iter_args(%c = %w) -> (tensor<2x3xf32>) {
    scf.yield %c : tensor<2x3xf32>
  }
  %2 = "relax.sign"(%1) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3:2 = call @twice(%2) : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %4 = "relax.sign"(%1) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = call @ends(%4) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %6 = tensor.extract %x[] : tensor<i1>
  %7 = scf.if %6 -> (tensor<2x3xf32>) {
    scf.yield %3#1 : tensor<2x3xf32>
  } else {
    scf.yield %5 : tensor<2x3xf32>
  }
  return %x : tensor<i1>
}
func.func private @twice(%v: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  return %v, %v : tensor<2x3xf32>, tensor<2x3xf32>
}
