// RUN: relax-opt %s --relax-lower-cuda-kernels | filecheck %s

// Who has a mark gets the kernel that it says, whatever loops compute the same: queries and the first tile are asked
// for, then each tile is waited for, and the next one is asked for before it is multiplied. Tiles that all rows see
// come first.

// CHECK: gpu.func @many({{.*}}known_block_size = array<i32: {{[0-9]+}}, 1, 1>
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache =  cg
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nvvm.barrier
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nvvm.barrier
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
// CHECK: arith.maxnumf
// CHECK: nvvm.shfl.sync bfly
// CHECK: nvvm.ex2
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
// CHECK: scf.for
// CHECK: arith.cmpi slt
// CHECK: arith.divf
// CHECK: llvm.store

// Few rows: blocks for parts of the keys, which the mask may hide altogether, and a second kernel.

// CHECK: gpu.func @few(
// CHECK: nvvm.vote.sync any
// CHECK: gpu.func @few_1(
// CHECK: math.fma

// CHECK: func.func private @many(
// CHECK-NOT: linalg
// CHECK: gpu.launch_func @device::@many
// CHECK: func.func private @few(
// CHECK: memref.alloc
// CHECK: gpu.launch_func @device::@few blocks
// CHECK: gpu.launch_func @device::@few_1 blocks

#place = affine_map<(h, i, d) -> (h, i, d)>
#mask = affine_map<(h, i, j) -> (j)>
module attributes {relax.cuda_target = "cuda:sm_80"} {
  func.func private @many(%q: memref<4x512x64xbf16>, %k: memref<4x512x64xbf16>, %v: memref<4x512x64xbf16>,
      %o: memref<4x512x64xbf16>) attributes {relax.device, relax.kernel, relax.attention_kernel = {
        causal = true, maps = [#place, #place, #place, #place], scale = 0.125, sizes = [4, 512, 64]}} {
    %zero = arith.constant 0.0 : bf16
    linalg.fill ins(%zero : bf16) outs(%o : memref<4x512x64xbf16>)
    return
  }
  func.func private @few(%q: memref<4x2x64xbf16>, %k: memref<2x?x64xbf16>, %v: memref<2x?x64xbf16>, %m: memref<?xi8>,
      %o: memref<4x2x64xbf16>) attributes {relax.device, relax.kernel, relax.attention_kernel = {
        causal = false, maps = [#place, #place, #place, #mask, #place], scale = 0.125, sizes = [2, -1, 64]}} {
    %zero = arith.constant 0.0 : bf16
    linalg.fill ins(%zero : bf16) outs(%o : memref<4x2x64xbf16>)
    return
  }
}
