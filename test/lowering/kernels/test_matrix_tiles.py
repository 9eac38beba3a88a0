"""Products by tile registers (Intel AMX): results on sizes around those of registers, on any machine, by emulation."""

from __future__ import annotations

import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.errors import RelaxError
from relaxir.lowering import target as targets
from relaxir.lowering.cpu.codegen import assembly
from relaxir.lowering.cpu.kernels.contraction.check_plan import check_plan
from relaxir.lowering.cpu.kernels.contraction.contraction_plan import parse_plan
from relaxir.lowering.cpu.kernels.contraction.matrix_shape import words_at_once
from relaxir.lowering.cpu.kernels.contraction.plan import plan_contraction
from relaxir.lowering.cpu.kernels.contraction.shape import ContractionShape, MatrixShape
from relaxir.lowering.manifest_specs import TargetSpec
from relaxir.lowering.target import Target
from relaxir.runtime import cpu
from support.emulation import compile_for, generated
from support.integer_products import INTEGER_PIPELINE, Case, module_of
from support.stages import lowered

BF16 = ml_dtypes.bfloat16
NAME = "sapphirerapids"
TARGET = Target.parse(f"cpu:{NAME}")
#: Rows, steps of k and columns: less than a register, one, a line more, two, several of both; steps that are no 16 words.
SIZES = [
    (2, 64, 32),
    (8, 8, 32),
    (9, 64, 31),
    (15, 96, 33),
    (16, 32, 64),
    (17, 100, 40),
    (32, 130, 70),
    (33, 16, 17),
    (49, 64, 96),
    (77, 256, 128),
]


def product(rows: int | str, depth: int, columns: int, bias: bool = True) -> rx.Module:
    builder = rx.Builder()
    with builder.function("main"):
        x, w = builder.input("x", (rows, depth), "bf16"), builder.weight("w", (depth, columns), "bf16")
        y = builder.matmul(x, w, out_dtype="f32")
        builder.output(builder.relu(builder.add(y, builder.weight("b", (columns,), "f32"))) if bias else y)
    return builder.build()


def plans(module: rx.Module, passes: str | None = None) -> str:
    """The plans of contractions, a line each, whatever processor this is."""
    text = str(lowered(module, TARGET, passes, upto="relax-plan-loops"))
    return "\n".join(re.findall(r'relax\.plan = "([^"]*)"', text))


def arrays(depth: int, columns: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"w": rng.standard_normal((depth, columns)).astype(BF16), "b": rng.standard_normal(columns).astype(np.float32)}


def same(executable: rx.Executable, module: rx.Module, x: np.ndarray, weights: dict[str, np.ndarray]) -> None:
    executable.bind(executable.prepare(weights))
    (want,) = rx.evaluate(module, "main", x, weights=weights)
    np.testing.assert_allclose(executable(x), want, rtol=0, atol=2e-6 * np.abs(want).max())


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("checked", [False, True])
def test_bf16(sizes: tuple[int, int, int], checked: bool) -> None:
    rows, depth, columns = sizes
    module, rng = product(*sizes), np.random.default_rng(rows)
    x = rng.standard_normal((rows, depth)).astype(BF16)
    same(compile_for(module, NAME, checked=checked), module, x, arrays(depth, columns, rng))


def test_any_number_of_rows() -> None:
    module, rng = product("m", 96, 70), np.random.default_rng(0)
    executable, weights = compile_for(module, NAME), arrays(96, 70, rng)
    for rows in (1, 7, 8, 9, 24, 31, 32, 63, 97):
        same(executable, module, rng.standard_normal((rows, 96)).astype(BF16), weights)


@pytest.mark.parametrize("rows", [8, 21, 40, "m"])
@pytest.mark.parametrize("activations", ["f32", "bf16"])
def test_bytes_with_scales(rows: int | str, activations: str) -> None:
    """Sums are exact: vectors of another processor give the same, bit by bit."""
    cases = [Case("i8", rows, 50, 128, activations=activations), Case("ui8", rows, 33, 96, zero=7, activations=activations)]
    module, weights = module_of(cases)
    held, rng, made = {k: v for own in weights.values() for k, v in own.items()}, np.random.default_rng(1), []
    for name in (NAME, "znver4"):
        executable = compile_for(module, name, INTEGER_PIPELINE)
        made.append(executable.bind(executable.prepare(held)))
    assert "matrix=" in plans(module, INTEGER_PIPELINE)
    for entry, case in zip(weights, cases, strict=True):
        for count in (3, 8, 33) if rows == "m" else (rows,):
            x = rng.standard_normal((count, case.k)).astype(numpy_dtype(activations))
            got, want = (np.asarray(e(x, entry=entry)) for e in made)
            np.testing.assert_array_equal(got, want)


#: Images and strides; rows of a register are a line, a half, or a fifth of one; of 17 there is none, and 3 are too few.
LINES = [
    ((14, 14), 1, 14),
    ((7, 7), 1, 7),
    ((9, 40), 2, 10),
    ((28, 28), 2, 14),
    ((5, 35), 1, 7),
    ((5, 17), 1, 0),
    ((9, 6), 2, 0),
]


@pytest.mark.parametrize(("image", "stride", "line"), LINES)
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("dtype", ["i8", "ui8"])
def test_images(image: tuple[int, int], stride: int, line: int, window: int, dtype: str) -> None:
    rng, pad, channels = np.random.default_rng(window), window // 2, 16
    filters = rng.integers(-128, 128, (window, window, channels, 40)).astype(np.int8)
    data = rng.integers(0, 100, (1, *image, channels)).astype(numpy_dtype(dtype))
    builder = rx.Builder()
    with builder.function("main"):
        x, w = builder.input("x", data.shape, dtype), builder.weight("w", filters.shape, "i8")
        zero, layouts = builder.constant(np.array(3, numpy_dtype(dtype))), {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        builder.output(builder.quantized_conv2d(x, w, zero, strides=[stride] * 2, padding=[pad] * 4, **layouts))
    module = builder.build()
    executable = compile_for(module, NAME)
    executable.bind(executable.prepare({"w": filters}))
    (want,) = rx.evaluate(module, "main", data, weights={"w": filters})
    np.testing.assert_array_equal(executable(data), want)
    found = re.findall(r"matrix=\d+x\d+:\d+(?::(\d+))?", plans(module))
    if window == 3 or stride == 2:
        assert found == ([str(line)] if line else [])
    else:
        assert found == [""]


def test_the_loop_is_loads_and_products_of_tiles() -> None:
    """Registers are told what they hold, and freed, around all tiles; two are for the other thread of the core."""
    text = assembly(generated(product(64, 128, 32, bias=False), NAME), TARGET)
    kinds = re.findall(r"^\t(tile\w+|tdp\w+|ldtilecfg)", text, re.M)
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "ldtilecfg": 1, "tilezero": 4, "tileloadd": 5, "tdpbf16ps": 4, "tilestored": 4, "tilerelease": 1
    }  # fmt: skip
    assert len(set(re.findall(r"%tmm\d", text))) == 6


@pytest.mark.parametrize(
    ("words", "found"), [(16, 16), (24, 12), (17, 0), (7, 7), (3, 0), (0, 0), (48, 16), (50, 10), (34, 0), (36, 12)]
)
def test_words_of_an_instruction(words: int, found: int) -> None:
    assert words_at_once(words) == found


SHAPE = ContractionShape(64, 64, 128, dot_panel=32, matrix=MatrixShape(32, 64, "llvm.x86.tdpbf16ps"))
LINE = replace(SHAPE, rows=196, matrix=replace(SHAPE.matrix, line=14))


@pytest.mark.parametrize(
    ("shape", "matrix", "message"),
    [
        (SHAPE, "32x15:8", "tiles of whole registers and steps"),
        (SHAPE, "34x16:8", "tiles of whole registers and steps"),
        (SHAPE, "32x16:10", "tiles of whole registers and steps"),
        (SHAPE, "28x16:14:14", "registers inside of lines"),
        (LINE, "32x16:8", "registers inside of lines"),
        (LINE, "24x16:12:12", "registers inside of lines"),
        (replace(SHAPE, matrix=None), "32x16:8", "no matrix, as tile registers multiply no such factors"),
    ],
)
def test_plans_that_do_not_fit(shape: ContractionShape, matrix: str, message: str) -> None:
    good = plan_contraction(shape, TARGET)
    check_plan(good, shape, TARGET)
    plan = parse_plan(re.sub(r"( matrix=\S+)?$", f" matrix={matrix}", str(good), count=1))
    with pytest.raises(RelaxError, match=message):
        check_plan(plan, shape, TARGET)


def test_a_system_that_gives_no_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """They count as not there, and code for them is refused."""
    monkeypatch.setattr(targets, "may_use_tiles", lambda: False)
    monkeypatch.setattr(cpu, "may_use_tiles", lambda: False)
    assert not Target.host.__wrapped__().has("amx-tile", "amx-int8", "amx-bf16")
    spec = TargetSpec(TARGET.triple, TARGET.cpu, TARGET.features, False)
    with pytest.raises(RelaxError, match=r"here: expected a processor and a system that give this process tile registers"):
        cpu.check_target(spec, "here")
