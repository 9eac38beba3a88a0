// RUN: relax-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<3xi1>) -> tensor<3xi1> {
  // expected-error @+1 {{'relax.all_reduce' op expected a number as operand, got i1}}
  %0 = "relax.all_reduce"(%x) : (tensor<3xi1>) -> tensor<3xi1>
  return %0 : tensor<3xi1>
}

// -----

func.func @f(%x: tensor<3xf32>) -> tensor<0x3xf32> {
  // expected-error @+1 {{'relax.all_gather' op expected 1 rank or more, got 0}}
  %0 = "relax.all_gather"(%x) {ranks = 0 : i64} : (tensor<3xf32>) -> tensor<0x3xf32>
  return %0 : tensor<0x3xf32>
}

// -----

func.func @f() -> tensor<i32> {
  // expected-error @+1 {{'relax.rank' op}}
  %0 = "relax.rank"() : () -> tensor<i32>
  return %0 : tensor<i32>
}
