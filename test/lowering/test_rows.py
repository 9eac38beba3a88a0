"""Operations along the same rows become one kernel: results agree, and nothing as large as their input is in memory."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.bindings import ir, passmanager
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.symbolic import evaluate
from relaxir.lowering.fusion.outline_kernels import outline_kernels
from relaxir.lowering.linalg.to_linalg import relax_to_linalg
from support.stages import arena_size, lowered

TOLERANCE = {"f64": 1e-12, "f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}
Shape = tuple[int | str, ...]


def tensor(shape: Shape, dtype: str) -> str:
    symbols = ", ".join(f'"{d}"' for d in shape if isinstance(d, str))
    sizes = "".join(f"{d}x" if isinstance(d, int) else "?x" for d in shape)
    return f"tensor<{sizes}{dtype}{f', {{sym = [{symbols}]}}' if symbols else ''}>"


@dataclass(frozen=True)
class Rows:
    """A function of ``%x`` and ``%g`` (a row), both of a dtype; in ``body`` X, G, W and S are types.

    W is X in f32, S is one f32 per row, of size one along the axis.
    """

    name: str
    body: str

    def text(self, shape: Shape, dtype: str, name: str = "main") -> str:
        wide = "f64" if dtype == "f64" else "f32"
        types = {
            "X": tensor(shape, dtype), "G": tensor(shape[-1:], dtype), "W": tensor(shape, wide),
            "S": tensor((*shape[:-1], 1), wide), "R": tensor(shape[:-1], dtype), "WIDE": wide, "NARROW": dtype,
            "LAST": str(len(shape) - 1),
        }  # fmt: skip
        body = re.sub(r"\b(X|G|W|S|R|WIDE|NARROW|LAST)\b", lambda m: types[m[0]], self.body)
        kind = types["R"] if "-> R" in self.body.splitlines()[-1] else types["X"]
        return f"func.func @{name}(%x: {types['X']}, %g: {types['G']}) -> {kind} {{\n{body}\nreturn %y : {kind}\n}}"


SOFTMAX = Rows("softmax", '%y = "relax.softmax"(%x) : (X) -> X')
LOG_SOFTMAX = Rows("log_softmax", '%y = "relax.log_softmax"(%x) : (X) -> X')
LAYER_NORM = Rows("layer_norm", '%y = "relax.layer_norm"(%x, %g, %g) : (X, G, G) -> X')
RMS_NORM = Rows("rms_norm", '%y = "relax.rms_norm"(%x, %g) : (X, G) -> X')
TORCH_RMS_NORM = Rows(
    "torch_rms_norm",
    """%w = "relax.astype"(%x) {dtype = WIDE} : (X) -> W
%two = "relax.full"() {value = 2.0} : () -> tensor<WIDE>
%e = "relax.full"() {value = 1.0e-5} : () -> tensor<WIDE>
%s = "relax.power"(%w, %two) : (W, tensor<WIDE>) -> W
%m = "relax.mean"(%s) {axis = array<i64: LAST>, keepdims = true} : (W) -> S
%a = "relax.add"(%m, %e) : (S, tensor<WIDE>) -> S
%r = "relax.rsqrt"(%a) : (S) -> S
%n = "relax.multiply"(%w, %r) : (W, S) -> W
%z = "relax.astype"(%n) {dtype = NARROW} : (W) -> X
%y = "relax.multiply"(%g, %z) : (G, X) -> X""",
)
ADD_NORM = Rows(
    "add_norm",
    """%h = "relax.add"(%x, %g) : (X, G) -> X
%n = "relax.layer_norm"(%h, %g, %g) : (X, G, G) -> X
%y = "relax.silu"(%n) : (X) -> X""",
)
EXP_NORM = Rows(
    "exp_norm",
    """%h = "relax.exp"(%x) : (X) -> X
%n = "relax.rms_norm"(%h, %g) : (X, G) -> X
%y = "relax.subtract"(%n, %h) : (X, X) -> X""",
)
VARIANCE = Rows("variance", '%y = "relax.variance"(%x) {axis = array<i64: LAST>} : (X) -> R')
TWO_NORMS = Rows(
    "two_norms",
    '%h = "relax.rms_norm"(%x, %g) : (X, G) -> X\n%y = "relax.softmax"(%h) : (X) -> X',
)
ALL = [SOFTMAX, LOG_SOFTMAX, LAYER_NORM, RMS_NORM, TORCH_RMS_NORM, ADD_NORM, EXP_NORM, VARIANCE, TWO_NORMS]


FUSE = "builtin.module(func.func(linalg-fuse-elementwise-ops,resolve-shaped-type-result-dims),canonicalize,cse,symbol-dce)"
FUSE_EPILOGUES = "builtin.module(func.func(linalg-fuse-elementwise-ops),canonicalize,cse)"


def outlined(text: str) -> str:
    module = rx.Module.parse(text).ir
    with module.context, ir.Location.unknown():
        relax_to_linalg(module.operation, tile=32)
        for step in (FUSE, None, FUSE_EPILOGUES):
            if step is None:
                outline_kernels(module.operation)
            else:
                passmanager.PassManager.parse(step).run(module.operation)
        assert module.operation.verify()
        return str(module)


def arena_bytes(text: str) -> int:
    """Scratch memory of @main."""
    size = arena_size(lowered(rx.Module.parse(text), passes="symbol-dce", upto="relax-share-copies"))
    return size if isinstance(size, int) else evaluate(size, {"n": 1})


def kernels(text: str) -> list[str]:
    return re.findall(r"func.func private @\w+", outlined(text))


def inputs(shape: tuple[int, ...], dtype: str, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s).astype(np.float64).astype(numpy_dtype(dtype)) for s in (shape, shape[-1:])]


def check(every: list[Rows], shape: Shape, dtype: str, *values: tuple[int, ...]) -> None:
    module = rx.Module.parse("\n".join(rows.text(shape, dtype, rows.name) for rows in every))
    executable = rx.compile(module)
    for rows, sizes in itertools.product(every, values):
        given = inputs(sizes, dtype)
        with np.errstate(all="ignore"):
            (want,) = rx.evaluate(module, rows.name, *given)
        got = np.asarray(executable(*given, entry=rows.name)).astype(np.float64)
        tolerance = TOLERANCE[dtype]
        np.testing.assert_allclose(got, want.astype(np.float64), rtol=tolerance, atol=tolerance * 4, err_msg=rows.name)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(3, 1), (1, 5), (7, 31), (2, 3, 64), (1, 9, 131), (5, 0), (0, 4)], ids=str)
def test_static_shapes(shape: tuple[int, ...], dtype: str) -> None:
    check(ALL, shape, dtype, shape)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [("n", 37), ("n", "m"), (2, "n", "m"), (3, "m")], ids=str)
def test_symbolic_shapes(shape: Shape, dtype: str) -> None:
    sizes = [{"n": n, "m": m} for n, m in ((1, 1), (3, 17), (5, 64), (2, 131), (4, 3))]
    check(ALL, shape, dtype, *(tuple(v[d] if isinstance(d, str) else d for d in shape) for v in sizes))


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("rows", ALL, ids=lambda r: r.name)
@pytest.mark.parametrize("shape", [(8, 768), (1, 16, 64), ("n", "m")])
def test_one_kernel_without_a_matrix_of_its_own(rows: Rows, dtype: str, shape: Shape) -> None:
    text = rows.text(shape, dtype)
    assert len(kernels(text)) == 1
    assert arena_bytes(text) == 0


@pytest.mark.parametrize("rows", [SOFTMAX, LAYER_NORM, EXP_NORM], ids=lambda r: r.name)
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("shape", [(131, 515), ("n", "m"), (2, 40000)], ids=str)
def test_threads_compute_the_same_bits(rows: Rows, dtype: str, shape: Shape) -> None:
    executable = rx.compile(rx.Module.parse(rows.text(shape, dtype)))
    given = inputs(tuple({"n": 131, "m": 515}.get(str(d), d) for d in shape), dtype)  # type: ignore[misc]
    results = []
    for threads in (1, 2, 5):
        executable.threads = threads
        results.append(np.asarray(executable(*given)).view(np.uint8))
    assert all(np.array_equal(results[0], r) for r in results)


def test_what_others_read_is_stored() -> None:
    """The sum is a result, too: it stays in a kernel of its own, and is read by that of the norm."""
    x, g = tensor((8, 64), "f32"), tensor((64,), "f32")
    text = f"""func.func @main(%x: {x}, %g: {g}) -> ({x}, {x}) {{
%h = "relax.add"(%x, %g) : ({x}, {g}) -> {x}
%y = "relax.layer_norm"(%h, %g, %g) : ({x}, {g}, {g}) -> {x}
return %h, %y : {x}, {x}
}}"""
    assert len(kernels(text)) == 2
    module = rx.Module.parse(text)
    given = inputs((8, 64), "f32")
    for got, want in zip(rx.compile(module)(*given), rx.evaluate(module, "main", *given), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_rows_too_long_for_the_stack_are_computed_again() -> None:
    """The powers of a row of bf16 are f32, which fit neither the stack nor the result: each reader has an exponential."""
    assert outlined(SOFTMAX.text((4, 768), "bf16")).count("math.exp") == 1
    assert outlined(SOFTMAX.text((4, 1 << 16), "bf16")).count("math.exp") == 2
    assert outlined(SOFTMAX.text(("n", "m"), "bf16")).count("math.exp") == 2
    assert outlined(SOFTMAX.text(("n", "m"), "f32")).count("math.exp") == 1  # where the result will be
    check([SOFTMAX], (4, 1 << 16), "bf16", (4, 1 << 16))


@pytest.mark.parametrize("axis", [0, 1])
def test_axes_that_are_not_the_last_stay_apart_and_right(axis: int) -> None:
    rows = Rows("softmax", f'%y = "relax.softmax"(%x) {{axis = {axis} : i64}} : (X) -> X')
    assert "relax.rows" not in outlined(rows.text((5, 6, 7), "f32"))
    check([rows], (5, 6, 7), "f32", (5, 6, 7))


def test_several_trailing_axes_are_one_row() -> None:
    x, g = tensor((3, 4, 5), "f32"), tensor((4, 5), "f32")
    text = f"""func.func @main(%x: {x}, %g: {g}) -> {x} {{
%y = "relax.layer_norm"(%x, %g, %g) {{axes = array<i64: 1, 2>}} : ({x}, {g}, {g}) -> {x}
return %y : {x}
}}"""
    assert len(kernels(text)) == 1
    module = rx.Module.parse(text)
    rng = np.random.default_rng(0)
    given = [rng.normal(size=s).astype(np.float32) for s in ((3, 4, 5), (4, 5))]
    (want,) = rx.evaluate(module, "main", *given)
    np.testing.assert_allclose(rx.compile(module)(*given), want, rtol=1e-5, atol=1e-5)


def test_group_norm_is_a_norm_of_rows() -> None:
    """As the torch importer writes it: scale and shift are per group and channel before the result is reshaped."""
    x, r, g, p = tensor((2, 8, 5, 5), "f32"), tensor((2, 4, 2, 25), "f32"), tensor((2, 25), "f32"), tensor((4, 2, 1), "f32")
    text = f"""func.func @main(%x: {x}, %p: {p}) -> {x} {{
%r = "relax.reshape"(%x) : ({x}) -> {r}
%one = "relax.full"() {{value = 1.0}} : () -> {g}
%zero = "relax.full"() {{value = 0.0}} : () -> {g}
%n = "relax.layer_norm"(%r, %one, %zero) {{axes = array<i64: 2, 3>}} : ({r}, {g}, {g}) -> {r}
%m = "relax.multiply"(%n, %p) : ({r}, {p}) -> {r}
%y = "relax.reshape"(%m) : ({r}) -> {x}
return %y : {x}
}}"""
    assert len(kernels(text)) == 1


def test_the_end_of_a_product_stays_with_it() -> None:
    x, w = tensor((8, 64), "f32"), tensor((2, 64, 32), "f32")
    text = f"""func.func @main(%x: {x}, %w: {w}) -> {x} {{
%p = "relax.packed_matmul"(%x, %w) {{layout = "tile 32", n = 64 : i64}} : ({x}, {w}) -> {x}
%h = "relax.add"(%p, %x) : ({x}, {x}) -> {x}
%y = "relax.softmax"(%h) : ({x}) -> {x}
return %y : {x}
}}"""
    after = outlined(text)
    assert len(re.findall(r"func.func private @\w+", after)) == 2
    assert len(re.findall("relax.rows", after)) == 1


def test_short_rows_stay_apart() -> None:
    assert "relax.rows" not in outlined(SOFTMAX.text((100, 7), "f32"))
    assert "relax.rows" in outlined(SOFTMAX.text((100, 8), "f32"))
    assert "relax.rows" in outlined(SOFTMAX.text(("n", "m"), "f32"))
