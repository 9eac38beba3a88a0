"""Bugs planted into the PTX of working kernels: each is found, by a report or a wrong result; the kernels give neither."""

from __future__ import annotations

import pytest

from relaxir.lowering.cuda.emulator import Finding
from support.ptx_edits import Edit, drop, put, swap
from support.ptx_kernels import KERNELS, text_of

#: bf16 results are off by half a unit in the eighth bit; f32 sums of 192 products by much less.
TOLERANCE = 2.0**-8

DESCRIPTOR = 4611686293305360384  # 128-byte swizzle, 1024 bytes from 8 rows to the next 8
WAIT = r"mbarrier\.try_wait\.parity\.shared\.b64 P1, \[%r\d+\], %r\d+, 10000000;\s*@P1 bra\.uni DONE;\s*bra\.uni LAB_WAIT;"

ROWS: dict[str, dict[str, Edit]] = {
    "softmax_2048": {
        "bar.sync dropped": drop(r"bar\.sync"),
        "last bar.sync dropped": drop(r"bar\.sync", -1),
        "store behind the shared variable": put(r"\[__wg_softmax_1\+16\]", "[__wg_softmax_1+32]"),
        "operands of a subtraction swapped": swap(r"(sub\.rn\.f32 %r\d+, )"),
        "shuffle distance": put(r"(shfl\.sync\.bfly\.b32 %r\d+, %r\d+), 8,", r"\1, 4,", 1),
        "shuffle mask": put(r"(shfl\.sync\.bfly\.b32 [^;]*), -1;", r"\1, 65535;"),
        "row stride halved": put(r"(shl\.b32 %r\d+, %r\d+), 11", r"\1, 10"),
        "minimum for maximum": put(r"max\.NaN\.f32", "min.NaN.f32", 9),
        "sum without one part": put(r"(add\.rn\.f32 %r\d+, %r\d+), %r\d+", r"\1, 0f00000000", 5),
        "store of a row of the next block": put(r"(mov\.u32 %r\d+), %ctaid\.x", r"\1, %nctaid.x"),
        "barrier in a branch": put(r"bar\.sync 0;", "@%p1 bar.sync 0;"),
        "barrier that does not exist": put(r"bar\.sync 0;", "bar.sync 16;"),
        "barrier of some threads": put(r"bar\.sync 0;", "bar.sync 0, 128;"),
    },
    "rmsnorm_2048": {
        "store not at its place": put(r"st\.global\.v4\.b32 \[%rd(\d+)\]", r"st.global.v4.b32 [%rd\1+16]"),
        "misaligned load": put(r"(ld\.global\.v4\.b32 [^\[]*\[%rd\d+)\]", r"\1+8]"),
        "bar.sync dropped": drop(r"bar\.sync"),
        "register never written": put(r"(mul\.rn\.f32 %r\d+), %r\d+", r"\1, %never", 3),
        "shuffle of half the distance": put(r"(shfl\.sync\.bfly\.b32 %r\d+, %r\d+), 16,", r"\1, 8,"),
        "multiplication for addition": put(r"add\.rn\.f32", "mul.rn.f32", 4),
    },
    "silu_mul": {
        "bound off by one": put(r"setp\.ge\.s32", "setp.gt.s32"),
        "bound too small": put(r"(setp\.ge\.s32 %p\d+, %r\d+), (%r\d+)", r"\1, 996"),
        "element size": put(r"(mul\.wide\.s32 %rd\d+, %r\d+), 2", r"\1, 4"),
        "all threads of a block at one place": put(r"(mov\.u32 %r\d+), %tid\.x", r"\1, %ctaid.y"),
        "all blocks at one place": put(r"(mov\.u32 %r\d+), %ctaid\.x", r"\1, %tid.y"),
        "reciprocal forgotten": put(r"^(?:div|rcp)\.[\w.]+ (%r\d+), (%r\d+)[^;]*;", r"mov.b32 \1, \2;"),
    },
}

MMA: dict[str, Edit] = {
    "first bar.sync dropped": drop(r"bar\.sync"),
    "second bar.sync dropped": drop(r"bar\.sync", 1),
    "cp.async.wait_group 1 -> 2": put(r"(cp\.async\.wait_group )1", r"\g<1>2"),
    "last cp.async.wait_group dropped": drop(r"cp\.async\.wait_group 0"),
    "cp.async.commit_group dropped": drop(r"cp\.async\.commit_group", 1),
    "source size beyond the copy": put(r"(cp\.async\.cg\.shared\.global \[[^\]]*\], \[[^\]]*\], 16), [^;]*;", r"\1, 20;"),
    "source size of nothing": put(r"(cp\.async\.cg\.shared\.global \[[^\]]*\], \[[^\]]*\], 16), [^;]*;", r"\1, 0;"),
    "operands swapped": put(r"(mma\.sync[^{]*\{[^}]*\},\s*\{)(%r\d+), (%r\d+)", r"\1\3, \2", 3),
    "ldmatrix registers swapped": put(r"(ldmatrix\S+ \{ ?)(%r\d+), (%r\d+)", r"\1\3, \2"),
    "ldmatrix address + 16": put(r"(ldmatrix[^\[]*\[%rd\d+)\]", r"\1+16]"),
    "ldmatrix misaligned": put(r"(ldmatrix[^\[]*\[%rd\d+)\]", r"\1+8]"),
    "row bound of the store off by one": put(r"setp\.ge\.s32", "setp.gt.s32", -4),
    "accumulator of another product": put(r"(mma\.sync[^;]*\{ ?)(%r\d+)(, [^;}]*\};)", r"\1%r1\3", 5),
    "copy into a stage in use": put(r"(cp\.async\.cg\.shared\.global \[%rd?\d+)\]", r"\1+64]"),
}

HOPPER: dict[str, Edit] = {
    "wgmma.wait_group 1 -> 7": put(r"(wgmma\.wait_group\.sync\.aligned )1", r"\g<1>7", None),
    "final wgmma.wait_group dropped": drop(r"wgmma\.wait_group\.sync\.aligned 0"),
    "wgmma.fence dropped": drop(r"wgmma\.fence\.sync\.aligned", None),
    "wgmma.commit_group dropped": drop(r"wgmma\.commit_group", 1),
    "operands A and B swapped": put(r"(wgmma\.mma_async[^}]*\}), (%rd\d+), (%rd\d+)", r"\1, \3, \2", 2),
    "first product adds to what was there": put(r"(wgmma\.mma_async[^}]*\}, %rd\d+, %rd\d+, p), 1, 1", r"\1, -1, 1", 1),
    "descriptor: swizzle of 64 bytes": put(str(DESCRIPTOR), str((DESCRIPTOR & ~(3 << 62)) | 2 << 62), None),
    "descriptor: stride": put(str(DESCRIPTOR + 2), str((DESCRIPTOR + 2) ^ (32 << 32)), None),
    "descriptor: next step of K": put(str(DESCRIPTOR + 2), str(DESCRIPTOR + 4), None),
    "accumulator not initialised": drop(r"mov\.b32 %r204, ", None),
    "stmatrix swizzle": put(r"xor\.b32", "or.b32", 1),
    "stmatrix registers swapped": put(r"(stmatrix[^{]*\{ ?)(%r\d+), (%r\d+)", r"\1\3, \2"),
    "fence.proxy.async dropped": drop(r"fence\.proxy\.async", 1),
    "bar.sync in front of the store dropped": drop(r"bar\.sync %r\d+, 128", 1),
    "bar.sync in front of the staging dropped": drop(r"bar\.sync %r\d+, 128", 2),
    "bulk wait_group.read dropped": drop(r"cp\.async\.bulk\.wait_group\.read", -1),
    "last bulk wait_group dropped": drop(r"cp\.async\.bulk\.wait_group 0"),
    "bulk commit_group dropped": drop(r"cp\.async\.bulk\.commit_group", -1),
    "expect_tx too small": put(r"mov\.b32 (%r\d+), 32768", r"mov.b32 \1, 32752"),
    "release of a stage dropped": drop(r"mbarrier\.arrive\.shared\.b64", 1),
    "empty barrier counts one consumer": put(r"(mbarrier\.init\.shared\.b64[^;]*;\s*mov\.b32 %r\d+), 2;", r"\1, 1;"),
    "wait for a full stage skipped": put(WAIT, ""),
    "every thread but one releases": put(r"@(%p\d+ bra \$L__BB0_20;)", r"@!\1"),
    "retry of a wait removed": put(r"bra\.uni LAB_WAIT;", "", 1),
    "consumer waits for the other parity": put(r"(mbarrier\.try_wait\.parity\.shared\.b64 P1, \[%r\d+\], )%r\d+", r"\g<1>1"),
    "producer starts with parity 0": put(r"(mbarrier\.try_wait\.parity\.shared\.b64 P1, \[%r\d+\], )%r\d+", r"\g<1>0", 2),
    "setmaxnreg too large": put(r"(setmaxnreg\.inc\.sync\.aligned\.u32 )\d+;", r"\g<1>256;"),
    "setmaxnreg not a multiple of 8": put(r"(setmaxnreg\.inc\.sync\.aligned\.u32 )\d+;", r"\g<1>228;"),
    "fence behind the initialisation dropped": drop(r"fence\.mbarrier_init"),
    "registers not given back": drop(r"setmaxnreg\.dec"),
    "barrier behind the initialisation dropped": drop(r"bar\.sync 0"),
    "tensor copy to the middle of a row": put(r"(cp\.async\.bulk\.tensor\.2d\.shared::cluster[^\[]*\[%rd\d+)\]", r"\1+16]"),
    "tensor copy of another box": put(
        r"(cp\.async\.bulk\.tensor\.2d\.shared::cluster[^,]*, \[%rd\d+, \{ ?%r\d+, )%r\d+", r"\g<1>%r1"
    ),
    "tensor copy completes on no mbarrier": put(
        r"(cp\.async\.bulk\.tensor\.2d\.shared::cluster[^;]*\[%rd\d+\+)\d+\];", r"\g<1>4096];"
    ),
}

CLUSTER: dict[str, Edit] = {
    "first cluster barrier dropped": put(r"barrier\.cluster\.(arrive|wait)\.aligned;", "", None),
    "cluster wait dropped": drop(r"barrier\.cluster\.wait"),
    "remote release dropped": drop(r"mbarrier\.arrive\.shared::cluster", 3),
    "multicast mask names one block": put(r"mov\.b16 (%rs\d+), 3", r"mov.b16 \1, 1"),
}

CASES = {
    (kernel, name): edit
    for kernel, edits in ({**ROWS, "mma_bf16": MMA, "gemm_n128": HOPPER, "gemm_c2": CLUSTER}).items()
    for name, edit in edits.items()
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_good_kernels_give_no_report(kernel: str) -> None:
    assert KERNELS[kernel](text_of(kernel), None) < TOLERANCE


@pytest.mark.parametrize(("kernel", "name"), CASES)
def test_planted_bug_is_found(kernel: str, name: str) -> None:
    good = text_of(kernel)
    bad = CASES[kernel, name](good)
    assert bad != good
    bad = bad.replace(".reg .pred", ".reg .b32 %never; .reg .pred", 1)
    try:
        error = KERNELS[kernel](bad, None)
    except Finding:
        return
    assert not error < TOLERANCE


def test_there_are_enough() -> None:
    assert len(CASES) >= 60
