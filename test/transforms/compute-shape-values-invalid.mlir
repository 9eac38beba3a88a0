// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-compute-shape-values

func.func @unknown(%x: tensor<?xf32, {sym = ["n"]}>) -> index {
// expected-error@+1 {{'relax.prim_value' op expected symbols that the sizes of tensors give, got k, m in 'k + m + n'}}
  %0 = "relax.prim_value"() {value = ["n + m + k"]} : () -> index
  return %0 : index
}

// -----

// A dimension that is not linear does not give its symbol.
func.func @quotient(%x: tensor<?xf32, {sym = ["n // 2"]}>, %y: tensor<?x?xf32, {sym = ["m * k", "k * k"]}>)
    -> (index, index, index) {
  %0 = "relax.prim_value"() {value = ["n // 2"]} : () -> index
  %1 = "relax.prim_value"() {value = ["k * m"]} : () -> index
  // expected-error@+1 {{'relax.prim_value' op expected symbols that the sizes of tensors give, got n in 'n'}}
  %2 = "relax.prim_value"() {value = ["n"]} : () -> index
  return %0, %1, %2 : index, index, index
}

// -----

// What a region defines is not known after it, nor before the op that defines it.
func.func @scopes(%x: tensor<?xf32>, %c: i1) -> index {
  scf.if %c {
    %1 = "relax.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k"]}>
  }
  // expected-error@+1 {{'relax.prim_value' op expected symbols that the sizes of tensors give, got k in 'k'}}
  %0 = "relax.prim_value"() {value = ["k"]} : () -> index
  %2 = "relax.match_cast"(%x) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k"]}>
  return %0 : index
}
