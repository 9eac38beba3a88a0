// RUN: relax-opt %s --relax-set-target=target=cpu:znver4 --relax-plan-loops=all=true | filecheck %s
// RUN: relax-opt %s --relax-set-target=target=cpu:x86-64-v2 --relax-plan-loops=all=true \
// RUN:   | filecheck %s --check-prefix=SSE
// RUN: relax-opt %s --relax-set-target=target=cpu:znver4 --relax-plan-loops=all=true \
// RUN:   | relax-opt --relax-plan-loops=all=true | filecheck %s

#ij = affine_map<(i, j) -> (i, j)>
#ji = affine_map<(i, j) -> (j, i)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// Neighbouring loops that are contiguous are one. A copy is a loop nest, too.
// CHECK-LABEL: @elementwise(
// CHECK: relax.plan = "order=1 vector=1 width=16 wide=16"
// CHECK: relax.plan = "order=1 vector=1 width=16 wide=16"
// SSE-LABEL: @elementwise(
// SSE: relax.plan = "order=1 vector=1 width=4 wide=4"
func.func @elementwise(%x: memref<64x100xf32>, %y: memref<64x100xf32>, %z: memref<64x100xf32>) {
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x100xf32>) outs(%y : memref<64x100xf32>) {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.addf %u, %u : f32
    linalg.yield %0 : f32
  }
  memref.copy %y, %z : memref<64x100xf32> to memref<64x100xf32>
  return
}

// CHECK-LABEL: @transposed(
// CHECK: relax.plan = "order=0+1 vector=1 width=16 wide=16 tile=0"
func.func @transposed(%x: memref<64x100xf32>, %y: memref<100x64xf32>) {
  linalg.generic {indexing_maps = [#ji, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x100xf32>) outs(%y : memref<100x64xf32>) {
  ^bb0(%u: f32, %v: f32):
    linalg.yield %u : f32
  }
  return
}

// Pairs that stay together are words, and lanes are as wide as these.
// CHECK-LABEL: @pairs(
// CHECK: relax.plan = "order=0+1+2 vector=2 width=16 wide=16 tile=1"
#panels = affine_map<(p, k, t, r) -> (p * 32 + t, k * 2 + r)>
#pktr = affine_map<(p, k, t, r) -> (p, k, t, r)>
func.func @pairs(%x: memref<64x100xbf16>, %y: memref<2x50x32x2xbf16>) {
  linalg.generic {indexing_maps = [#panels, #pktr], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : memref<64x100xbf16>) outs(%y : memref<2x50x32x2xbf16>) {
  ^bb0(%u: bf16, %v: bf16):
    linalg.yield %u : bf16
  }
  return
}

// Along rows, lanes are combined; down columns, rows are read one after the other.
// CHECK-LABEL: @sums(
// CHECK: relax.plan = "order=0+1 vector=1 width=16 wide=64 horizontal=yes"
// CHECK: relax.plan = "order=0+1 vector=1 width=16 wide=64 streamed=yes"
func.func @sums(%x: memref<64x1000xf32>, %y: memref<64xf32>, %z: memref<1000xf32>) {
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<64x1000xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.addf %v, %u : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#ij, #j], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<64x1000xf32>) outs(%z : memref<1000xf32>) {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.addf %v, %u : f32
    linalg.yield %0 : f32
  }
  return
}

// Many short rows that are multiplied with one are fetched ahead: scores of one token. Few rows are not, nor long ones.
// CHECK-LABEL: @scores(
// CHECK: relax.plan = "order=0+1 vector=1 width=16 wide=64 horizontal=yes fetch=8192"
// CHECK: relax.plan = "order=0+1 vector=1 width=16 wide=64 horizontal=yes"
// CHECK: relax.plan = "order=0+1 vector=1 width=16 wide=64 horizontal=yes"
func.func @scores(%k: memref<?x128xf32>, %q: memref<128xf32>, %s: memref<?xf32>, %few: memref<16x128xf32>,
                  %t: memref<16xf32>, %long: memref<?x1024xf32>, %x: memref<1024xf32>) {
  linalg.generic {indexing_maps = [#ij, #j, #i], iterator_types = ["parallel", "reduction"]}
      ins(%k, %q : memref<?x128xf32>, memref<128xf32>) outs(%s : memref<?xf32>) {
  ^bb0(%u: f32, %v: f32, %total: f32):
    %0 = arith.mulf %u, %v : f32
    %1 = arith.addf %total, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#ij, #j, #i], iterator_types = ["parallel", "reduction"]}
      ins(%few, %q : memref<16x128xf32>, memref<128xf32>) outs(%t : memref<16xf32>) {
  ^bb0(%u: f32, %v: f32, %total: f32):
    %0 = arith.mulf %u, %v : f32
    %1 = arith.addf %total, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#ij, #j, #i], iterator_types = ["parallel", "reduction"]}
      ins(%long, %x : memref<?x1024xf32>, memref<1024xf32>) outs(%s : memref<?xf32>) {
  ^bb0(%u: f32, %v: f32, %total: f32):
    %0 = arith.mulf %u, %v : f32
    %1 = arith.addf %total, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// The loops of rows, which the operations of a kernel share, are the first ones.
// CHECK-LABEL: @rows(
// CHECK: relax.plan = "order=0+1 vector=1 width=16 wide=64 horizontal=yes"
func.func @rows(%x: memref<64x1000xf32>, %y: memref<64xf32>) attributes {relax.rows = 1 : i64} {
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<64x1000xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.maximumf %v, %u : f32
    linalg.yield %0 : f32
  }
  return
}

// Windows of bytes, a filter for each channel: four rows of the image are multiplied by one instruction, where
// there is one.
// CHECK-LABEL: @windows(
// CHECK: relax.plan = "channels=64 rows=2 pixels=3 share=4"
// SSE-LABEL: @windows(
// SSE: relax.plan = "order=
#window = affine_map<(n, y, x, c, i, j) -> (n, y + i, x + j, c)>
#filter = affine_map<(n, y, x, c, i, j) -> (i, j, 0, c)>
#sums = affine_map<(n, y, x, c, i, j) -> (n, y, x, c)>
func.func @windows(%x: memref<1x18x20x80xi8>, %w: memref<3x3x1x80xi8>, %y: memref<1x16x18x80xi32>) {
  linalg.generic {indexing_maps = [#window, #filter, #sums],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : memref<1x18x20x80xi8>, memref<3x3x1x80xi8>) outs(%y : memref<1x16x18x80xi32>) {
  ^bb0(%a: i8, %b: i8, %total: i32):
    %0 = arith.extui %a : i8 to i32
    %1 = arith.extsi %b : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %total, %2 : i32
    linalg.yield %3 : i32
  }
  return
}
