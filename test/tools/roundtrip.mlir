// RUN: relax-opt %s | relax-opt | filecheck %s
// RUN: relax-opt %s --verify-roundtrip | filecheck %s

// CHECK: func.func @main(%[[X:.*]]: tensor<?x4xf32, {sym = ["n"]}>
func.func @main(%x: tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}> {
  // CHECK: "relax.add"(%[[X]], %[[X]])
  %0 = "relax.add"(%x, %x) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<?x4xf32, {sym = ["n"]}>)
      -> tensor<?x4xf32, {sym = ["n"]}>
  return %0 : tensor<?x4xf32, {sym = ["n"]}>
}
