// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-inline="functions=f"

// expected-error@unknown {{expected functions of the module for option 'functions', got @f}}
func.func @main() {
  return
}

// -----

// expected-error@+1 {{'func.func' op expected a function that can be inlined, got @f, which is a declaration}}
func.func private @f()

// -----

// expected-error@+1 {{'func.func' op expected a function that can be inlined, got @f, which has several blocks}}
func.func private @f() {
  cf.br ^end
^end:
  return
}

// -----

// expected-error@+1 {{'func.func' op expected a function that can be inlined, got @f, which is marked no_inline}}
func.func private @f() attributes {no_inline} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expected a function that can be inlined, got @f, which calls itself}}
func.func private @f() {
  call @f() : () -> ()
  return
}

// -----

// expected-error@+1 {{'func.func' op expected a function that can be inlined, got @f, which calls itself}}
func.func @f() {
  call @g() : () -> ()
  return
}
func.func private @g() {
  call @f() : () -> ()
  return
}
