"""Sums of several words: carries go through the condition code, also past guards and calls."""

from __future__ import annotations

import numpy as np
import pytest

from relaxir.lowering.cuda.emulator import Machine, Options, PtxError

_HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
_N = 64


def _run(lines: str, words: np.ndarray, results: int) -> np.ndarray:
    """Four words of each thread in %r0 to %r3, some results out of %r4, %r5..."""
    loads = "\n".join(f"ld.global.u32 %r{i}, [%d0+{4 * i * _N}];" for i in range(4))
    stores = "\n".join(f"st.global.u32 [%d1+{4 * i * _N}], %r{4 + i};" for i in range(results))
    text = f"""{_HEAD}.visible .entry k(.param .u64 p, .param .u64 q) {{
      .reg .b32 %r<12>; .reg .b64 %d<12>; .reg .pred %p<4>;
      ld.param.u64 %d0, [p]; ld.param.u64 %d1, [q]; mov.u32 %r9, %tid.x; mul.wide.u32 %d2, %r9, 4;
      add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;
      {loads} {lines} {stores} ret; }}"""
    machine = Machine("sm_80", Options())
    out = machine.upload(np.zeros((results, _N), np.uint32))
    machine.run(machine.load(text), "k", [1], [_N], [machine.upload(words), out])
    return machine.download(out, (results, _N), np.uint32)


def _words(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 1 << 32, (4, _N), np.uint64).astype(np.uint32)
    edges = np.array([0, 1, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF], np.uint32)
    chosen = rng.random((4, _N)) < 0.5
    return np.where(chosen, rng.choice(edges, (4, _N)), words)


def _number(low: np.ndarray, high: np.ndarray) -> list[int]:
    return [int(lo) | int(hi) << 32 for lo, hi in zip(low, high, strict=True)]


_SUM = "add.cc.u32 %r4, %r0, %r2; addc.cc.u32 %r5, %r1, %r3; addc.u32 %r6, 0, 0;"
_DIFFERENCE = "sub.cc.u32 %r4, %r0, %r2; subc.cc.u32 %r5, %r1, %r3; subc.u32 %r6, 0, 0;"
_PRODUCT = """mul.lo.u32 %r4, %r0, %r2; mul.hi.u32 %r5, %r0, %r2;
  mad.lo.cc.u32 %r5, %r1, %r2, %r5; madc.hi.u32 %r6, %r1, %r2, 0;
  mad.lo.cc.u32 %r5, %r0, %r3, %r5; madc.hi.cc.u32 %r6, %r0, %r3, %r6; addc.u32 %r7, 0, 0;
  mad.lo.cc.u32 %r6, %r1, %r3, %r6; madc.hi.u32 %r7, %r1, %r3, %r7;"""


@pytest.mark.parametrize(
    ("lines", "results", "exact"),
    [(_SUM, 3, lambda a, b: a + b), (_DIFFERENCE, 3, lambda a, b: a - b), (_PRODUCT, 4, lambda a, b: a * b)],
)
def test_words_together_are_the_exact_number(lines: str, results: int, exact):
    words = _words(results)
    found = _run(lines, words, results)
    pairs = zip(_number(words[0], words[1]), _number(words[2], words[3]), strict=True)
    for thread, (a, b) in enumerate(pairs):
        value = sum(int(found[i, thread]) << 32 * i for i in range(results))
        assert value == exact(a, b) % (1 << 32 * results), (hex(a), hex(b))


def test_results_may_be_operands():
    words = _words(9)
    found = _run("mov.u32 %r4, %r0; mov.u32 %r5, %r1; add.cc.u32 %r4, %r4, %r4; addc.u32 %r5, %r5, %r5;", words, 2)
    assert _number(found[0], found[1]) == [2 * n % (1 << 64) for n in _number(words[0], words[1])]


def test_a_guard_leaves_the_carry_alone():
    lines = """add.cc.u32 %r4, %r0, %r2; setp.eq.u32 %p0, %r9, %r9; @!%p0 add.cc.u32 %r4, 0, 0; addc.u32 %r5, 0, 0;"""
    words = _words(10)
    found = _run(lines, words, 2)
    assert _number(found[0], found[1]) == [int(a) + int(b) for a, b in zip(words[0], words[2], strict=True)]


def test_words_of_64_bits_carry_too():
    lines = """cvt.u64.u32 %d4, %r0; shl.b64 %d4, %d4, 32; cvt.u64.u32 %d5, %r1; shl.b64 %d5, %d5, 32;
      add.cc.u64 %d6, %d4, %d5; addc.u64 %d7, 0, 0; cvt.u32.u64 %r4, %d7;"""
    words = _words(11)
    expected = [int(a) + int(b) >> 32 for a, b in zip(words[0], words[1], strict=True)]
    assert _run(lines, words, 1)[0].tolist() == expected


@pytest.mark.parametrize(
    "line", ["add.cc.f32 %r4, %r0, %r1;", "madc.wide.u32 %d4, %r0, %r1, %d5;", "mul.lo.cc.u32 %r4, %r0, %r1;"]
)
def test_carries_that_ptx_does_not_have_are_refused(line: str):
    with pytest.raises(PtxError, match="unknown"):
        _run(line, _words(0), 1)
