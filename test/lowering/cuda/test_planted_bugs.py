"""Bugs planted into the PTX of our own kernels: each is a report of the emulator, or a wrong result of the real host code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.building.builder import Builder
from relaxir.runtime.cuda.code import CudaLibrary
from support.device_cases import attention, decode_attention, least, rms_norm, softmax
from support.ptx_edits import Edit, drop, put, swap

# Of bf16 results, one unit in their eighth bit, relative to the largest; sums in f32 are off by less.
_TOLERANCE = 2.0**-7


def _product(depth: int) -> Callable[[Builder], object]:
    """So many steps that rings of stages go round: four of 32, or eight of 64."""
    return lambda b: b.output(b.matmul(b.input("x", ("n", depth), "bf16"), b.input("w", (depth, 40), "bf16")))


def _float8(b: Builder) -> None:
    """Of ten stages of 128 steps, of which eight are in shared memory."""
    x, w = b.input("x", ("n", 1168), "f8E4M3FN"), b.weight("w", (1168, 24), "f8E4M3FN")
    b.output(b.matmul(x, w, out_dtype="f32"))


def _grouped(rows: int | str, depth: int) -> Callable[[Builder], object]:
    """Of three groups of rows; few rows are streams of matrices that lie along k."""

    def build(b: Builder) -> None:
        x, ends = b.input("x", (rows, depth), "bf16"), b.input("ends", (3,), "i64")
        b.output(b.grouped_matmul(x, b.permute_dims(b.weight("w", (120, depth), "bf16"), axes=[1, 0]), ends))

    return build


def _scan(b: Builder) -> None:
    b.output(b.cumsum(b.input("x", (2, "n")), axis=1))


@dataclass(frozen=True)
class _Kernel:
    """A module for a target, its inputs (of random numbers, the second one may be a weight, then more), and the bugs."""

    target: str
    build: Callable[[Builder], object]
    shapes: Sequence[tuple[int, ...]]
    dtype: type
    bugs: dict[str, Edit]
    more: Sequence[np.ndarray] = ()

    def inputs(self) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        return [*(rng.standard_normal(s).astype(self.dtype) for s in self.shapes), *self.more]


_COPY = r"(cp\.async\.cg\.shared\.global\s+\[[^\]]*\], \[[^\]]*\], 16), [^;]*;"
_RING: dict[str, Edit] = {
    "wait for the copies of a stage later": put(r"(cp\.async\.wait_group\s+)2", r"\g<1>3"),
    "wait for copies dropped": drop(r"cp\.async\.wait_group\s+2"),
    "barrier behind the wait dropped": drop(r"bar\.sync"),
    "barrier in front of the results dropped": drop(r"bar\.sync", 1),
    "barrier between results and their rows dropped": drop(r"bar\.sync", 2),
    "commit of the first stage dropped": drop(r"cp\.async\.commit_group"),
    "commit in the loop dropped": drop(r"cp\.async\.commit_group", -1),
    "a copy of too many bytes": put(_COPY, r"\1, 20;"),
    "a copy of no bytes": put(_COPY, r"\1, 0;"),
    "a copy to the next piece": put(r"(cp\.async\.cg\.shared\.global\s+\[%rd\d+)\]", r"\1+16]"),
    "a copy that is not aligned": put(r"(cp\.async\.cg\.shared\.global\s+\[%rd\d+)\]", r"\1+8]", 1),
    "a copy in the loop to another stage": put(r"(cp\.async\.cg\.shared\.global\s+\[%rd\d+)\]", r"\1+8192]", -1),
    "matrices of the neighbours": put(r"(ldmatrix\S+ \{[^}]*\}, \[%rd\d+)\]", r"\1+16]"),
    "registers of matrices swapped": swap(r"(ldmatrix\S+ \{)"),
    "a product of another accumulator": put(r"(mma\.sync[^;]*\{%r\d+, )%r\d+(, [^;}]*\};)", r"\1%r1\2", 3),
    "result one place further": put(r"(st\.shared\.v2\.b32\s+\[%rd\d+\+)32\]", r"\g<1>40]"),
    "bound of rows off by one": put(r"setp\.le\.u64", "setp.lt.u64", -1),
    "rows of results read beyond": put(r"(ld\.shared\.v4\.b32\s+\{[^}]*\}, \[%rd\d+\+)16\]", r"\g<1>4112]"),
}  # fmt: skip
_WAIT = r"mbarrier\.try_wait\.parity\.shared\.b64 P1, \[%r\d+\], %r\d+, 10000000;\s*@P1 bra\.uni DONE;\s*bra\.uni\s+LAB_WAIT;"
_TENSOR = r"(cp\.async\.bulk\.tensor\.2d\.shared::cluster[^\[]*\[%rd\d+)\]"
_HOPPER: dict[str, Edit] = {
    "wait for products later": put(r"(wgmma\.wait_group\.sync\.aligned\s+)1", r"\g<1>7"),
    "wait for products dropped": drop(r"wgmma\.wait_group\.sync\.aligned\s+1"),
    "last wait for products dropped": drop(r"wgmma\.wait_group\.sync\.aligned\s+0"),
    "first fence dropped": drop(r"wgmma\.fence"),
    "fences dropped": drop(r"wgmma\.fence", None),
    "commit of products dropped": drop(r"wgmma\.commit_group", 1),
    "both commits of products dropped": drop(r"wgmma\.commit_group", None),
    "first product adds to what was there": put(r"setp\.ne\.b32 p, 0, 0;", "setp.ne.b32 p, 1, 0;"),
    "factors swapped": put(r"(wgmma\.mma_async[^}]*\}), ?(%rd\d+), ?(%rd\d+)", r"\1, \3, \2", 1),
    "wait for a full stage dropped": put(_WAIT, ""),
    "wait for an empty stage dropped": put(_WAIT, "", -1),
    "all waits for empty stages dropped": put(_WAIT, "", -2),
    "release of a stage dropped": drop(r"mbarrier\.arrive\.shared\.b64", 0),
    "barriers of another count": put(r"(mov\.b32\s+%r\d+), 1;(\s*mbarrier\.init)", r"\1, 2;\2"),
    "a barrier that is not made": drop(r"mbarrier\.init\.shared\.b64", 1),
    "barrier behind the barriers' making dropped": drop(r"bar\.sync"),
    "bytes that are expected too few": put(r"(mbarrier\.arrive\.expect_tx\.shared\.b64 [^;]*), %r\d+;", r"\1, 16;"),
    "nothing expected": put(r"(mbarrier\.arrive)\.expect_tx(\.shared\.b64 [^;]*), %r\d+;", r"\1\2;"),
    "tensor copy to the next line": put(_TENSOR, r"\1+128]"),
    "tensor copy to a place that is not aligned": put(_TENSOR, r"\1+16]", 1),
    "tensor copy of another place": put(r"(\[%rd\d+, \{%r\d+, )%r\d+(\}\])", r"\g<1>%r1\2"),
    "tensor copy of another map": put(r"(cp\.async\.bulk\.tensor[^,]*, \[)%rd3,", r"\1%rd5,"),
    "tensor copy that completes elsewhere": put(r"(\}\], \[%rd\d+)\+-64\];", r"\1];"),
    "fence behind the barriers' making dropped": drop(r"fence\.mbarrier_init"),
    "registers not in steps of 8": put(r"(setmaxnreg\.inc\.sync\.aligned\.u32\s+)\d+;", r"\g<1>228;"),
    "warp barrier in front of results dropped": drop(r"bar\.warp\.sync", 2),
    "warp barrier behind results dropped": drop(r"bar\.warp\.sync", 1),
    "result one place further": put(r"(st\.shared\.v2\.b32\s+\[%rd\d+)\]", r"\1+8]"),
    "result to the neighbours' row": put(r"(st\.global\.v4\.b32\s+\[%rd\d+)\]", r"\1+80]"),
}  # fmt: skip
_FLOAT8: dict[str, Edit] = {
    "wait for products dropped": drop(r"wgmma\.wait_group\.sync\.aligned\s+0"),
    "commit of products dropped": drop(r"wgmma\.commit_group"),
    "products add to those of the stage before": put(r"setp\.ne\.b32 p, 0, 0;", "setp.ne.b32 p, 1, 0;"),
    "products of a stage start again": put(r"setp\.ne\.b32 p, 1, 0;", "setp.ne.b32 p, 0, 0;", -1),
    "a sum of the last stage alone": put(r"add\.rn\.f32(\s+%r\d+), %r\d+, (%r\d+);", r"mov.b32\1, \2;"),
    "a sum that is added to itself": put(r"(add\.rn\.f32\s+%r\d+, (%r\d+)), %r\d+;", r"\1, \2;"),
    "factors of the other format": put(r"(wgmma\.mma_async\S*)\.e4m3\.e4m3", r"\1.e5m2.e4m3", None),
}
_ATTENTION: dict[str, Edit] = {
    "barrier behind queries dropped": drop(r"bar\.sync"),
    "wait for queries dropped": drop(r"cp\.async\.wait_group\s+0"),
    "barrier in the loop dropped": drop(r"bar\.sync", 1),
    "wait in the loop dropped": drop(r"cp\.async\.wait_group\s+0", 1),
    "barrier in the loop of masks dropped": drop(r"bar\.sync", 2),
    "wait in the loop of masks dropped": drop(r"cp\.async\.wait_group\s+0", 2),
    "keys of the next line": put(r"(cp\.async\.cg\.shared\.global\s+\[%rd\d+\+2560)\]", r"\1+80]"),
    "values copied over keys": put(r"(cp\.async\.cg\.shared\.global\s+\[%rd\d+\+)5120\]", r"\g<1>2560]"),
    "greatest score of half a row": put(r"(shfl\.sync\.bfly\.b32\s+%r\d+, %r\d+), 2,", r"\1, 1,"),
    "sum of half a row": put(r"(shfl\.sync\.bfly\.b32\s+%r\d+, %r\d+), 2,", r"\1, 1,", 4),
    "values not transposed": put(r"\.trans\.shared", ".shared"),
    "query that is not aligned": put(r"(ldmatrix\S+ \{[^}]*\}, \[%rd\d+\+)32\]", r"\g<1>40]"),
    "powers of 2 of scores that are not scaled": put(r"ex2\.approx\.ftz\.f32|ex2\.approx\.f32", "neg.f32", 3),
    "results of the next row": put(r"(st\.global\.b32\s+\[%rd\d+)\]", r"\1+64]", 2),
}  # fmt: skip
_WARPGROUPS: dict[str, Edit] = {
    "wait for scores later": put(r"(wgmma\.wait_group\.sync\.aligned\s+)1", r"\g<1>2"),
    "wait for the first scores dropped": drop(r"wgmma\.wait_group\.sync\.aligned\s+0"),
    "wait for totals dropped": drop(r"wgmma\.wait_group\.sync\.aligned\s+0", 1),
    "last wait for totals dropped": drop(r"wgmma\.wait_group\.sync\.aligned\s+0", -1),
    "commit of scores dropped": drop(r"wgmma\.commit_group", 1),
    "fence in front of powers dropped": drop(r"wgmma\.fence", 1),
    "first scores add to what was there": put(r"setp\.ne\.b32 p, 0, 0;", "setp.ne.b32 p, 1, 0;"),
    "totals start again": put(r"setp\.ne\.b32 p, 1, 0;", "setp.ne.b32 p, 0, 0;", -1),
    "values as if along keys": put(r"(wgmma\.mma_async[^;]*, p, 1, 1, )1;", r"\g<1>0;"),
    "queries of another instruction": put(r"(wgmma\.mma_async[^{]*\{[^}]*\}, \{)%r\d+, (%r\d+)", r"\1\2, \2", 1),
    "wait for a full stage dropped": put(_WAIT, "", 1),
    "wait for a free stage dropped": put(_WAIT, ""),
    "release of a stage dropped": drop(r"mbarrier\.arrive\.shared\.b64", 0),
    "bytes that are expected too few": put(r"(mbarrier\.arrive\.expect_tx\.shared\.b64 [^;]*), %r\d+;", r"\1, 16;"),
    "values copied eight keys further": put(r"(cp\.async\.bulk\.tensor[^\[]*\[%rd\d+)\]", r"\1+1024]", 1),
    "greatest score of half a row": put(r"(shfl\.sync\.bfly\.b32\s+%r\d+, %r\d+), 2,", r"\1, 1,"),
    "results of the next row": put(r"(st\.global\.b32\s+\[%rd\d+)\]", r"\1+64]", 2),
}  # fmt: skip
_PARTS: dict[str, Edit] = {
    "waits for the last copies dropped": put(r"(cp\.async\.wait_group\s+)1", r"\g<1>2", None),
    "barriers in loops dropped": put(r"^\s*bar\.sync\s+0;", "", None),
    "mask of the next key": put(r"(ld\.global\.b8\s+%rs\d+, \[%rd\d+)\]", r"\1+8192]", -1),
    "sums of a part not written": put(r"^\s*(?:@%p\d+ )?st\.global\.v2\.b32[^;]*;", "", -1),
    "results of a part elsewhere": put(r"(st\.global\.v2\.b32\s+\[%rd\d+)\]", r"\1+8]"),
    "sums of another part": put(r"(ld\.global\.b32\s+%r\d+, \[%rd\d+)\]", r"\1+4]", None),
}  # fmt: skip
_ROWS: dict[str, Edit] = {
    "a shuffle of half the distance": put(r"(shfl\.sync\.bfly\.b32\s+%r\d+, %r\d+), 16,", r"\1, 8,"),
    "a shuffle of half the warp": put(r"(shfl\.sync\.bfly\.b32[^;]*), -1;", r"\1, 65535;"),
    "a store at the neighbours' place": put(r"(st\.global\.v4\.b32\s+\[%rd\d+)\]", r"\1+16]"),
    "a load that is not aligned": put(r"(ld\.global\.v4\.b32\s+[^\[]*\[%rd\d+)\]", r"\1+8]"),
    "a load of the next row": put(r"(ld\.global\.v4\.b32\s+[^\[]*\[%rd\d+)\]", r"\1+65536]"),
    "no bound of rows": put(r"^\s*@%p1 bra[^;]*;", ""),
}  # fmt: skip
_TAIL: dict[str, Edit] = {
    "no bound of a row's tail": put(r"^\s*@%p6 bra[^;]*;", "", 0),
    "no bound of a row's tail where it is stored": put(r"^\s*@%p6 bra[^;]*;", "", 1),
}
_SCANS: dict[str, Edit] = {
    "barrier behind sums of warps dropped": drop(r"bar\.sync"),
    "barrier in front of the next part dropped": drop(r"bar\.sync", 1),
    "a shuffle of another distance": put(r"(shfl\.sync\.up\.b32\s+%r\d+, %r\d+), 4,", r"\1, 2,"),
    "sum of a warp at another place": put(r"(st\.shared\.b32\s+\[%rd\d+)\]", r"\1+4]"),
    "every lane writes its warp's sum": put(r"^\s*@%p3 bra[^;]*;", ""),
    "no bound of the line": put(r"^\s*@%p2 bra[^;]*;", "", 1),
}
_PARTIAL: dict[str, Edit] = {
    "barrier in front of the first meeting dropped": drop(r"bar\.sync"),
    "barrier in front of the last meeting dropped": drop(r"bar\.sync", 7),
    "barrier where parts meet dropped": drop(r"bar\.sync", 8),
    "threads that meet a neighbour's neighbour": put(r"(ld\.shared\.b32\s+%r\d+, \[%rd\d+)\+512\]", r"\1+256]"),
    "threads that meet nobody": put(r"(ld\.shared\.b32\s+%r\d+, \[%rd\d+)\+64\]", r"\1]"),
    "all threads meet": put(r"(setp\.gt\.u32\s+%p\d+, %r\d+), 127;", r"\1, 255;"),
    "every thread writes its part": put(r"^\s*@%p9 bra[^;]*;", ""),
    "a part at the next one's place": put(r"(st\.global\.b32\s+\[%rd\d+)\]", r"\1+4]"),
    "a part behind the last one": put(r"(ld\.global\.b32\s+%r\d+, \[%rd\d+)\]", r"\1+64]"),
    "a run of the next rows": put(r"(mul\.wide\.u32\s+%rd\d+, %r\d+), 8192;", r"\1, 16384;"),
    "a read that is not aligned": put(r"(ld\.global\.v4\.b32\s+[^\[]*\[%rd\d+)\]", r"\1+8]"),
}
_FEW: dict[str, Edit] = {
    "search by the end of another group": put(r"(ld\.global\.b32\s+%rd\d+, \[%rd\d+)\+8\]", r"\1]"),
    "search among the wrong half": put(r"setp\.gt(\.u64\s+%p\d+, %rd\d+, %rd\d+;\s*selp\.b64\s+%rd\d+, 0, 2)", r"setp.le\1"),
    "search that ends too early": put(r"(selp\.b64\s+%rd\d+), 1, 0,", r"\1, 0, 0,"),
    "limit of ends at one row less": put(r"(min\.s64\s+%rd\d+, %rd\d+), 6;", r"\1, 1;", None),
    "rows behind the last group multiplied": put(r"setp\.eq\.b64(\s+%p\d+, %rd\d+), 3;", r"setp.eq.b64\1, 4;"),
    "matrices of half the size": put(r"(mad\.lo\.s64\s+%rd\d+, %rd\d+), 20480,", r"\1, 10240,"),
}  # fmt: skip
_GROUPS: dict[str, Edit] = {
    **{name: edit for name, edit in _FEW.items() if name.startswith("search")},
    "tiles of half as many rows": put(r"shr\.u64(\s+%rd\d+, %rd\d+), 7;(\s*add)", r"shr.u64\1, 6;\2"),
    "group of the first tile": put(r"(min\.u64\s+%rd\d+, %rd\d+), 2;", r"\1, 0;"),
    "matrix of the first group": put(r"(min\.u64\s+%rd\d+, %rd\d+), 2;", r"\1, 0;", -1),
    "a group begins where the one before it does": put(r"(ld\.global\.b32\s+%rd\d+, \[%rd\d+\+-)8\]", r"\g<1>16]"),
    "a group begins at the first row": put(r"(selp\.b64\s+%rd\d+), 0, %rd\d+, (%p\d+);", r"\1, 0, 0, \2;"),
    "rows behind the last group multiplied": put(r"(setp\.(?:ne|eq)\.b64\s+%p\d+, %rd\d+), 3;", r"\1, 4;"),
    "no end of a group where results are stored": put(r"setp\.ge(\.u64\s+%p\d+, %rd\d+, %rd\d+;\s*or\.pred)", r"setp.eq\1"),
}  # fmt: skip
# More rows than a tile, few, and rows behind the last group.
_ENDS = (np.array([100, 163, 350]),)
_FEW_ENDS = (np.array([1, 2, 5]),)
_DECODE = decode_attention(4, 2, 32)
_SCALE = (np.linspace(0.5, 2, 256, dtype=np.float32),)
_MASK = (np.arange(300) % 5 != 0,)
_BF16 = ml_dtypes.bfloat16
KERNELS = {
    "product": _Kernel("cuda:sm_80", _product(352), [(70, 352), (352, 40)], _BF16, _RING),
    "hopper": _Kernel("cuda:sm_90a", _product(808), [(70, 808), (808, 40)], _BF16, _HOPPER),
    "float8": _Kernel("cuda:sm_90a+f8", _float8, [(5, 1168), (1168, 24)], ml_dtypes.float8_e4m3fn, _FLOAT8),
    "attention": _Kernel("cuda:sm_80", attention(2, 32), [(1, 2, 130, 32)] * 3, _BF16, _ATTENTION),
    "attention-hopper": _Kernel("cuda:sm_90a", attention(2, 32), [(1, 2, 600, 32)] * 3, _BF16, _WARPGROUPS),
    "decode": _Kernel("cuda:sm_80", _DECODE, [(1, 2, 300, 32), (1, 2, 300, 32), (1, 4, 1, 32)], _BF16, _PARTS, _MASK),
    "grouped": _Kernel("cuda:sm_80", _grouped("n", 96), [(400, 96), (120, 96)], _BF16, _GROUPS, _ENDS),
    "grouped-hopper": _Kernel("cuda:sm_90a", _grouped("n", 96), [(400, 96), (120, 96)], _BF16, _GROUPS, _ENDS),
    "grouped-rows": _Kernel("cuda:sm_80", _grouped(6, 256), [(6, 256), (120, 256)], _BF16, _FEW, _FEW_ENDS),
    "softmax": _Kernel("cuda:sm_80", softmax(300), [(5, 300)], np.float32, _ROWS | _TAIL),
    "rms-norm": _Kernel("cuda:sm_80", rms_norm(256), [(5, 256), (256,)], _BF16, _ROWS),
    "reduction": _Kernel("cuda:sm_80", least(128, 256), [(128, 256)], np.float32, _PARTIAL, _SCALE),
    "scan": _Kernel("cuda:sm_80", _scan, [(2, 300)], np.float32, _SCANS),
}
CASES = [(kernel, bug) for kernel, made in KERNELS.items() for bug in made.bugs]


@dataclass(frozen=True)
class _Made:
    """A kernel's artifact, and what it is to compute."""

    path: Path
    want: np.ndarray


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], _Made]:
    """The kernels, compiled when they are first asked for."""

    @functools.cache
    def made(name: str) -> _Made:
        kernel, builder = KERNELS[name], rx.Builder()
        with builder.function("main"):
            kernel.build(builder)
        module, inputs = builder.build(), kernel.inputs()
        weights = {"w": inputs.pop(1)} if module.functions["main"].weights else None
        (want,) = rx.evaluate(module, "main", *inputs, weights=weights)
        path = tmp_path_factory.mktemp(name) / "m.relax"
        rx.compile(module, kernel.target, device="emulated").save(path)
        return _Made(path, np.asarray(want, np.float32))

    return made


def error_of(made: _Made, kernel: _Kernel, edit: Edit | None, patch: pytest.MonkeyPatch) -> float:
    """How far results of an artifact with edited kernels are off, relative to the largest. Raises RelaxError for a report."""
    if edit is not None:
        ptx = CudaLibrary.ptx
        patch.setattr(CudaLibrary, "ptx", lambda self: edit(ptx(self).decode()).encode())
    executable, inputs = rx.load(made.path, device="emulated"), kernel.inputs()
    if executable.manifest.raw_weights:
        executable.bind(executable.prepare({"w": inputs.pop(1)}))
    error = np.abs(np.asarray(executable(*inputs), np.float32) - made.want).max() / np.abs(made.want).max()
    return float("inf") if np.isnan(error) else float(error)


@pytest.mark.parametrize("name", KERNELS)
def test_good_kernels_give_no_report(name: str, artifacts: Callable[[str], _Made], monkeypatch: pytest.MonkeyPatch) -> None:
    assert error_of(artifacts(name), KERNELS[name], None, monkeypatch) < _TOLERANCE


@pytest.mark.parametrize(("name", "bug"), CASES)
def test_a_planted_bug_is_found(
    name: str, bug: str, artifacts: Callable[[str], _Made], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    made = artifacts(name)
    try:
        error = error_of(made, KERNELS[name], KERNELS[name].bugs[bug], monkeypatch)
    except rx.RelaxError:
        return
    assert error >= _TOLERANCE, "neither a report nor a wrong result"


def test_there_are_enough() -> None:
    assert len(CASES) >= 60
