// Designators that match: the run succeeds and prints nothing but the modules that verify.
// RUN: relax-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect | filecheck %s
// RUN: relax-opt %s --split-input-file --verify-diagnostics=all --allow-unregistered-dialect -o /dev/null

// CHECK-NOT: @own_line
// CHECK: @no_diagnostic

func.func @own_line(%a: tensor<4xf32>, %b: tensor<4xf16>) {
  // expected-error @+1 {{expected operands of one dtype, got f32 and f16}}
  %0 = "relax.add"(%a, %b) : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @below(%a: tensor<4xf32>, %b: tensor<4xf16>) {
  // expected-error@below {{'relax.add' op expected operands of one dtype}}
  %0 = "relax.add"(%a, %b) : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @plus(%a: tensor<4xf32>) {
  // expected-error @+1 {{has no attribute named 'axs'}}
  %0 = "relax.add"(%a, %a) {axs = 1} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @minus(%a: tensor<4xf32>) {
  %0 = "relax.add"(%a, %a) {axs = 1} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

  // expected-error@-2 {{has no attribute named}}
  return
}

// -----

func.func @above(%a: tensor<4xf32>) {
  %0 = "relax.add"(%a, %a) {axs = 1} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-error@above {{has no attribute named}}
  return
}

// -----

func.func @regex(%a: tensor<4xf32>) {
  // expected-error-re@+1 {{has no attribute named '{{a[xs]+}}'}}
  %0 = "relax.add"(%a, %a) {axs = 1} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-note@+1 {{see existing symbol definition here}}
func.func private @twice()
// expected-error@+1 {{redefinition of symbol named 'twice'}}
func.func private @twice()

// -----

// A note that belongs to a parser error, in one block of designators before the line.
// expected-note@below {{prior use here}}
func.func @block(%a: tensor<4xf32>) {
  // expected-error@below {{use of value '%a' expects different type than prior uses}}
  %0 = "relax.negative"(%a) : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// -----

func.func private @no_diagnostic()
