"""Each family of instructions in a few lines of PTX, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaxir.lowering.cuda.emulator import PtxError
from support.ptx import execute, kernel

X = np.random.default_rng(3).integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32)
X[:8] = [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 31, 255, 0x12345678]
T = np.arange(64, dtype=np.uint32)
S = X.view(np.int32)
WIDE, SWIDE = X.astype(np.uint64), S.astype(np.int64)
#: Floats with zeros of both signs, subnormal and large ones, and what is no number.
F = np.random.default_rng(4).standard_normal(64).astype(np.float32) * np.float32(10) ** np.random.default_rng(5).integers(
    -9, 9, 64
)
F[:10] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3.4e38, 2.5, -2.5]
F = F.astype(np.float32)
G = np.roll(F, 7)


def swapped(x: Any) -> Any:
    return x.reshape(-1, 2)[:, ::-1].reshape(-1)


INTEGERS = {
    "add.u32 %r3, %r2, %r1;": X + T,
    "sub.s32 %r3, %r2, 7;": X - np.uint32(7),
    "add.sat.s32 %r3, %r2, %r2;": np.clip(2 * SWIDE, -(2**31), 2**31 - 1),
    "sub.sat.s32 %r3, %r1, %r2;": np.clip(T.astype(np.int64) - SWIDE, -(2**31), 2**31 - 1),
    "mul.lo.u32 %r3, %r2, %r2;": X * X,
    "mul.hi.u32 %r3, %r2, %r2;": WIDE * WIDE >> np.uint64(32),
    "mul.hi.s32 %r3, %r2, %r2;": SWIDE * SWIDE >> 32,
    "mul.wide.s32 %d6, %r2, %r2; shr.u64 %d7, %d6, 16; cvt.u32.u64 %r3, %d7;": SWIDE * SWIDE >> 16,
    "mad.lo.s32 %r3, %r2, %r1, 5;": X * T + np.uint32(5),
    "mad.wide.u32 %d6, %r2, %r2, 9; shr.u64 %d7, %d6, 32; cvt.u32.u64 %r3, %d7;": WIDE * WIDE + np.uint64(9) >> np.uint64(32),
    "mad.hi.u32 %r3, %r2, %r2, 1;": (WIDE * WIDE >> np.uint64(32)) + np.uint64(1),
    "cvt.u64.u32 %d6, %r2; mul.hi.u64 %d7, %d6, 0xFFFFFFFFFFFFFFFF; cvt.u32.u64 %r3, %d7;": np.where(
        X == 0, 0, X - np.uint32(1)
    ),
    "cvt.s64.s32 %d6, %r2; shl.b64 %d6, %d6, 20; mul.hi.s64 %d7, %d6, %d6; cvt.u32.u64 %r3, %d7;": [
        int(x) ** 2 << 40 >> 64 for x in S
    ],
    "mul24.lo.u32 %r3, %r2, %r2;": (X & np.uint32(0xFFFFFF)) ** 2,
    "div.u32 %r3, %r2, 7;": X // np.uint32(7),
    "div.s32 %r3, %r2, 7;": np.trunc(SWIDE / 7),
    "rem.s32 %r3, %r2, 7;": np.fmod(SWIDE, 7),
    "rem.u32 %r3, %r2, 1000;": X % np.uint32(1000),
    "sad.u32 %r3, %r2, %r1, 1;": np.abs(X.astype(np.int64) - T) + 1,
    "abs.s32 %r3, %r2;": np.abs(S),
    "neg.s32 %r3, %r2;": -SWIDE,
    "min.s32 %r3, %r2, 5;": np.minimum(S, 5),
    "max.u32 %r3, %r2, 5;": np.maximum(X, 5),
    "and.b32 %r3, %r2, 0xFF;": X & np.uint32(255),
    "not.b32 %r3, %r2;": ~X,
    "cnot.b32 %r3, %r2;": X == 0,
    "shl.b32 %r3, %r2, %r1;": np.where(T < 32, X << (T & np.uint32(31)), 0),
    "shr.s32 %r3, %r2, %r1;": S >> np.minimum(T, 31).astype(np.int32),
    "shr.u32 %r3, %r2, 40;": 0 * X,
    "shf.l.wrap.b32 %r3, %r2, %r1, 8;": (WIDE >> np.uint64(24)) | (T.astype(np.uint64) << np.uint64(8)),
    "shf.r.clamp.b32 %r3, %r2, %r1, 40;": T,
    "lop3.b32 %r3, %r2, %r1, 255, 0x96;": X ^ T ^ np.uint32(255),
    "prmt.b32 %r3, %r2, %r1, 0x4321;": (X >> np.uint32(8)) | (T << np.uint32(24)),
    "prmt.b32 %r3, %r2, %r1, 0x888B;": np.where(S < 0, 0xFF, 0) | np.where(X & 0x80, 0xFFFFFF00, 0),
    "prmt.b32.rc16 %r3, %r2, %r1, 1;": (X >> np.uint32(16)) * np.uint32(65537),
    "bfe.s32 %r3, %r2, 5, 7;": ((SWIDE >> 5 & 127) ^ 64) - 64,
    "bfe.u32 %r3, %r2, 28, 9;": X >> np.uint32(28),
    "bfi.b32 %r3, %r1, %r2, 8, 6;": (X & ~np.uint32(63 << 8)) | (T & np.uint32(63)) << np.uint32(8),
    "popc.b32 %r3, %r2;": [bin(x).count("1") for x in X],
    "clz.b32 %r3, %r2;": [32 - int(x).bit_length() for x in X],
    "bfind.u32 %r3, %r2;": [int(x).bit_length() - 1 for x in X],
    "brev.b32 %r3, %r2;": [int(f"{x:032b}"[::-1], 2) for x in X],
    "bmsk.clamp.b32 %r3, %r1, 4;": [(15 << int(t) if t < 32 else 0) & 0xFFFFFFFF for t in T],
    "szext.wrap.s32 %r3, %r2, 9;": ((SWIDE & 511) ^ 256) - 256,
    "dp4a.s32.s32 %r3, %r2, %r2, 5;": (X.view(np.int8).reshape(-1, 4).astype(np.int64) ** 2).sum(1) + 5,
    "dp2a.hi.s32.u32 %r3, %r2, %r2, 0;": (
        X.view(np.int16).reshape(-1, 2) * X.view(np.uint8).reshape(-1, 4)[:, 2:].astype(np.int64)
    ).sum(1),
    "setp.lt.s32 %p1, %r2, 100; selp.b32 %r3, 1, %r1, %p1;": np.where(S < 100, 1, T),
    "setp.hi.u32 %p1|%p2, %r2, 100; selp.b32 %r3, 1, 2, %p2;": np.where(X > 100, 2, 1),
    "setp.gt.and.u32 %p1, %r1, 9, 1; selp.b32 %r3, 1, 2, %p1;": np.where(T > 9, 1, 2),
    "set.lt.u32.s32 %r3, %r2, 0;": np.where(S < 0, 0xFFFFFFFF, 0),
    "slct.b32.s32 %r3, 7, %r1, %r2;": np.where(S >= 0, 7, T),
    "cvt.u8.u32 %h1, %r2; cvt.u32.u16 %r3, %h1;": X & np.uint32(255),
    "cvt.s8.s32 %h1, %r2; cvt.s32.s16 %r3, %h1;": X.view(np.int8)[::4].astype(np.int32),
    "cvt.sat.u8.s32 %r3, %r2;": np.clip(S, 0, 255),
    "cvt.pack.sat.s8.s32.b32 %r3, %r2, %r1, 0x1234;": 0x12340000 | (np.clip(S, -128, 127) & 255) << 8 | T,
    "mov.b32 {%h1, %h2}, %r2; mov.b32 %r3, {%h2, %h1};": (X >> np.uint32(16)) | (X << np.uint32(16)),
    "mov.b64 %d6, {%r2, %r1}; mov.b64 {%r4, %r3}, %d6;": T,
    "mov.b32 %r4, %r2; mov.b32 %r5, %r4; add.u32 %r4, %r4, 1; sub.u32 %r3, %r4, %r5;": 0 * X + np.uint32(1),
    "min.s16x2 %r3, %r2, 0;": np.minimum(X.view(np.int16), 0).view(np.uint32),
}


@pytest.mark.parametrize("body", INTEGERS)
def test_integers(body: str) -> None:
    got, wanted = execute(kernel(body), X), np.asarray(INTEGERS[body])
    assert (
        (got == wanted.astype(np.int64).astype(np.uint32)).all()
        if wanted.dtype != object
        else [int(w) & 0xFFFFFFFF for w in wanted] == got.tolist()
    )


def bf16(x: Any) -> Any:
    bits = np.asarray(x, np.float32).view(np.uint32)
    return np.where(np.isnan(x), 0x7FFF, (bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint32)


def exactly(function: Any) -> Any:
    """A function of Python floats, which are f64, once rounded to f32."""
    return np.array([np.float32(function(float(a), float(b))) for a, b in zip(F, G, strict=True)])


with np.errstate(all="ignore"):
    FLOATS = {
        "add.rn.f32 %r3, %r2, %r4;": F + G,
        "sub.f32 %r3, %r2, %r4;": F - G,
        "mul.rn.f32 %r3, %r2, %r4;": F * G,
        "div.rn.f32 %r3, %r2, %r4;": F / G,
        "fma.rn.f32 %r3, %r2, %r4, %r2;": exactly(lambda a, b: a * b + a),
        "neg.f32 %r3, %r2;": -F,
        "abs.f32 %r3, %r2;": np.abs(F),
        "min.f32 %r3, %r2, %r4;": np.fmin(F, G),
        "max.NaN.f32 %r3, %r2, %r4;": np.maximum(F, G),
        "sqrt.rn.f32 %r3, %r2;": np.sqrt(F),
        "rcp.rn.f32 %r3, %r2;": 1 / F,
        "copysign.f32 %r3, %r2, %r4;": np.copysign(G, F),
        "add.sat.f32 %r3, %r2, %r4;": np.where(np.isnan(F + G), 0, np.clip(F + G, 0, 1)),
        "add.ftz.f32 %r3, %r2, 0f00000000;": np.where(np.abs(F) < 2.0**-126, 0, F),
        "cvt.rni.f32.f32 %r3, %r2;": np.rint(F),
        "cvt.rzi.f32.f32 %r3, %r2;": np.trunc(F),
        "cvt.f64.f32 %q1, %r2; mul.rn.f64 %q3, %q1, %q1; cvt.rn.f32.f64 %r3, %q3;": (F.astype(float) ** 2).astype(np.float32),
        "cvt.f64.f32 %q1, %r2; div.rn.f64 %q3, %q1, 3.0; cvt.rn.f32.f64 %r3, %q3;": (F.astype(float) / 3).astype(np.float32),
        "cvt.rn.f16.f32 %h1, %r2; cvt.f32.f16 %r3, %h1;": F.astype(np.float16).astype(np.float32),
        "cvt.rn.f16.f32 %h1, %r2; fma.rn.f16 %h2, %h1, %h1, %h1; cvt.f32.f16 %r3, %h2;": (
            F.astype(np.float16).astype(float) ** 2 + F.astype(np.float16).astype(float)
        ).astype(np.float16).astype(np.float32),
        "setp.ltu.f32 %p1, %r2, %r4; selp.f32 %r3, 0f3F800000, %r2, %p1;": np.where(~(F >= G), 1, F),
        "setp.ne.f32 %p1, %r2, %r2; selp.f32 %r3, 0f3F800000, 0f40000000, %p1;": np.full(64, 2, np.float32),
        "testp.subnormal.f32 %p1, %r2; selp.f32 %r3, 0f3F800000, %r2, %p1;": np.where((F != 0) & (np.abs(F) < 2.0**-126), 1, F),
    }  # fmt: skip
    APPROXIMATE = {
        "ex2.approx.f32 %r3, %r2;": np.exp2(F.astype(float)),
        "lg2.approx.f32 %r3, %r2;": np.log2(F.astype(float)),
        "rsqrt.approx.f32 %r3, %r2;": 1 / np.sqrt(F.astype(float)),
        "sin.approx.f32 %r3, %r2;": np.sin(F.astype(float)),
        "tanh.approx.f32 %r3, %r2;": np.tanh(F.astype(float)),
        "div.full.f32 %r3, %r2, %r4;": F.astype(float) / G,
        "cvt.rn.bf16.f32 %h1, %r2; cvt.f32.bf16 %r3, %h1;": (bf16(F) << 16).view(np.float32),
    }


def same_number(got: Any, wanted: Any) -> Any:
    """Equal bits; what is no number is one kind."""
    got, wanted = got.view(np.float32), np.asarray(wanted, np.float32)
    return (got.view(np.uint32) == wanted.view(np.uint32)) | (np.isnan(got) & np.isnan(wanted))


def with_second(body: str) -> str:
    """F in %r2 and G in %r4."""
    return kernel(
        f"add.u32 %r5, %r1, 57; and.b32 %r5, %r5, 63; mul.wide.u32 %d8, %r5, 4; add.s64 %d9, %d1, %d8; "
        f"ld.global.b32 %r4, [%d9]; {body}"
    )


@pytest.mark.parametrize("body", FLOATS)
def test_floats(body: str) -> None:
    assert same_number(execute(with_second(body), F), FLOATS[body]).all()


@pytest.mark.parametrize("body", APPROXIMATE)
@np.errstate(all="ignore")
def test_approximate_floats(body: str) -> None:
    """Numbers in f64, rounded to f32: the emulator is off by the few units of NumPy's functions."""
    got = execute(with_second(body), F).view(np.float32)
    np.testing.assert_allclose(got, np.asarray(APPROXIMATE[body], np.float32), rtol=1e-6, atol=1e-6 if "sin" in body else 0)


@pytest.mark.parametrize(("mode", "side"), [("rz", 0), ("rm", -np.inf), ("rp", np.inf)])
@pytest.mark.parametrize("name", ["add", "mul", "div", "fma"])
def test_directed_rounding(name: str, mode: str, side: float) -> None:
    """The number next to the exact one in that direction, by fractions."""
    from fractions import Fraction

    text = f"{name}.{mode}.f32 %r3, %r2, %r4{', %r2' if name == 'fma' else ''};"
    got = execute(with_second(text), F).view(np.float32)
    for a, b, result in zip(F, G, got, strict=True):
        if not (np.isfinite(a) and np.isfinite(b)) or (name == "div" and b == 0):
            continue
        x, y = Fraction(float(a)), Fraction(float(b))
        exact = {"add": x + y, "mul": x * y, "div": x / (y or 1), "fma": x * y + x}[name]
        if abs(exact) > Fraction(float(np.finfo(np.float32).max)):
            continue
        found = Fraction(float(result))
        assert abs(found) <= abs(exact) if mode == "rz" else (found <= exact if side < 0 else found >= exact), (a, b, result)
        outwards = (np.inf if exact > 0 else -np.inf) if mode == "rz" else -side
        away = Fraction(float(np.nextafter(result, np.float32(outwards))))
        assert found == exact or (found < exact < away) or (away < exact < found), (a, b, result)


@pytest.mark.parametrize("kind", ["s32", "u32", "s16", "u8"])
@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
def test_float_to_integer_stays_at_the_ends(kind: str, mode: str) -> None:
    got = execute(kernel(f"cvt.{mode}.{kind}.f32 %r3, %r2;"), F)
    whole = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[mode](F.astype(float))
    limits = np.iinfo(f"{'int' if kind[0] == 's' else 'uint'}{kind[1:]}")
    wanted = np.where(np.isnan(whole), 0, np.clip(whole, limits.min, limits.max)).astype(np.int64)
    assert (got == wanted.astype(np.uint32)).all()


def test_pairs() -> None:
    text = "cvt.rn.f32.u32 %f2, %r1; cvt.rn.bf16x2.f32 %r4, %f2, %f2; fma.rn.bf16x2 %r3, %r4, %r4, %r4;"
    assert (execute(kernel(text), X) == bf16((T * T + T).astype(np.float32)) * 65537).all()
    text = "cvt.rn.f32.u32 %f2, %r1; cvt.rn.f16x2.f32 %r4, %f2, 0f3F800000; add.rn.f16x2 %r3, %r4, %r4;"
    halves = np.stack([np.full(64, 2), 2 * T], 1).astype(np.float16)
    assert (execute(kernel(text), X) == halves.view(np.uint32).reshape(-1)).all()


def test_f8_pairs() -> None:
    """Saturation, the first operand in the upper half, and back."""
    text = (
        "cvt.rn.f32.u32 %f2, %r1; mul.f32 %f3, %f2, 0f41200000; cvt.rn.satfinite.e4m3x2.f32 %h1, %f3, %f2; "
        "cvt.rn.f16x2.e4m3x2 %r3, %h1;"
    )
    import ml_dtypes

    low, high = (
        np.minimum(v, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float16) for v in (T.astype(np.float32), 10.0 * T)
    )
    assert (execute(kernel(text), X) == np.stack([low, high], 1).view(np.uint32).reshape(-1)).all()


CONTROL = {
    "divergent loop": (
        """mov.b32 %r3, 0; mov.b32 %r6, 0;
L1: setp.ge.u32 %p1, %r6, %r1;
    @%p1 bra L2;
    add.s32 %r3, %r3, %r6;
    add.s32 %r6, %r6, 1;
    bra L1;
L2:""",
        T * (T - 1) // 2,
    ),
    "branches that meet": (
        """and.b32 %r4, %r1, 1; setp.eq.u32 %p1, %r4, 0;
    @%p1 bra EVEN;
    add.u32 %r5, %r2, 1;
    bra.uni DONE;
EVEN: mov.b32 %r5, 9;
DONE: add.u32 %r3, %r5, 1;""",
        np.where(T % 2 == 0, 10, X + np.uint32(2)),
    ),
    "guards": ("mov.b32 %r3, 1; setp.lt.u32 %p1, %r1, 9; @%p1 add.u32 %r3, %r2, %r3; "
        "@!%p1 mov.b32 %r3, 5;", np.where(T < 9, X + np.uint32(1), 5)),
    "swap in a block": ("mov.b32 %r4, %r1; mov.b32 %r5, %r2; mov.b32 %r6, %r4; mov.b32 %r4, %r5; mov.b32 %r5, %r6; "
        "sub.u32 %r3, %r4, %r5;", X - T),
    "predicates": ("setp.lt.u32 %p1, %r1, 9; mov.pred %p2, %p1; not.pred %p1, %p1; xor.pred %p3, %p1, %p2; "
        "selp.b32 %r3, %r1, 0, %p3;", T),
    "values across a loop": (
        """mov.b32 %r4, %r1; mov.b32 %r5, 1; mov.b32 %r6, 0;
L: mov.b32 %r7, %r4; mov.b32 %r4, %r5; mov.b32 %r5, %r7;
   add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 3; @%p1 bra L;
   shl.b32 %r8, %r4, 8; or.b32 %r3, %r8, %r5;""",
        256 + T,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTROL)
def test_control_flow(name: str) -> None:
    body, wanted = CONTROL[name]
    assert (execute(kernel(body), X) == wanted).all()


SHARED = ".shared .align 16 .b8 buf[2048]; .shared .align 8 .b64 bar[2];"
MEMORY = {
    "shared": ("mov.b64 %d6, buf; add.s64 %d7, %d6, %d3; st.shared.b32 [%d7], %r2; xor.b32 %r5, %r1, 33; "
        "mul.wide.u32 %d8, %r5, 4; "
               "add.s64 %d9, %d6, %d8; bar.sync 0; ld.shared.b32 %r3, [%d9];", X[(T ^ 33)]),
    "generic": ("mov.b64 %d6, buf; cvta.shared.u64 %d6, %d6; add.s64 %d7, %d6, %d3; st.b32 [%d7], %r2; ld.b32 %r3, [%d7];", X),
    "vectors": ("mov.b64 %d6, buf; shl.b64 %d7, %d3, 2; add.s64 %d8, %d6, %d7; st.shared.v4.b32 [%d8], {%r2, %r1, 7, %r2}; "
                "ld.shared.v2.b32 {%r4, %r5}, [%d8]; ld.shared.b32 %r6, [%d8+8]; add.u32 %r7, %r4, %r5; "
                    "add.u32 %r3, %r7, %r6;", X + T + np.uint32(7)),
    "bytes": ("mov.b64 %d6, buf; add.s64 %d7, %d6, %d3; st.shared.u8 [%d7], %r2; st.shared.u8 [%d7+1], 200; "
        "ld.shared.s8 %r4, [%d7+1]; "
              "ld.shared.u8 %r5, [%d7]; add.s32 %r3, %r4, %r5;", (X & np.uint32(255)) - np.uint32(56)),
    "atomics": ("setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.b32 [buf], 0; bar.sync 0; "
        "atom.shared.add.u32 %r4, [buf], %r1; bar.sync 0; "
                "ld.shared.b32 %r3, [buf];", np.full(64, T.sum())),
    "compare and swap": ("mov.b64 %d6, buf; add.s64 %d7, %d6, %d3; st.shared.b32 [%d7], %r1; "
        "atom.shared.cas.b32 %r4, [%d7], 5, %r2; "
                         "ld.shared.b32 %r3, [%d7];", np.where(T == 5, X, T)),
    "global atomics": ("red.global.max.u32 [%d5], %r2; ld.global.b32 %r3, [%d5];", X),
}  # fmt: skip


@pytest.mark.parametrize("name", MEMORY)
def test_memory(name: str) -> None:
    body, wanted = MEMORY[name]
    body = f"st.global.b32 [%d5], 0; {body}" if name == "global atomics" else body
    assert (execute(kernel(body, SHARED), X) == wanted).all()


def test_local_memory() -> None:
    body = """mov.b64 %d6, loc; and.b32 %r5, %r1, 3; mul.wide.u32 %d7, %r5, 4; add.s64 %d8, %d6, %d7;
    st.local.b32 [%d8], %r2; cvta.local.u64 %d9, %d8; ld.b32 %r3, [%d9];"""
    assert (execute(kernel(body, ".local .align 16 .b8 loc[16];"), X) == X).all()


FUNCTIONS = """.func (.param .b32 result) twice(.param .b32 number, .param .align 4 .b8 more[8]) {
  .reg .b32 %r<4>; .reg .pred %p<2>;
  ld.param.b32 %r1, [number]; ld.param.b32 %r2, [more+4];
  setp.gt.u32 %p1, %r1, 40;
  st.param.b32 [result], %r2;
  @%p1 ret;
  add.u32 %r3, %r1, %r1; st.param.b32 [result], %r3;
  ret;
}
.func (.param .b32 result) outer(.param .b32 number) {
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [number];
  { .param .b32 a; .param .align 4 .b8 b[8]; .param .b32 c;
    st.param.b32 [a], %r1; st.param.b32 [b], 1; st.param.b32 [b+4], 77; call.uni (c), twice, (a, b); ld.param.b32 %r2, [c]; }
  add.u32 %r3, %r2, 1; st.param.b32 [result], %r3;
  ret;
}
"""
CALL = "{ .param .b32 a; .param .b32 c; st.param.b32 [a], %r1; call.uni (c), outer, (a); ld.param.b32 %r3, [c]; }"


def test_calls_of_functions() -> None:
    """Calls of calls, with returns in the middle and arguments in memory; twice, so that names are each call's own."""
    body = f"{CALL} mov.b32 %r6, %r3; {CALL} add.u32 %r3, %r3, %r6;"
    assert (execute(kernel(body, functions=FUNCTIONS), X) == 2 * np.where(T > 40, 78, 2 * T + 1)).all()


def test_recursion_is_refused() -> None:
    with pytest.raises(PtxError, match="expected no recursion, got a call of 'outer'"):
        execute(kernel(CALL, functions=FUNCTIONS.replace("twice, (a, b)", "outer, (a)").replace(".param .align 4 .b8 b[8];", "")
                       .replace("st.param.b32 [b], 1; st.param.b32 [b+4], 77;", "")), X)  # fmt: skip


GLOBALS = ".global .align 4 .b32 table[3] = {5, 0x10, 7};\n.const .align 4 .f32 half = 0f3F000000;"


def test_variables_of_the_module() -> None:
    body = (
        "rem.u32 %r4, %r1, 3; mul.wide.u32 %d6, %r4, 4; mov.b64 %d7, table; add.s64 %d8, %d7, %d6; "
        "ld.global.b32 %r3, [%d8]; ld.const.b32 %r5, [half]; add.u32 %r3, %r3, %r5;"
    )
    assert (execute(kernel(body, functions=GLOBALS), X) == np.array([5, 16, 7])[T % 3] + 0x3F000000).all()


WARPS = {
    "vote.ballot": ("and.b32 %r4, %r2, 1; setp.eq.u32 %p1, %r4, 1; vote.sync.ballot.b32 %r3, %p1, -1;",
                    (((X & 1).reshape(2, 32) << np.arange(32, dtype=np.uint32)).sum(1)).repeat(32)),
    "vote.all": ("setp.lt.u32 %p1, %r1, 32; vote.sync.all.pred %p2, %p1, -1; selp.b32 %r3, 1, 0, %p2;", T < 32),
    "redux": ("redux.sync.max.u32 %r3, %r2, -1;", X.reshape(2, 32).max(1).repeat(32)),
    "elect": ("mov.b32 %r3, 0; elect.sync _|%p1, -1; @%p1 mov.b32 %r3, 1;", T % 32 == 0),
    "match.any": ("and.b32 %r4, %r1, 1; match.any.sync.b32 %r3, %r4, -1;", np.where(T % 2, 0xAAAAAAAA, 0x55555555)),
    "shfl.up": ("shfl.sync.up.b32 %r3|%p1, %r2, 1, 0, -1;", X[np.where(T % 32 == 0, T, T - np.uint32(1))]),
    "shfl.down of 16": ("shfl.sync.down.b32 %r3|%p1, %r2, 2, 0x101f, -1;", X[np.where(T % 16 > 13, T, T + np.uint32(2))]),
    "shfl.idx": ("shfl.sync.idx.b32 %r3, %r2, 5, 31, -1;", X[T // 32 * 32 + 5]),
    "shfl of half a warp": ("mov.b32 %r3, 0; and.b32 %r4, %r1, 16; setp.ne.u32 %p1, %r4, 0; @%p1 bra E;\n"
        "shfl.sync.bfly.b32 %r3, %r2, 1, 31, 0xFFFF;\nE:",
                            np.where(T & 16, 0, X[T ^ 1])),
    "bar.red": ("and.b32 %r4, %r1, 3; setp.eq.u32 %p1, %r4, 0; bar.red.popc.u32 %r3, 0, %p1;", np.full(64, 16)),
    "named barriers": ("setp.lt.u32 %p1, %r1, 32; mov.b64 %d6, buf; add.s64 %d7, %d6, %d3; mov.b32 %r3, 9; @%p1 bra P;\n"
                       "bar.sync 1, 64; ld.shared.b32 %r3, [%d7+-128]; bra E;\nP: st.shared.b32 [%d7], %r2; "
                           "bar.arrive 1, 64;\nE:",
                       np.where(T < 32, 9, X[T % 32])),
    "lane masks": ("mov.u32 %r4, %lanemask_lt; mov.u32 %r5, %laneid; popc.b32 %r6, %r4; sub.u32 %r3, %r6, %r5;", 0 * T),
}  # fmt: skip


@pytest.mark.parametrize("name", WARPS)
def test_warps(name: str) -> None:
    body, wanted = WARPS[name]
    assert (execute(kernel(body, SHARED), X) == wanted).all()


def test_blocks_and_grids() -> None:
    """Three dimensions, in several waves."""
    from relaxir.lowering.cuda.emulator import Machine, Options

    text = """.version 7.0
.target sm_80
.address_size 64
.entry where(.param .u64 out) {
  .reg .b32 %r<20>; .reg .b64 %d<4>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z; mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y;
  mad.lo.s32 %r6, %r3, %r5, %r2; mad.lo.s32 %r7, %r6, %r4, %r1;
  mov.u32 %r8, %tid.x; mov.u32 %r9, %tid.y; mov.u32 %r10, %ntid.x; mov.u32 %r11, %ntid.y;
  mad.lo.s32 %r12, %r9, %r10, %r8; mul.lo.s32 %r13, %r10, %r11; mad.lo.s32 %r14, %r7, %r13, %r12;
  ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r14, 4; add.s64 %d3, %d1, %d2; st.global.b32 [%d3], %r14;
  ret;
}"""
    machine = Machine("sm_80", Options(lanes=128), memory=1 << 20)
    out = machine.memory.allocate(4 * 3 * 2 * 2 * 30)
    machine.run(machine.load(text), "where", (3, 2, 2), (10, 3), [out])
    assert (machine.download(out, 360, np.uint32) == np.arange(360)).all()
