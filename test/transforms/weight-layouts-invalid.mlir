// RUN: relax-opt %s --relax-pack-weights --split-input-file --verify-diagnostics

// expected-error@+1 {{expected relax.weight_layouts with bf16_rows, columns, int8_rows, int8_unsigned, got {columns = 8 : i64}}}
module attributes {relax.weight_layouts = {columns = 8 : i64}} {}

// -----

// expected-error@+1 {{expected positive numbers in relax.weight_layouts, got {bf16_rows = 1 : i64, columns = 0 : i64}}
module attributes {relax.weight_layouts = {bf16_rows = 1 : i64, columns = 0 : i64, int8_rows = 4 : i64,
                                           int8_unsigned = true}} {}
