// RUN: relax-opt %s | relax-opt | filecheck %s

// CHECK-LABEL: func.func @abs(
// CHECK: "relax.abs"(%{{.*}}) : (tensor<4xi8>) -> tensor<4xi8>
func.func @abs(%x: tensor<4xi8>) {
  %0 = "relax.abs"(%x) : (tensor<4xi8>) -> tensor<4xi8>
  return
}

// CHECK-LABEL: func.func @negative(
// CHECK: "relax.negative"(%{{.*}}) : (tensor<4xi8>) -> tensor<4xi8>
func.func @negative(%x: tensor<4xi8>) {
  %0 = "relax.negative"(%x) : (tensor<4xi8>) -> tensor<4xi8>
  return
}

// CHECK-LABEL: func.func @sign(
// CHECK: "relax.sign"(%{{.*}}) : (tensor<4xi8>) -> tensor<4xi8>
func.func @sign(%x: tensor<4xi8>) {
  %0 = "relax.sign"(%x) : (tensor<4xi8>) -> tensor<4xi8>
  return
}

// CHECK-LABEL: func.func @square(
// CHECK: "relax.square"(%{{.*}}) : (tensor<4xi8>) -> tensor<4xi8>
func.func @square(%x: tensor<4xi8>) {
  %0 = "relax.square"(%x) : (tensor<4xi8>) -> tensor<4xi8>
  return
}

// CHECK-LABEL: func.func @ceil(
// CHECK: "relax.ceil"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @ceil(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.ceil"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @floor(
// CHECK: "relax.floor"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @floor(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.floor"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @round(
// CHECK: "relax.round"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @round(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.round"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @trunc(
// CHECK: "relax.trunc"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @trunc(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.trunc"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @acos(
// CHECK: "relax.acos"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @acos(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.acos"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @acosh(
// CHECK: "relax.acosh"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @acosh(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.acosh"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @asin(
// CHECK: "relax.asin"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @asin(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.asin"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @asinh(
// CHECK: "relax.asinh"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @asinh(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.asinh"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @atan(
// CHECK: "relax.atan"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @atan(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.atan"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @atanh(
// CHECK: "relax.atanh"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @atanh(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.atanh"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @cosh(
// CHECK: "relax.cosh"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @cosh(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.cosh"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @sinh(
// CHECK: "relax.sinh"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @sinh(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.sinh"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @tan(
// CHECK: "relax.tan"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @tan(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.tan"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @exp2(
// CHECK: "relax.exp2"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @exp2(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.exp2"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @expm1(
// CHECK: "relax.expm1"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @expm1(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.expm1"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @log10(
// CHECK: "relax.log10"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @log10(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.log10"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @log1p(
// CHECK: "relax.log1p"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @log1p(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.log1p"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @log2(
// CHECK: "relax.log2"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @log2(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.log2"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @cos(
// CHECK: "relax.cos"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @cos(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.cos"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @sin(
// CHECK: "relax.sin"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @sin(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.sin"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @erf(
// CHECK: "relax.erf"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @erf(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.erf"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @exp(
// CHECK: "relax.exp"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @exp(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.exp"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @log(
// CHECK: "relax.log"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @log(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.log"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @reciprocal(
// CHECK: "relax.reciprocal"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @reciprocal(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.reciprocal"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @rsqrt(
// CHECK: "relax.rsqrt"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @rsqrt(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.rsqrt"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @sigmoid(
// CHECK: "relax.sigmoid"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @sigmoid(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.sigmoid"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @sqrt(
// CHECK: "relax.sqrt"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @sqrt(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.sqrt"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @tanh(
// CHECK: "relax.tanh"(%{{.*}}) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
func.func @tanh(%x: tensor<?x4xf32, {sym = ["n"]}>) {
  %0 = "relax.tanh"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
  return
}

// CHECK-LABEL: func.func @isfinite(
// CHECK: "relax.isfinite"(%{{.*}}) : (tensor<2x3xbf16>) -> tensor<2x3xi1>
func.func @isfinite(%x: tensor<2x3xbf16>) {
  %0 = "relax.isfinite"(%x) : (tensor<2x3xbf16>) -> tensor<2x3xi1>
  return
}

// CHECK-LABEL: func.func @isinf(
// CHECK: "relax.isinf"(%{{.*}}) : (tensor<2x3xbf16>) -> tensor<2x3xi1>
func.func @isinf(%x: tensor<2x3xbf16>) {
  %0 = "relax.isinf"(%x) : (tensor<2x3xbf16>) -> tensor<2x3xi1>
  return
}

// CHECK-LABEL: func.func @isnan(
// CHECK: "relax.isnan"(%{{.*}}) : (tensor<2x3xbf16>) -> tensor<2x3xi1>
func.func @isnan(%x: tensor<2x3xbf16>) {
  %0 = "relax.isnan"(%x) : (tensor<2x3xbf16>) -> tensor<2x3xi1>
  return
}

// CHECK-LABEL: func.func @bitwise_not(
// CHECK: "relax.bitwise_not"(%{{.*}}) : (tensor<4xi1>) -> tensor<4xi1>
func.func @bitwise_not(%x: tensor<4xi1>) {
  %0 = "relax.bitwise_not"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @logical_not(
// CHECK: "relax.logical_not"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xi1>
func.func @logical_not(%x: tensor<4xf32>) {
  %0 = "relax.logical_not"(%x) : (tensor<4xf32>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @clip(
// CHECK: "relax.clip"(%{{.*}}) {max = 6.000000e+00 : f64, min = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
func.func @clip(%x: tensor<4xf32>) {
  %0 = "relax.clip"(%x) {max = 6.000000e+00 : f64, min = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @clip_2(
// CHECK: "relax.clip"(%{{.*}}) {min = -3 : i64} : (tensor<4xi8>) -> tensor<4xi8>
func.func @clip_2(%x: tensor<4xi8>) {
  %0 = "relax.clip"(%x) {min = -3 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  return
}

// CHECK-LABEL: func.func @clip_3(
// CHECK: "relax.clip"(%{{.*}}) : (tensor<f16>) -> tensor<f16>
func.func @clip_3(%x: tensor<f16>) {
  %0 = "relax.clip"(%x) : (tensor<f16>) -> tensor<f16>
  return
}
