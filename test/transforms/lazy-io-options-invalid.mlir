// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lazy-get-input{callback=python})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=CALLBACK
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lazy-set-output{callback=python})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=CALLBACK
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lazy-transform-params{callback=python})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=CALLBACK
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lazy-transform-params{addressing=hash})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=ADDRESSING
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lazy-transform-params{functions=main})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=FUNCTIONS
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lazy-set-output{functions=declared})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=DECLARED
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lazy-get-input{extra-get=index:i64})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=RESERVED
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lazy-get-input{extra-get=rank:i64,rank:index})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=TWICE
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lazy-set-output{extra-set=rank:number})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=TYPE
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lazy-set-output{extra-set=rank:})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=EMPTY
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lazy-set-output{extra-set=m:memref<4xf32>})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=MEMREF
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lazy-get-input{functions=main extra-get=rank})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=ABSENT
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lazy-get-input{functions=main extra-get=w})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=WEIGHT
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax-lazy-get-input{functions=main extra-get=x:i64})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=OTHER
// RUN: not relax-opt %s \
// RUN:     --pass-pipeline='builtin.module(relax-lazy-set-output{functions=main addressing=name})' 2>&1 \
// RUN:   | filecheck %s --check-prefix=NAMELESS

// CALLBACK:   error: expected one of 'arguments', 'functions' for option 'callback', got 'python'
// ADDRESSING: error: expected one of 'both', 'index', 'name' for option 'addressing', got 'hash'
// FUNCTIONS:  error: expected transform functions for option 'functions', got @main
// DECLARED:   error: expected functions with relax.num_input for option 'functions', got @declared
// RESERVED:   error: expected identifiers other than index, name and value for option 'extra-get', got 'index'
// TWICE:      error: expected distinct names for option 'extra-get', got 'rank' twice
// TYPE:       error: expected the type of 'rank' for option 'extra-set', got 'number'
// EMPTY:      error: expected the type of 'rank' for option 'extra-set', got ''
// MEMREF:     error: expected a tensor, a number or !relax.object as 'm' for option 'extra-set', got memref<4xf32>
// ABSENT:     error: 'func.func' op expected an input of @main named 'rank', got none
// WEIGHT:     error: 'func.func' op expected 'w' to be an input of @main, got a weight
// OTHER:      error: 'func.func' op expected the input 'x' of @main to be of type i64, got tensor<4xf32>
// NAMELESS:   error: 'func.func' op expected a name of its own for every result of @main, got none for result 0
func.func @main(%x: tensor<4xf32> {relax.name = "x"}, %w: tensor<4xf32> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.add"(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @declared(tensor<4xf32>) -> tensor<4xf32> attributes {relax.num_input = 0 : i64}
