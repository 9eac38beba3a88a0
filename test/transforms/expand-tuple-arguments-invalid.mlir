// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-expand-tuple-arguments=public=true

// expected-error@+1 {{'func.func' op expected 2 dictionaries for relax.bundled, got [{}]}}
func.func @count(%p: tuple<tensor<4xf32>, tuple<tensor<2xf32>>> {relax.bundled = [{}]}) {
  return
}

// -----

// expected-error@+1 {{'func.func' op expected 1 dictionaries for relax.bundled, got ["a"]}}
func.func @kind(%p: tuple<tensor<4xf32>> {relax.bundled = ["a"]}) {
  return
}
