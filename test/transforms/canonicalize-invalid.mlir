// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-canonicalize{max-rewrites=1})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=BUDGET
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-canonicalize{max-rewrites=-1})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=NEGATIVE

// BUDGET: error: expected canonicalization to end within 1 rewrites per sweep, got more
// NEGATIVE: error: expected max-rewrites of 0 or more, got -1
func.func @f(%v0: tensor<4xf32>) -> tensor<4xf32> {
  %v1 = "relax.negative"(%v0) : (tensor<4xf32>) -> tensor<4xf32>
  %v2 = "relax.negative"(%v1) : (tensor<4xf32>) -> tensor<4xf32>
  %v3 = "relax.negative"(%v2) : (tensor<4xf32>) -> tensor<4xf32>
  %v4 = "relax.negative"(%v3) : (tensor<4xf32>) -> tensor<4xf32>
  %v5 = "relax.negative"(%v4) : (tensor<4xf32>) -> tensor<4xf32>
  %v6 = "relax.negative"(%v5) : (tensor<4xf32>) -> tensor<4xf32>
  %v7 = "relax.negative"(%v6) : (tensor<4xf32>) -> tensor<4xf32>
  %v8 = "relax.negative"(%v7) : (tensor<4xf32>) -> tensor<4xf32>
  %v9 = "relax.negative"(%v8) : (tensor<4xf32>) -> tensor<4xf32>
  %v10 = "relax.negative"(%v9) : (tensor<4xf32>) -> tensor<4xf32>
  %v11 = "relax.negative"(%v10) : (tensor<4xf32>) -> tensor<4xf32>
  %v12 = "relax.negative"(%v11) : (tensor<4xf32>) -> tensor<4xf32>
  %v13 = "relax.negative"(%v12) : (tensor<4xf32>) -> tensor<4xf32>
  %v14 = "relax.negative"(%v13) : (tensor<4xf32>) -> tensor<4xf32>
  %v15 = "relax.negative"(%v14) : (tensor<4xf32>) -> tensor<4xf32>
  %v16 = "relax.negative"(%v15) : (tensor<4xf32>) -> tensor<4xf32>
  %v17 = "relax.negative"(%v16) : (tensor<4xf32>) -> tensor<4xf32>
  %v18 = "relax.negative"(%v17) : (tensor<4xf32>) -> tensor<4xf32>
  %v19 = "relax.negative"(%v18) : (tensor<4xf32>) -> tensor<4xf32>
  %v20 = "relax.negative"(%v19) : (tensor<4xf32>) -> tensor<4xf32>
  %v21 = "relax.negative"(%v20) : (tensor<4xf32>) -> tensor<4xf32>
  %v22 = "relax.negative"(%v21) : (tensor<4xf32>) -> tensor<4xf32>
  %v23 = "relax.negative"(%v22) : (tensor<4xf32>) -> tensor<4xf32>
  %v24 = "relax.negative"(%v23) : (tensor<4xf32>) -> tensor<4xf32>
  %v25 = "relax.negative"(%v24) : (tensor<4xf32>) -> tensor<4xf32>
  %v26 = "relax.negative"(%v25) : (tensor<4xf32>) -> tensor<4xf32>
  %v27 = "relax.negative"(%v26) : (tensor<4xf32>) -> tensor<4xf32>
  %v28 = "relax.negative"(%v27) : (tensor<4xf32>) -> tensor<4xf32>
  %v29 = "relax.negative"(%v28) : (tensor<4xf32>) -> tensor<4xf32>
  %v30 = "relax.negative"(%v29) : (tensor<4xf32>) -> tensor<4xf32>
  %v31 = "relax.negative"(%v30) : (tensor<4xf32>) -> tensor<4xf32>
  %v32 = "relax.negative"(%v31) : (tensor<4xf32>) -> tensor<4xf32>
  %v33 = "relax.negative"(%v32) : (tensor<4xf32>) -> tensor<4xf32>
  %v34 = "relax.negative"(%v33) : (tensor<4xf32>) -> tensor<4xf32>
  %v35 = "relax.negative"(%v34) : (tensor<4xf32>) -> tensor<4xf32>
  %v36 = "relax.negative"(%v35) : (tensor<4xf32>) -> tensor<4xf32>
  %v37 = "relax.negative"(%v36) : (tensor<4xf32>) -> tensor<4xf32>
  %v38 = "relax.negative"(%v37) : (tensor<4xf32>) -> tensor<4xf32>
  %v39 = "relax.negative"(%v38) : (tensor<4xf32>) -> tensor<4xf32>
  %v40 = "relax.negative"(%v39) : (tensor<4xf32>) -> tensor<4xf32>
  return %v40 : tensor<4xf32>
}
