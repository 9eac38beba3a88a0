"""Products of bf16 by instructions that sum pairs: what the loop over k consists of, and results by emulation."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.compiler import default_pipeline
from relaxir.lowering.cpu.codegen import assembly
from relaxir.lowering.target import TARGETS, Target
from support.contractions import SMALL_BLOCKS, tune
from support.emulation import compile_for, generated

BF16 = ml_dtypes.bfloat16
#: Targets and their instruction.
DOTS = {name: "vdpbf16ps" for name in ("znver4", "znver5", "sapphirerapids")} | {"neoverse-v1": "bfdot"}


def product(*sizes: tuple[int | str, int, int]) -> rx.Module:
    """A function ``f0``, ``f1``... for each of the sizes m, k and n, with a weight of that name."""
    builder = rx.Builder()
    for number, (m, k, n) in enumerate(sizes):
        with builder.function(f"f{number}"):
            x, w = builder.input("x", (m, k), "bf16"), builder.weight(f"f{number}", (k, n), "bf16")
            builder.output(builder.matmul(x, w, out_dtype="f32"))
    return builder.build()


def loops(text: str, instruction: str) -> list[list[str]]:
    """The innermost loops of an assembly text that have the instruction."""
    lines, labels, found = text.split("\n"), dict[str, int](), list[list[str]]()
    for number, line in enumerate(lines):
        if label := re.match(r"(\.L\w+):", line):
            labels[label[1]] = number
        jump = re.match(r"\t(?:j\w+|b\.\w+|cb\w+|tb\w+)\s.*?(\.L\w+)", line)
        begin = labels.get(jump[1]) if jump else None
        if begin is None or any(begin < at < number for at in labels.values()):
            continue
        body = [text.split("#")[0].strip() for text in lines[begin:number] if re.match(r"\t[a-z]", text)]
        if any(line.startswith(instruction) for line in body):
            found.append(body)
    return found


# test_matrix_tiles.py has tile registers.
@pytest.mark.parametrize("name", [name for name in DOTS if name != "sapphirerapids"])
def test_a_tile_is_dot_products_and_loads(name: str) -> None:
    target = Target.parse(f"cpu:{name}")
    rows, columns = target.matmul_tile
    vectors = columns // target.lanes()
    (body,) = loops(assembly(generated(product((rows, 128, columns)), name), target), DOTS[name])
    kinds = [line.split()[0] for line in body]
    dots = kinds.count(DOTS[name])
    pairs = dots // (rows * vectors)
    assert dots == pairs * rows * vectors
    assert pairs >= 2
    # A pair of each row and a vector of pairs for each vector of columns; what is left is the loop itself.
    if name == "neoverse-v1":
        assert not {"shl", "shll", "ushll", "fmla", "fcvtl", "ins", "umov"}.intersection(k.split(".")[0] for k in kinds)
        return
    assert kinds.count("vbroadcastss") + kinds.count("vpbroadcastd") == pairs * rows
    assert sum(k in ("vmovups", "vmovaps", "vmovdqu64") for k in kinds) == pairs * vectors
    others = [k for k in kinds if k not in (DOTS[name], "vbroadcastss", "vpbroadcastd", "vmovups", "prefetcht0")]
    assert all(re.fullmatch("add.*|cmp.*|inc.*|lea.*|sub.*|dec.*", k) for k in others), others
    assert len(others) <= 6


@pytest.mark.parametrize("name", DOTS)
def test_results_are_the_reference_semantics(name: str) -> None:
    sizes, rng = [(1, 64, 33), (9, 2, 40), (3, 3, 1), (17, 31, 129), ("m", 65, 70)], np.random.default_rng(0)
    module = product(*sizes)
    weights = {f"f{i}": rng.standard_normal(s[1:]).astype(BF16) for i, s in enumerate(sizes)}
    executable = compile_for(module, name)
    executable.bind(executable.prepare(weights))
    for entry, (m, k, _) in zip(weights, sizes, strict=True):
        for rows in (1, 2, 5, 8, 15) if m == "m" else (m,):
            x = rng.standard_normal((rows, k)).astype(BF16)
            (want,) = rx.evaluate(module, entry, x, weights={entry: weights[entry]})
            np.testing.assert_allclose(executable(x, entry=entry), want, rtol=0, atol=2e-6 * np.abs(want).max())


def test_what_is_beyond_an_odd_number_of_rows_is_not_read() -> None:
    """The row behind another's last element begins with infinities, and a zero times those is no number."""
    module = product((3, 5, 20))
    executable = compile_for(module, "znver4")
    x, w = np.ones((3, 5), BF16), np.ones((5, 20), BF16)
    x[1:, 0] = np.inf
    executable.bind(executable.prepare({"f0": w}))
    np.testing.assert_array_equal(executable(x), np.repeat([[5.0], [np.inf], [np.inf]], 20, axis=1))


def test_layers_with_biases_batches_and_rows() -> None:
    builder = rx.Builder()
    with builder.function("main"):
        x, row = builder.input("x", (2, "n", 33), "bf16"), builder.input("row", (33,), "bf16")
        w, bias = builder.weight("w", (48, 33), "bf16"), builder.weight("bias", (48,), "bf16")
        t = builder.permute_dims(w, axes=[1, 0])
        y = builder.gelu(builder.add(builder.matmul(x, t), bias))
        builder.output(y, builder.matmul(row, t))
    module, rng = builder.build(), np.random.default_rng(1)
    weights = {"w": rng.standard_normal((48, 33)).astype(BF16), "bias": rng.standard_normal(48).astype(BF16)}
    inputs = [rng.standard_normal(s).astype(BF16) for s in ((2, 7, 33), (33,))]
    executable = compile_for(module, "sapphirerapids")
    executable.bind(executable.prepare(weights))
    for got, want in zip(executable(*inputs), rx.evaluate(module, "main", *inputs, weights=weights), strict=True):
        got, want = got.astype(np.float32), want.astype(np.float32)
        np.testing.assert_allclose(got, want, rtol=2**-7, atol=2**-8 * np.abs(want).max())


@pytest.mark.parametrize("name", list(TARGETS))
def test_weights_are_in_pairs_where_an_instruction_takes_them(name: str) -> None:
    target = Target.parse(f"cpu:{name}")
    columns = target.matmul_tile[1]
    prepared = product(("m", 7, 40)).with_weight_layouts(target.weight_layouts).run(default_pipeline())
    rows = f"4x{columns}x2" if name in DOTS else f"7x{columns}"
    assert f"-> tensor<{-(-40 // columns)}x{rows}xbf16>" in str(prepared)


def test_quantized_weights_stay_narrow_and_others_stay_f32() -> None:
    builder = rx.Builder()
    with builder.function("main"):
        x, wide = builder.input("x", (4, 64), "bf16"), builder.input("y", (4, 64))
        q, scale = builder.weight("q", (64, 64), "i8"), builder.weight("scale", (64,), "bf16")
        v = builder.weight("v", (64, 64))
        dequantized = builder.dequantize(q, scale, builder.constant(np.int8(0)), axis=1)
        builder.output(builder.matmul(x, dequantized), builder.matmul(wide, v))
    module, rng = builder.build(), np.random.default_rng(2)
    executable = compile_for(module, "znver4")
    assert all(len(w.array.shape) < 4 for w in executable.manifest.prepared_weights.values())
    weights = {
        "q": rng.integers(-128, 128, (64, 64)).astype(np.int8),
        "scale": rng.uniform(0.5, 1, 64).astype(BF16),
        "v": rng.standard_normal((64, 64)).astype(np.float32),
    }
    executable.bind(executable.prepare(weights))
    inputs = rng.standard_normal((4, 64)).astype(BF16), rng.standard_normal((4, 64)).astype(np.float32)
    for got, want in zip(executable(*inputs), rx.evaluate(module, "main", *inputs, weights=weights), strict=True):
        got, want = got.astype(np.float32), want.astype(np.float32)
        np.testing.assert_allclose(got, want, rtol=2**-7, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("name", ["znver4", "neoverse-v1"])
def test_blocks_of_a_long_k(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, **SMALL_BLOCKS)
    module, rng = product((37, 41, 150), ("m", 40, 33)), np.random.default_rng(3)
    weights = {"f0": rng.standard_normal((41, 150)).astype(BF16), "f1": rng.standard_normal((40, 33)).astype(BF16)}
    assert "= alloca" in generated(module, name)  # sums are kept on the stack
    executable = compile_for(module, name)
    executable.bind(executable.prepare(weights))
    for entry, rows in (("f0", 37), ("f1", 1), ("f1", 29)):
        x = rng.standard_normal((rows, weights[entry].shape[0])).astype(BF16)
        (want,) = rx.evaluate(module, entry, x, weights={entry: weights[entry]})
        np.testing.assert_allclose(executable(x, entry=entry), want, rtol=0, atol=2e-6 * np.abs(want).max())


@pytest.mark.parametrize("columns", [1, 5, 8, 15, 17])
def test_few_columns_have_whole_registers(columns: int) -> None:
    """The instruction takes no narrower ones."""
    b, rng = rx.Builder(), np.random.default_rng(0)
    with b.function("main"):
        b.output(b.matmul(b.input("x", ("m", 64), "bf16"), b.weight("w", (64, columns), "bf16")))
    module = b.build()
    executable = compile_for(module, "znver4")
    w, x = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((64, columns), (7, 64)))
    executable.bind(executable.prepare({"w": w}))
    (want,) = rx.evaluate(module, "main", x, weights={"w": w})
    numbers = [v.astype(np.float32) for v in (executable(x), want)]
    np.testing.assert_allclose(*numbers, rtol=2**-7, atol=1e-5)  # one rounding of the result to bf16, of sums in another order
