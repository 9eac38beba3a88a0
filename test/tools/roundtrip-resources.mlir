// Resources keep their names where a module is read again.
// RUN: relax-opt %s --verify-roundtrip | filecheck %s

// CHECK: dense_resource<weights>
// CHECK: weights: "0x08000000010000000000000000000000000000000000000000"
func.func @main() -> tensor<4xf32> {
  %0 = arith.constant dense_resource<weights> : tensor<4xf32>
  return %0 : tensor<4xf32>
}

{-#
  dialect_resources: { builtin: { weights: "0x08000000010000000000000000000000000000000000000000" } }
#-}
