// RUN: relax-opt %s --relax-to-mixed-precision | filecheck %s
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-to-mixed-precision{dtype=f16 out-dtype=f16})' \
// RUN:   | filecheck %s --check-prefix=NARROW
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-to-mixed-precision{keep=attention,v})' \
// RUN:   | filecheck %s --check-prefix=KEEP
// RUN: relax-opt %s --pass-pipeline='builtin.module(relax-to-mixed-precision,relax-lift-transform-params)' \
// RUN:   | filecheck %s --check-prefix=LIFTED

// Sums are f32: ops that follow read them rounded, softmax reads them as they are. Casts of weights are on the weights.
// CHECK-LABEL: @kinds
// CHECK-DAG:     %[[C:.*]] = "relax.astype"(%arg2) {dtype = bf16} : (tensor<8xf32>) -> tensor<8xbf16>
// CHECK-DAG:     %[[X:.*]] = "relax.astype"(%arg0) {dtype = bf16}
// CHECK:         %[[T:.*]] = "relax.permute_dims"(%arg1) : (tensor<8x4xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %[[W:.*]] = "relax.astype"(%[[T]]) {dtype = bf16}
// CHECK-NEXT:    %[[A:.*]] = "relax.matmul"(%[[X]], %[[W]]) {out_dtype = f32}
// CHECK-SAME:    : (tensor<?x4xbf16, {sym = ["n"]}>, tensor<4x8xbf16>) -> tensor<?x8xf32, {sym = ["n"]}>
// CHECK-NEXT:    %[[R:.*]] = "relax.astype"(%[[A]]) {dtype = bf16}
// CHECK-NEXT:    %[[B:.*]] = "relax.add"(%[[R]], %[[C]]) : (tensor<?x8xbf16, {sym = ["n"]}>, tensor<8xbf16>)
// CHECK-NEXT:    %[[U:.*]] = "relax.relu"(%[[B]])
// CHECK-NEXT:    %[[F:.*]] = "relax.astype"(%[[U]]) {dtype = f32}
// CHECK-NEXT:    %[[S:.*]] = "relax.softmax"(%[[A]]) : (tensor<?x8xf32, {sym = ["n"]}>)
// CHECK-NEXT:    return %[[F]], %[[S]]
// NARROW-LABEL: @kinds
// NARROW:        %[[A:.*]] = "relax.matmul"(%{{.*}}, %{{.*}}) {out_dtype = f16}
// NARROW-SAME:      : (tensor<?x4xf16, {sym = ["n"]}>, tensor<4x8xf16>) -> tensor<?x8xf16, {sym = ["n"]}>
// NARROW-NEXT:   %[[F:.*]] = "relax.astype"(%[[A]]) {dtype = f32}
// NARROW-NEXT:   "relax.add"(%[[A]],
// NARROW:        "relax.softmax"(%[[F]])
// LIFTED-LABEL: @kinds_transform_params
// LIFTED-SAME:   tensor<8xbf16>
// LIFTED-SAME:   tensor<4x8xbf16>
func.func @kinds(%x: tensor<?x4xf32, {sym = ["n"]}>, %w: tensor<8x4xf32> {relax.name = "w"}, %c: tensor<8xf32>
    {relax.name = "c"}) -> (tensor<?x8xf32, {sym = ["n"]}>, tensor<?x8xf32, {sym = ["n"]}>)
    attributes {relax.num_input = 1 : i64} {
  %t = "relax.permute_dims"(%w) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %0 = "relax.matmul"(%x, %t) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  %1 = "relax.add"(%0, %c) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  %2 = "relax.relu"(%1) : (tensor<?x8xf32, {sym = ["n"]}>) -> tensor<?x8xf32, {sym = ["n"]}>
  %3 = "relax.softmax"(%0) : (tensor<?x8xf32, {sym = ["n"]}>) -> tensor<?x8xf32, {sym = ["n"]}>
  return %2, %3 : tensor<?x8xf32, {sym = ["n"]}>, tensor<?x8xf32, {sym = ["n"]}>
}

// An op follows only when all that it reads at run time is narrow: a shortcut in f32 keeps the sum there.
// CHECK-LABEL: @shortcut
// CHECK:         %[[A:.*]] = "relax.conv2d"(%{{.*}}, %{{.*}}) {out_dtype = f32}
// CHECK-SAME:      : (tensor<1x4x6x6xbf16>, tensor<4x4x1x1xbf16>) -> tensor<1x4x6x6xf32>
// CHECK-NEXT:    %[[B:.*]] = "relax.add"(%[[A]], %arg0) : (tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>)
// CHECK-NEXT:    %[[C:.*]] = "relax.max_pool2d"(%[[B]]) {{.*}} : (tensor<1x4x6x6xf32>)
// CHECK-NEXT:    return %[[C]]
// NARROW-LABEL: @shortcut
// NARROW:        %[[A:.*]] = "relax.conv2d"{{.*}} -> tensor<1x4x6x6xf16>
// NARROW-NEXT:   %[[F:.*]] = "relax.astype"(%[[A]]) {dtype = f32}
// NARROW-NEXT:   "relax.add"(%[[F]], %arg0) : (tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>)
func.func @shortcut(%x: tensor<1x4x6x6xf32>, %w: tensor<4x4x1x1xf32> {relax.name = "w"}) -> tensor<1x4x5x5xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = "relax.conv2d"(%x, %w) : (tensor<1x4x6x6xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x6x6xf32>
  %1 = "relax.add"(%0, %x) : (tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %2 = "relax.max_pool2d"(%1) {pool_size = array<i64: 2, 2>} : (tensor<1x4x6x6xf32>) -> tensor<1x4x5x5xf32>
  return %2 : tensor<1x4x5x5xf32>
}

// Attention reads a narrow query, key and value; its mask stays, since the lowest f32 is not a narrow number. A narrow
// value that was cast up and is read narrow again was never cast. What is named is left in f32, with all that reads it.
// CHECK-LABEL: @attention
// CHECK-NOT:     relax.astype"(%arg1)
// CHECK:         %[[V:.*]] = "relax.astype"(%arg3) {dtype = bf16}
// CHECK:         %[[Q:.*]] = "relax.astype"(%arg0) {dtype = bf16}
// CHECK:         %[[A:.*]] = "relax.attention"(%[[Q]], %arg1, %arg1, %arg2)
// CHECK-SAME:      : (tensor<1x2x3x4xbf16>, tensor<1x2x3x4xbf16>, tensor<1x2x3x4xbf16>, tensor<3x3xf32>)
// CHECK-SAME:      -> tensor<1x2x3x4xbf16>
// CHECK-NEXT:    %[[P:.*]] = "relax.matmul"(%[[A]], %[[V]])
// CHECK-NEXT:    return %[[P]]
// KEEP-LABEL: @attention
// KEEP-NOT:      dtype = bf16
// KEEP:          "relax.attention"({{.*}} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>,
// KEEP-SAME:      tensor<3x3xf32>) -> tensor<1x2x3x4xf32>
// KEEP-NEXT:     "relax.matmul"(%{{.*}}, %arg3) : (tensor<1x2x3x4xf32>, tensor<4x5xf32>)
func.func @attention(%q: tensor<1x2x3x4xf32>, %n: tensor<1x2x3x4xbf16>, %m: tensor<3x3xf32>, %v: tensor<4x5xf32>
    {relax.name = "v"}) -> tensor<1x2x3x5xf32> attributes {relax.num_input = 3 : i64} {
  %k = "relax.astype"(%n) {dtype = f32} : (tensor<1x2x3x4xbf16>) -> tensor<1x2x3x4xf32>
  %0 = "relax.attention"(%q, %k, %k, %m) : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>,
      tensor<3x3xf32>) -> tensor<1x2x3x4xf32>
  %1 = "relax.matmul"(%0, %v) : (tensor<1x2x3x4xf32>, tensor<4x5xf32>) -> tensor<1x2x3x5xf32>
  return %1 : tensor<1x2x3x5xf32>
}

// A number that no narrow float is, as masks are made of, keeps the choice between scores in f32; another one does not.
// CHECK-LABEL: @numbers
// CHECK:         %[[A:.*]] = "relax.matmul"
// CHECK:         "relax.where"(%arg2, %[[A]], %{{.*}}) : (tensor<3x3xi1>, tensor<3x3xf32>, tensor<f32>)
// CHECK-SAME:      -> tensor<3x3xf32>
// CHECK:         "relax.where"({{.*}} : (tensor<3x3xi1>, tensor<3x3xbf16>, tensor<bf16>) -> tensor<3x3xbf16>
// CHECK:         "relax.multiply"(%[[A]], %{{.*}}) : (tensor<3x3xf32>, tensor<1xf32>)
func.func @numbers(%x: tensor<3x4xf32>, %y: tensor<4x3xf32>, %c: tensor<3x3xi1>)
    -> (tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>) {
  %lowest = "relax.full"() {value = -3.4028234663852886e+38 : f64} : () -> tensor<f32>
  %one = "relax.full"() {value = 1.0 : f64} : () -> tensor<f32>
  %large = "relax.constant"() {value = dense<3.4028234663852886e+38> : tensor<1xf32>} : () -> tensor<1xf32>
  %0 = "relax.matmul"(%x, %y) : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
  %1 = "relax.where"(%c, %0, %lowest) : (tensor<3x3xi1>, tensor<3x3xf32>, tensor<f32>) -> tensor<3x3xf32>
  %2 = "relax.where"(%c, %0, %one) : (tensor<3x3xi1>, tensor<3x3xf32>, tensor<f32>) -> tensor<3x3xf32>
  %3 = "relax.multiply"(%0, %large) : (tensor<3x3xf32>, tensor<1xf32>) -> tensor<3x3xf32>
  return %1, %2, %3 : tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>
}

// Branches hand out f32, as functions do; a product that says what it returns returns it.
// NARROW-LABEL: @edges
// NARROW:        scf.if
// NARROW:          %[[A:.*]] = "relax.matmul"({{.*}}) {out_dtype = f16}
// NARROW-NEXT:     %[[F:.*]] = "relax.astype"(%[[A]]) {dtype = f32}
// NARROW-NEXT:     scf.yield %[[F]] : tensor<3x3xf32>
// NARROW:        "relax.matmul"({{.*}}) {out_dtype = f64} : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf64>
func.func @edges(%x: tensor<3x3xf32>, %flag: i1) -> (tensor<3x3xf32>, tensor<3x3xf64>) {
  %0 = scf.if %flag -> tensor<3x3xf32> {
    %1 = "relax.matmul"(%x, %x) : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    scf.yield %1 : tensor<3x3xf32>
  } else {
    scf.yield %x : tensor<3x3xf32>
  }
  %2 = "relax.matmul"(%x, %0) {out_dtype = f64} : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf64>
  return %0, %2 : tensor<3x3xf32>, tensor<3x3xf64>
}

// Nothing here is worth a cast, or f32 to begin with.
// CHECK-LABEL: @leaves
// CHECK-NOT:     bf16
// CHECK:         return
func.func @leaves(%x: tensor<3x3xf32>, %d: tensor<3x3xf64>, %i: tensor<3x3xi8>, %v: tensor<3x3xf32> {relax.name = "v"})
    -> (tensor<3x3xf32>, tensor<3x3xf64>, tensor<3x3xi8>, tensor<3x3xf32>) attributes {relax.num_input = 3 : i64} {
  %0 = "relax.add"(%x, %v) : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = "relax.matmul"(%d, %d) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %2 = "relax.matmul"(%i, %i) : (tensor<3x3xi8>, tensor<3x3xi8>) -> tensor<3x3xi8>
  %3 = "relax.matmul"(%v, %v) : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %0, %1, %2, %3 : tensor<3x3xf32>, tensor<3x3xf64>, tensor<3x3xi8>, tensor<3x3xf32>
}
