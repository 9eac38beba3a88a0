// RUN: relax-opt %s --relax-merge-kernels="of=steps" --split-input-file | filecheck %s --check-prefix=STEPS
// RUN: relax-opt %s --relax-set-target="target=cpu:x86-64-v4" --relax-plan-contractions --relax-plan-loops \
// RUN:   --relax-merge-kernels="of=entries" --split-input-file | filecheck %s --check-prefix=ENTRIES
// RUN: relax-opt %s --relax-merge-kernels="of=copies" --split-input-file | filecheck %s --check-prefix=COPIES
// RUN: not relax-opt %s --relax-merge-kernels="of=loops" --split-input-file 2>&1 | filecheck %s --check-prefix=OTHER

// OTHER: expected of=steps, of=entries or of=copies, got of=loops

#id = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>

// Sizes that differ become arguments, those that do not stay; what an entry calls, too, stays as it is.
// STEPS-LABEL: func.func @main(
// STEPS-NEXT: call @others_0(%arg0, %arg1) : (memref<64x96xf32>, memref<96x64xf32>) -> ()
func.func @main(%a: memref<64x96xf32>, %b: memref<96x64xf32>) {
  call @others_0(%a, %b) : (memref<64x96xf32>, memref<96x64xf32>) -> ()
  return
}
// STEPS-LABEL: func.func @step_0(
// STEPS: %[[A:.*]] = memref.cast %arg0 : memref<64x96xf32> to memref<64x?xf32>
// STEPS: %[[B:.*]] = memref.cast %arg1 : memref<96x64xf32> to memref<?x64xf32>
// STEPS: call @kernel_0(%[[A]], %[[B]]) : (memref<64x?xf32>, memref<?x64xf32>) -> ()
// STEPS: call @others_0(%arg0, %arg1)
func.func @step_0(%a: memref<64x96xf32>, %b: memref<96x64xf32>) attributes {relax.entry = {
    inputs = [], name = "step_0", outputs = [], state = [], step = true, symbol = "relaxir_step_0",
      symbols = [], updates = [], weights = []}} {
  call @kernel_0(%a, %b) : (memref<64x96xf32>, memref<96x64xf32>) -> ()
  call @others_0(%a, %b) : (memref<64x96xf32>, memref<96x64xf32>) -> ()
  return
}
// STEPS-LABEL: func.func @step_1(
// STEPS: call @kernel_0(%{{.*}}, %{{.*}}) : (memref<64x?xf32>, memref<?x64xf32>) -> ()
// STEPS: call @small(%arg2, %arg3) : (memref<64x8xf32>, memref<8x64xf32>) -> ()
func.func @step_1(%a: memref<64x48xf32>, %b: memref<48x64xf32>, %c: memref<64x8xf32>, %d: memref<8x64xf32>)
      attributes {relax.entry = {
    inputs = [], name = "step_1", outputs = [], state = [], step = true, symbol = "relaxir_step_1",
      symbols = [], updates = [], weights = []}} {
  call @kernel_1(%a, %b) : (memref<64x48xf32>, memref<48x64xf32>) -> ()
  call @small(%c, %d) : (memref<64x8xf32>, memref<8x64xf32>) -> ()
  return
}
// STEPS: func.func private @kernel_0(%{{.*}}: memref<64x?xf32>, %{{.*}}: memref<?x64xf32>)
func.func private @kernel_0(%x: memref<64x96xf32>, %y: memref<96x64xf32>) attributes {relax.kernel} {
  linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x96xf32>) outs(%y : memref<96x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}
// STEPS-NOT: @kernel_1(
func.func private @kernel_1(%x: memref<64x48xf32>, %y: memref<48x64xf32>) attributes {relax.kernel} {
  linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x48xf32>) outs(%y : memref<48x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}
// STEPS: func.func private @small(%{{.*}}: memref<64x8xf32>
func.func private @small(%x: memref<64x8xf32>, %y: memref<8x64xf32>) attributes {relax.kernel} {
  linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x8xf32>) outs(%y : memref<8x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}
// STEPS: func.func private @others_0(%{{.*}}: memref<64x96xf32>
func.func private @others_0(%x: memref<64x96xf32>, %y: memref<96x64xf32>) attributes {relax.kernel} {
  linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x96xf32>) outs(%y : memref<96x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

#columns = affine_map<(d0, d1, d2) -> (d1, d0 * 32 + d2)>
#whole = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// How many panels there are, however few, is an argument.
// STEPS-LABEL: func.func @pack_0(
// STEPS: call @panels_0(%{{.*}}, %{{.*}}) : (memref<64x?xf32>, memref<?x64x32xf32>) -> ()
// STEPS-LABEL: func.func @pack_1(
// STEPS: call @panels_0(
func.func @pack_0(%a: memref<64x64xf32>, %b: memref<2x64x32xf32>) attributes {relax.entry = {
    inputs = [], name = "pack_0", outputs = [], state = [], step = true, symbol = "relaxir_pack_0",
      symbols = [], updates = [], weights = []}} {
  call @panels_0(%a, %b) : (memref<64x64xf32>, memref<2x64x32xf32>) -> ()
  return
}
func.func @pack_1(%a: memref<64x128xf32>, %b: memref<4x64x32xf32>) attributes {relax.entry = {
    inputs = [], name = "pack_1", outputs = [], state = [], step = true, symbol = "relaxir_pack_1",
      symbols = [], updates = [], weights = []}} {
  call @panels_1(%a, %b) : (memref<64x128xf32>, memref<4x64x32xf32>) -> ()
  return
}
// STEPS-NOT: @panels_1(
func.func private @panels_0(%x: memref<64x64xf32>, %y: memref<2x64x32xf32>) attributes {relax.kernel} {
  linalg.generic {indexing_maps = [#columns, #whole], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<64x64xf32>) outs(%y : memref<2x64x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}
func.func private @panels_1(%x: memref<64x128xf32>, %y: memref<4x64x32xf32>) attributes {relax.kernel} {
  linalg.generic {indexing_maps = [#columns, #whole], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<64x128xf32>) outs(%y : memref<4x64x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

#rows = affine_map<(d0, d1, d2) -> (d0, d2)>
#packed = affine_map<(d0, d1, d2) -> (d1 floordiv 32, d2, d1 mod 32)>
#sums = affine_map<(d0, d1, d2) -> (d0, d1)>

// A product's sum, where plans are equal and need not know how long it is; its rows stay.
// ENTRIES-LABEL: func.func @products(
// ENTRIES: memref.cast %arg0 : memref<8x64xf32> to memref<8x?xf32>
// ENTRIES: call @k_0(%{{.*}}, %{{.*}}, %{{.*}}) : (memref<8x?xf32>, memref<1x?x32xf32>, memref<8x32xf32>) -> ()
// ENTRIES: call @k_0
// ENTRIES: call @k_0
// ENTRIES: call @rows(
// ENTRIES: call @planned(
// ENTRIES: call @blocks_0(
// ENTRIES: call @blocks_1(
// ENTRIES: call @blocks_2(
func.func @products(%a: memref<8x64xf32>, %b: memref<1x64x32xf32>, %c: memref<8x96xf32>, %d: memref<1x96x32xf32>,
    %e: memref<8x100xf32>, %f: memref<1x100x32xf32>, %g: memref<40x64xf32>, %h: memref<40x96xf32>,
    %i: memref<40x100xf32>, %out: memref<8x32xf32>, %more: memref<40x32xf32>) {
  call @k_0(%a, %b, %out) : (memref<8x64xf32>, memref<1x64x32xf32>, memref<8x32xf32>) -> ()
  call @k_1(%c, %d, %out) : (memref<8x96xf32>, memref<1x96x32xf32>, memref<8x32xf32>) -> ()
  call @k_2(%e, %f, %out) : (memref<8x100xf32>, memref<1x100x32xf32>, memref<8x32xf32>) -> ()
  call @rows(%g, %b, %more) : (memref<40x64xf32>, memref<1x64x32xf32>, memref<40x32xf32>) -> ()
  call @planned(%a, %b, %out) : (memref<8x64xf32>, memref<1x64x32xf32>, memref<8x32xf32>) -> ()
  call @blocks_0(%g, %b, %more) : (memref<40x64xf32>, memref<1x64x32xf32>, memref<40x32xf32>) -> ()
  call @blocks_1(%h, %d, %more) : (memref<40x96xf32>, memref<1x96x32xf32>, memref<40x32xf32>) -> ()
  call @blocks_2(%i, %f, %more) : (memref<40x100xf32>, memref<1x100x32xf32>, memref<40x32xf32>) -> ()
  return
}
func.func private @k_0(%x: memref<8x64xf32>, %w: memref<1x64x32xf32>, %y: memref<8x32xf32>)
    attributes {relax.kernel} {
  linalg.generic {indexing_maps = [#rows, #packed, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<8x64xf32>, memref<1x64x32xf32>) outs(%y : memref<8x32xf32>)
      attrs = {relax.contraction, relax.layout = "tile 32"} {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @k_1(%x: memref<8x96xf32>, %w: memref<1x96x32xf32>, %y: memref<8x32xf32>)
    attributes {relax.kernel} {
  linalg.generic {indexing_maps = [#rows, #packed, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<8x96xf32>, memref<1x96x32xf32>) outs(%y : memref<8x32xf32>)
      attrs = {relax.contraction, relax.layout = "tile 32"} {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @k_2(%x: memref<8x100xf32>, %w: memref<1x100x32xf32>, %y: memref<8x32xf32>)
    attributes {relax.kernel} {
  linalg.generic {indexing_maps = [#rows, #packed, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<8x100xf32>, memref<1x100x32xf32>) outs(%y : memref<8x32xf32>)
      attrs = {relax.contraction, relax.layout = "tile 32"} {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @rows(%x: memref<40x64xf32>, %w: memref<1x64x32xf32>, %y: memref<40x32xf32>)
    attributes {relax.kernel} {
  linalg.generic {indexing_maps = [#rows, #packed, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<40x64xf32>, memref<1x64x32xf32>) outs(%y : memref<40x32xf32>)
      attrs = {relax.contraction, relax.layout = "tile 32"} {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @planned(%x: memref<8x64xf32>, %w: memref<1x64x32xf32>, %y: memref<8x32xf32>)
    attributes {relax.kernel} {
  linalg.generic {indexing_maps = [#rows, #packed, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<8x64xf32>, memref<1x64x32xf32>) outs(%y : memref<8x32xf32>)
      attrs = {relax.contraction, relax.layout = "tile 32",
        relax.plan = "tile=4x2x16 sums=fma accumulators=8 unroll=4 threads=rows"} {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @blocks_0(%x: memref<40x64xf32>, %w: memref<1x64x32xf32>, %y: memref<40x32xf32>)
    attributes {relax.kernel} {
  linalg.generic {indexing_maps = [#rows, #packed, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<40x64xf32>, memref<1x64x32xf32>) outs(%y : memref<40x32xf32>)
      attrs = {relax.contraction, relax.layout = "tile 32",
        relax.plan = "tile=8x2x16 sums=fma accumulators=8 unroll=4 blocks=40x32x32:24 threads=blocks"} {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @blocks_1(%x: memref<40x96xf32>, %w: memref<1x96x32xf32>, %y: memref<40x32xf32>)
    attributes {relax.kernel} {
  linalg.generic {indexing_maps = [#rows, #packed, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<40x96xf32>, memref<1x96x32xf32>) outs(%y : memref<40x32xf32>)
      attrs = {relax.contraction, relax.layout = "tile 32",
        relax.plan = "tile=8x2x16 sums=fma accumulators=8 unroll=4 blocks=40x32x32:24 threads=blocks"} {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @blocks_2(%x: memref<40x100xf32>, %w: memref<1x100x32xf32>, %y: memref<40x32xf32>)
    attributes {relax.kernel} {
  linalg.generic {indexing_maps = [#rows, #packed, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<40x100xf32>, memref<1x100x32xf32>) outs(%y : memref<40x32xf32>)
      attrs = {relax.contraction, relax.layout = "tile 32",
        relax.plan = "tile=8x2x16 sums=fma accumulators=8 unroll=4 blocks=40x32x32:24 threads=blocks"} {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#rows = affine_map<(d0, d1, d2) -> (d0, d2)>
#packed = affine_map<(d0, d1, d2) -> (d1 floordiv 32, d2, d1 mod 32)>
#sums = affine_map<(d0, d1, d2) -> (d0, d1)>

// Tiles alone take rows, columns and the sum as arguments; a sum that iterations do not take evenly stays.
// ENTRIES-LABEL: func.func @calls_k_0(
// ENTRIES: call @k_0(%{{.*}}) : (memref<?x?xf32>, memref<?x?x32xf32>, memref<?xf32>, memref<?x?xf32>) -> ()
// ENTRIES-LABEL: func.func @calls_k_1(
// ENTRIES: call @k_0(
// ENTRIES-LABEL: func.func @calls_k_2(
// ENTRIES: call @k_0(
// ENTRIES-LABEL: func.func @calls_uneven(
// ENTRIES: call @uneven(%arg0, %arg1, %arg2, %arg3)
func.func @calls_k_0(%x: memref<40x64xf32>, %w: memref<5x64x32xf32>, %b: memref<160xf32>, %y: memref<40x160xf32>) {
  call @k_0(%x, %w, %b, %y)
      : (memref<40x64xf32>, memref<5x64x32xf32>, memref<160xf32>, memref<40x160xf32>) -> ()
  return
}
func.func @calls_k_1(%x: memref<41x128xf32>, %w: memref<6x128x32xf32>, %b: memref<192xf32>, %y: memref<41x192xf32>) {
  call @k_1(%x, %w, %b, %y)
      : (memref<41x128xf32>, memref<6x128x32xf32>, memref<192xf32>, memref<41x192xf32>) -> ()
  return
}
func.func @calls_k_2(%x: memref<96x96xf32>, %w: memref<8x96x32xf32>, %b: memref<256xf32>, %y: memref<96x256xf32>) {
  call @k_2(%x, %w, %b, %y)
      : (memref<96x96xf32>, memref<8x96x32xf32>, memref<256xf32>, memref<96x256xf32>) -> ()
  return
}
func.func @calls_uneven(%x: memref<40x68xf32>, %w: memref<5x68x32xf32>, %b: memref<160xf32>, %y: memref<40x160xf32>) {
  call @uneven(%x, %w, %b, %y)
      : (memref<40x68xf32>, memref<5x68x32xf32>, memref<160xf32>, memref<40x160xf32>) -> ()
  return
}
// ENTRIES: func.func private @k_0(%{{.*}}, %{{.*}}, %{{.*}}, %[[Y:.*]]: memref<?x?xf32>)
// ENTRIES: %[[ROWS:.*]] = memref.dim %[[Y]], %c0
// ENTRIES: %[[COLUMNS:.*]] = memref.dim %[[Y]], %c1
// ENTRIES: memref.alloc(%[[ROWS]], %[[COLUMNS]]) {alignment = 64 : i64} : memref<?x?xf32>
// ENTRIES: relax.multiples = array<i64: 32, 8>
// ENTRIES-NOT: @k_1(
func.func private @k_0(%x: memref<40x64xf32>, %w: memref<5x64x32xf32>, %b: memref<160xf32>, %y: memref<40x160xf32>)
    attributes {relax.kernel} {
  %sums = memref.alloc() {alignment = 64 : i64} : memref<40x160xf32>
  linalg.generic {indexing_maps = [#rows, #packed, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<40x64xf32>, memref<5x64x32xf32>) outs(%sums : memref<40x160xf32>)
      attrs = {relax.contraction, relax.layout = "tile 32"} {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %b : memref<40x160xf32>, memref<160xf32>) outs(%y : memref<40x160xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @k_1(%x: memref<41x128xf32>, %w: memref<6x128x32xf32>, %b: memref<192xf32>, %y: memref<41x192xf32>)
    attributes {relax.kernel} {
  %sums = memref.alloc() {alignment = 64 : i64} : memref<41x192xf32>
  linalg.generic {indexing_maps = [#rows, #packed, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<41x128xf32>, memref<6x128x32xf32>) outs(%sums : memref<41x192xf32>)
      attrs = {relax.contraction, relax.layout = "tile 32"} {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %b : memref<41x192xf32>, memref<192xf32>) outs(%y : memref<41x192xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @k_2(%x: memref<96x96xf32>, %w: memref<8x96x32xf32>, %b: memref<256xf32>, %y: memref<96x256xf32>)
    attributes {relax.kernel} {
  %sums = memref.alloc() {alignment = 64 : i64} : memref<96x256xf32>
  linalg.generic {indexing_maps = [#rows, #packed, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<96x96xf32>, memref<8x96x32xf32>) outs(%sums : memref<96x256xf32>)
      attrs = {relax.contraction, relax.layout = "tile 32"} {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %b : memref<96x256xf32>, memref<256xf32>) outs(%y : memref<96x256xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @uneven(%x: memref<40x68xf32>, %w: memref<5x68x32xf32>, %b: memref<160xf32>, %y: memref<40x160xf32>)
    attributes {relax.kernel} {
  %sums = memref.alloc() {alignment = 64 : i64} : memref<40x160xf32>
  linalg.generic {indexing_maps = [#rows, #packed, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<40x68xf32>, memref<5x68x32xf32>) outs(%sums : memref<40x160xf32>)
      attrs = {relax.contraction, relax.layout = "tile 32"} {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %b : memref<40x160xf32>, memref<160xf32>) outs(%y : memref<40x160xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  }
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (0, d1)>
#image = affine_map<(d0, d1, d2, d3, d4) -> (0, d0 floordiv 7 + d2, d0 mod 7 + d3, d4)>
#strided = affine_map<(d0, d1, d2, d3, d4) -> (0, (d0 floordiv 14) * 2 + d2, (d0 mod 14) * 2 + d3, d4)>
#thirteen = affine_map<(d0, d1, d2, d3, d4) -> (0, d0 floordiv 13 + d2, d0 mod 13 + d3, d4)>
#packed = affine_map<(d0, d1, d2, d3, d4) -> (0, d1 floordiv 32, d2, d3, d4, d1 mod 32)>
#sums = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1)>

// Convolutions of other images, channels and strides are one kernel, which sees lines, columns and windows: tiles of 7
// rows fill 49 and 196. One of 13 x 13 stays.
// ENTRIES-LABEL: func.func @convolutions(
// ENTRIES: memref.reinterpret_cast %arg0 to offset: [0], sizes: [7, 7, 3, 24], strides: [72, 8, 72, 1]
// ENTRIES: memref.reinterpret_cast %arg1 to offset: [0], sizes: [4, 3, 24, 32], strides: [2304, 768, 32, 1]
// ENTRIES: memref.reinterpret_cast %arg3 to offset: [0], sizes: [7, 7, 128], strides: [896, 128, 1]
// ENTRIES: call @c_0(%{{.*}}) : (memref<?x?x3x?xf32, strided<[?, ?, ?, 1]>>, memref<?x3x?x32xf32>, memref<1x?xf32>,
// ENTRIES: memref.reinterpret_cast %arg4 to offset: [0], sizes: [14, 14, 3, 48], strides: [960, 32, 480, 1]
// ENTRIES: call @c_0(
// ENTRIES: call @uneven(%arg8, %arg1, %arg2, %arg9)
func.func @convolutions(
    %x: memref<1x9x9x8xf32>, %w: memref<1x4x3x3x8x32xf32>, %b: memref<1x128xf32>, %y: memref<49x128xf32>,
    %u: memref<1x30x30x16xf32>, %v: memref<1x5x3x3x16x32xf32>, %c: memref<1x160xf32>, %z: memref<196x160xf32>,
    %s: memref<1x15x15x8xf32>, %t: memref<169x128xf32>) {
  call @c_0(%x, %w, %b, %y)
      : (memref<1x9x9x8xf32>, memref<1x4x3x3x8x32xf32>, memref<1x128xf32>, memref<49x128xf32>) -> ()
  call @c_1(%u, %v, %c, %z)
      : (memref<1x30x30x16xf32>, memref<1x5x3x3x16x32xf32>, memref<1x160xf32>, memref<196x160xf32>) -> ()
  call @uneven(%s, %w, %b, %t)
      : (memref<1x15x15x8xf32>, memref<1x4x3x3x8x32xf32>, memref<1x128xf32>, memref<169x128xf32>) -> ()
  return
}
// ENTRIES: func.func private @c_0(%{{.*}}, %{{.*}}, %{{.*}}, %[[Y:.*]]: memref<?x?x?xf32>)
// ENTRIES: memref.alloc(%{{.*}}, %{{.*}}, %{{.*}}) {alignment = 64 : i64} : memref<?x?x?xf32>
// ENTRIES: iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]
// ENTRIES-SAME: relax.multiples = array<i64: 32, 8, 7>, relax.plan = "tile=7x2x16 {{.*}} joined=yes
// ENTRIES-NOT: @c_1(
func.func private @c_0(%x: memref<1x9x9x8xf32>, %w: memref<1x4x3x3x8x32xf32>,
    %b: memref<1x128xf32>, %y: memref<49x128xf32>)
    attributes {relax.kernel} {
  %sums = memref.alloc() {alignment = 64 : i64} : memref<49x128xf32>
  linalg.generic {indexing_maps = [#image, #packed, #sums],
      iterator_types = ["parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : memref<1x9x9x8xf32>, memref<1x4x3x3x8x32xf32>) outs(%sums : memref<49x128xf32>)
      attrs = {relax.contraction, relax.layout = "tile 32"} {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %b : memref<49x128xf32>, memref<1x128xf32>) outs(%y : memref<49x128xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @c_1(%x: memref<1x30x30x16xf32>, %w: memref<1x5x3x3x16x32xf32>,
    %b: memref<1x160xf32>, %y: memref<196x160xf32>)
    attributes {relax.kernel} {
  %sums = memref.alloc() {alignment = 64 : i64} : memref<196x160xf32>
  linalg.generic {indexing_maps = [#strided, #packed, #sums],
      iterator_types = ["parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : memref<1x30x30x16xf32>, memref<1x5x3x3x16x32xf32>) outs(%sums : memref<196x160xf32>)
      attrs = {relax.contraction, relax.layout = "tile 32"} {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %b : memref<196x160xf32>, memref<1x160xf32>) outs(%y : memref<196x160xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @uneven(%x: memref<1x15x15x8xf32>, %w: memref<1x4x3x3x8x32xf32>,
    %b: memref<1x128xf32>, %y: memref<169x128xf32>)
    attributes {relax.kernel} {
  %sums = memref.alloc() {alignment = 64 : i64} : memref<169x128xf32>
  linalg.generic {indexing_maps = [#thirteen, #packed, #sums],
      iterator_types = ["parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : memref<1x15x15x8xf32>, memref<1x4x3x3x8x32xf32>) outs(%sums : memref<169x128xf32>)
      attrs = {relax.contraction, relax.layout = "tile 32"} {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %b : memref<169x128xf32>, memref<1x128xf32>) outs(%y : memref<169x128xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Strides and offsets that differ, too.
// COPIES-LABEL: func.func @copies(
// COPIES: memref.cast %arg1 : memref<4x64xf32, strided<[96, 1]>> to memref<?x64xf32, strided<[?, 1], offset: ?>>
// COPIES: call @copy_0(%{{.*}}, %{{.*}}) : (memref<?x64xf32>, memref<?x64xf32, strided<[?, 1], offset: ?>>) -> ()
// COPIES-COUNT-2: call @copy_0
func.func @copies(%a: memref<4x64xf32>, %b: memref<4x64xf32, strided<[96, 1]>>, %c: memref<4x64xf32,
      strided<[128, 1], offset: 7>>,
    %d: memref<5x64xf32>, %e: memref<5x64xf32, strided<[96, 1]>>) {
  call @copy_0(%a, %b) : (memref<4x64xf32>, memref<4x64xf32, strided<[96, 1]>>) -> ()
  call @copy_1(%a, %c) : (memref<4x64xf32>, memref<4x64xf32, strided<[128, 1], offset: 7>>) -> ()
  call @copy_2(%d, %e) : (memref<5x64xf32>, memref<5x64xf32, strided<[96, 1]>>) -> ()
  return
}
// COPIES: func.func private @copy_0(%{{.*}}: memref<?x64xf32>, %{{.*}}: memref<?x64xf32, strided<[?, 1], offset: ?>>)
func.func private @copy_0(%x: memref<4x64xf32>, %y: memref<4x64xf32, strided<[96, 1]>>) attributes {relax.kernel} {
  memref.copy %x, %y : memref<4x64xf32> to memref<4x64xf32, strided<[96, 1]>>
  return
}
func.func private @copy_1(%x: memref<4x64xf32>, %y: memref<4x64xf32, strided<[128, 1], offset: 7>>)
      attributes {relax.kernel} {
  memref.copy %x, %y : memref<4x64xf32> to memref<4x64xf32, strided<[128, 1], offset: 7>>
  return
}
func.func private @copy_2(%x: memref<5x64xf32>, %y: memref<5x64xf32, strided<[96, 1]>>) attributes {relax.kernel} {
  memref.copy %x, %y : memref<5x64xf32> to memref<5x64xf32, strided<[96, 1]>>
  return
}

// -----

#left = affine_map<(d0, d1, d2) -> (d0, d2)>
#panels = affine_map<(d0, d1, d2) -> (d1 floordiv 32, d2, d1 mod 32)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>

// Products of something small and whole panels, which say that columns fill them; not those of long sums, nor where a
// panel is not full.
// STEPS-LABEL: func.func @step_0(
// STEPS: call @filters_0(%arg0, %{{.*}}, %{{.*}}) : (memref<16x9xf32>, memref<?x9x32xf32>, memref<16x?xf32>) -> ()
// STEPS: call @long_0(
// STEPS: call @cut_0(
func.func @step_0(%g: memref<16x9xf32>, %w: memref<2x9x32xf32>, %y: memref<16x64xf32>,
                  %a: memref<16x64xf32>, %b: memref<2x64x32xf32>, %z: memref<16x40xf32>)
    attributes {relax.entry = {
    inputs = [], name = "step_0", outputs = [], state = [], step = true, symbol = "relaxir_step_0",
      symbols = [], updates = [], weights = []}} {
  call @filters_0(%g, %w, %y) : (memref<16x9xf32>, memref<2x9x32xf32>, memref<16x64xf32>) -> ()
  call @long_0(%a, %b, %y) : (memref<16x64xf32>, memref<2x64x32xf32>, memref<16x64xf32>) -> ()
  call @cut_0(%g, %w, %z) : (memref<16x9xf32>, memref<2x9x32xf32>, memref<16x40xf32>) -> ()
  return
}
// STEPS-LABEL: func.func @step_1(
// STEPS: call @filters_0(
// STEPS: call @long_1(
// STEPS: call @cut_1(
func.func @step_1(%g: memref<16x9xf32>, %w: memref<4x9x32xf32>, %y: memref<16x128xf32>,
                  %a: memref<16x64xf32>, %b: memref<4x64x32xf32>, %z: memref<16x100xf32>)
    attributes {relax.entry = {
    inputs = [], name = "step_1", outputs = [], state = [], step = true, symbol = "relaxir_step_1",
      symbols = [], updates = [], weights = []}} {
  call @filters_1(%g, %w, %y) : (memref<16x9xf32>, memref<4x9x32xf32>, memref<16x128xf32>) -> ()
  call @long_1(%a, %b, %y) : (memref<16x64xf32>, memref<4x64x32xf32>, memref<16x128xf32>) -> ()
  call @cut_1(%g, %w, %z) : (memref<16x9xf32>, memref<4x9x32xf32>, memref<16x100xf32>) -> ()
  return
}
// STEPS: func.func private @filters_0(%{{.*}}: memref<16x9xf32>, %{{.*}}: memref<?x9x32xf32>,
// STEPS-SAME: memref<16x?xf32>)
// STEPS: relax.multiples = array<i64: 32, 1>
func.func private @filters_0(%g: memref<16x9xf32>, %w: memref<2x9x32xf32>, %y: memref<16x64xf32>)
    attributes {relax.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<16x64xf32>)
  linalg.generic {indexing_maps = [#left, #panels, #out], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%g, %w : memref<16x9xf32>, memref<2x9x32xf32>) outs(%y : memref<16x64xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %0 = arith.mulf %in, %in_0 : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
// STEPS-NOT: @filters_1(
func.func private @filters_1(%g: memref<16x9xf32>, %w: memref<4x9x32xf32>, %y: memref<16x128xf32>)
    attributes {relax.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<16x128xf32>)
  linalg.generic {indexing_maps = [#left, #panels, #out], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%g, %w : memref<16x9xf32>, memref<4x9x32xf32>) outs(%y : memref<16x128xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %0 = arith.mulf %in, %in_0 : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
// STEPS: func.func private @long_0(%{{.*}}: memref<16x64xf32>, %{{.*}}: memref<2x64x32xf32>
// STEPS-NOT: relax.multiples
func.func private @long_0(%a: memref<16x64xf32>, %b: memref<2x64x32xf32>, %y: memref<16x64xf32>)
    attributes {relax.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<16x64xf32>)
  linalg.generic {indexing_maps = [#left, #panels, #out], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<16x64xf32>, memref<2x64x32xf32>) outs(%y : memref<16x64xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %0 = arith.mulf %in, %in_0 : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
// STEPS: func.func private @long_1(
func.func private @long_1(%a: memref<16x64xf32>, %b: memref<4x64x32xf32>, %y: memref<16x128xf32>)
    attributes {relax.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<16x128xf32>)
  linalg.generic {indexing_maps = [#left, #panels, #out], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%a, %b : memref<16x64xf32>, memref<4x64x32xf32>) outs(%y : memref<16x128xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %0 = arith.mulf %in, %in_0 : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
// STEPS: func.func private @cut_0(%{{.*}}: memref<16x9xf32>, %{{.*}}: memref<2x9x32xf32>,
// STEPS-SAME: memref<16x40xf32>)
// STEPS-NOT: relax.multiples
func.func private @cut_0(%g: memref<16x9xf32>, %w: memref<2x9x32xf32>, %y: memref<16x40xf32>)
    attributes {relax.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<16x40xf32>)
  linalg.generic {indexing_maps = [#left, #panels, #out], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%g, %w : memref<16x9xf32>, memref<2x9x32xf32>) outs(%y : memref<16x40xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %0 = arith.mulf %in, %in_0 : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
// STEPS: func.func private @cut_1(
func.func private @cut_1(%g: memref<16x9xf32>, %w: memref<4x9x32xf32>, %y: memref<16x100xf32>)
    attributes {relax.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<16x100xf32>)
  linalg.generic {indexing_maps = [#left, #panels, #out], iterator_types = ["parallel", "parallel", "reduction"],
                  relax.contraction}
      ins(%g, %w : memref<16x9xf32>, memref<4x9x32xf32>) outs(%y : memref<16x100xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %0 = arith.mulf %in, %in_0 : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
