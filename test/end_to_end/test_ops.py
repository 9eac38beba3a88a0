"""Every op through the whole compiler, against its reference semantics, on sizes around vectors and tiles.

All functions of one dtype go into one module, so that the sweep compiles few times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect import ops  # noqa: F401  fills the dialect
from relaxir.dialect.dtypes import dtype_name, numpy_dtype
from relaxir.dialect.relax import Relax

Build = Callable[..., object]

#: Relative to the largest result. f32 sums and polynomials differ from NumPy's in the last bits; the narrow types are rounded
#: once from such an f32, which may fall on either side: one unit in the last place.
TOLERANCE = {"f32": 4e-6, "f64": 1e-12, "bf16": 8e-3, "f16": 1e-3, "f8E4M3FN": 0.126, "f8E5M2": 0.251}

#: Static, then dynamic: below, at and above a vector of 16 and a tile of 32.
ROWS = [1, 3, 8, 17, 33]


@dataclass(frozen=True)
class Case:
    """One function: its op, the shapes of its inputs (``n`` is dynamic), and how it is built from them."""

    op: str
    shapes: tuple[tuple[int | str, ...], ...]
    build: Build
    kind: str = "normal"


def _case(op: str, *shapes: tuple[int | str, ...], kind: str = "normal", **attrs: object) -> Case:
    return Case(op, shapes, lambda b, *xs: getattr(b, op)(*xs, **attrs), kind)


UNARY = (
    "abs acos asin asinh atan atanh ceil cos cosh erf exp exp2 expm1 floor negative round sigmoid sign sin sinh square tan "
    "tanh trunc relu gelu gelu_tanh silu hardswish softplus"
)
POSITIVE = "acosh log log10 log1p log2 reciprocal rsqrt sqrt"
BINARY = "add subtract multiply divide maximum minimum mod fmod floor_divide"
INTEGER_BINARY = "add subtract multiply maximum minimum bitwise_and bitwise_or bitwise_xor"
COMPARE = "equal not_equal less less_equal greater greater_equal"

PAIRS = np.array([[0, 3], [1, 1], [2, 0]], np.int64)
SCALES = np.linspace(0.01, 0.1, 9, dtype=np.float32)
ZEROS = np.zeros(9, np.int8)

FLOAT = [
    *(_case(op, ("n", 37)) for op in UNARY.split()),
    *(_case(op, ("n", 37), kind="positive") for op in POSITIVE.split()),
    *(_case(op, ("n", 37), ("n", 37)) for op in BINARY.split()),
    *(_case(op, ("n", 1, 5), (37, 1)) for op in ("add", "multiply")),
    *(_case(op, ("n", 37), (37,), kind="few") for op in COMPARE.split()),
    *(_case(op, ("n", 9), kind="special") for op in ("isnan", "isinf", "isfinite", "relu", "exp", "tanh")),
    _case("maximum", ("n", 9), ("n", 9), kind="special"),
    _case("power", ("n", 37), ("n", 37), kind="positive"),
    _case("leaky_relu", ("n", 37), alpha=0.2),
    _case("clip", ("n", 37), min=-0.5, max=0.75),
    _case("sum", ("n", 37), axis=[1]),
    _case("sum", ("n", 37, 5), axis=[0, 2], keepdims=True),
    _case("sum", ("n", 37)),
    _case("mean", ("n", 37, 5), axis=[1]),
    _case("max", ("n", 37), axis=[-1], keepdims=True),
    _case("min", (5, "n", 3), axis=[1]),
    _case("prod", ("n", 7), axis=[1]),
    _case("variance", ("n", 37), axis=[1]),
    _case("cumsum", ("n", 37), axis=1),
    _case("cumsum", ("n", 7), axis=0, exclusive=True),
    _case("cumprod", ("n", 7), axis=1),
    _case("cumprod", ("n", 3), axis=0, exclusive=True),
    _case("cummax", ("n", 7), axis=1), _case("cummax", ("n", 3), axis=0, exclusive=True),
    _case("cummin", ("n", 7), axis=1, exclusive=True), _case("cummin", ("n", 3), axis=0),
    _case("argsort", ("n", 37), axis=1, kind="few"),
    _case("argsort", (5, "n", 3), axis=1, descending=True, kind="special"),
    _case("argmax", ("n", 37), axis=1, kind="few"),
    _case("argmin", ("n", 37), axis=0, kind="few"),
    _case("softmax", ("n", 37), axis=-1),
    _case("softmax", (3, "n", 5), axis=1),
    _case("log_softmax", ("n", 37), axis=-1),
    _case("layer_norm", ("n", 37), (37,), (37,), axes=[-1], epsilon=1e-5),
    _case("rms_norm", ("n", 37), (37,), axes=[-1], epsilon=1e-6),
    _case("batch_norm", ("n", 5, 3, 3), (5,), (5,), (5,), (5,), kind="positive"),
    _case("matmul", ("n", 37), (37, 33)),
    _case("matmul", ("n", 64), (64, 64)),
    _case("matmul", (2, 1, "n", 37), (3, 37, 20)),
    _case("matmul", (37,), (37, 33)),
    _case("matmul", ("n", 37), (37,)),
    _case("attention", (2, 4, "n", 16), (2, 4, "n", 16), (2, 4, "n", 16)),
    _case("attention", (2, 4, "n", 16), (2, 2, "n", 16), (2, 2, "n", 8), causal=True),
    _case("attention", (1, 2, "n", 16), (1, 2, 33, 16), (1, 2, 33, 16), (1, 1, "n", 33), scale=0.5),
    _case("conv2d", (1, 5, 9, 9), (6, 5, 3, 3), strides=[2, 1], padding=[1, 1, 1, 1]),
    _case("conv2d", ("n", 4, 7, 7), (6, 2, 1, 1), groups=2),
    _case("conv2d", (1, 3, 11, 11), (33, 3, 3, 3), dilation=[2, 2], padding=[2, 1, 0, 1]),
    _case("max_pool2d", ("n", 3, 9, 9), pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]),
    _case("avg_pool2d", ("n", 3, 9, 9), pool_size=[2, 3], strides=[2, 2], padding=[0, 1, 0, 1]),
    _case("adaptive_avg_pool2d", ("n", 3, 7, 7), output_size=[1, 1]),
    _case("adaptive_avg_pool2d", ("n", 3, 7, 7), output_size=[3, 2]),
    _case("pad", ("n", 5), before=[1, 2], after=[0, 3], value=1.5),
    _case("permute_dims", ("n", 37, 3), axes=[2, 0, 1]),
    _case("permute_dims", (2, "n", 5, 37), axes=[0, 2, 1, 3]),
    _case("reshape", ("n", 6), shape=("n", 2, 3)),
    _case("reshape", ("n", 2, 3), shape=("n * 6",)),
    _case("broadcast_to", (1, 5), shape=("n", 5), kind="dims"),
    _case("expand_dims", ("n", 6), axis=[1]),
    _case("squeeze", ("n", 1, 6), axis=[1]),
    _case("flip", ("n", 37), axis=1),
    _case("repeat", ("n", 5), repeats=3, axis=1),
    _case("tile", ("n", 5), repeats=[2, 3]),
    Case("concat", (("n", 5), ("n", 7), ("n", 3)), lambda b, *xs: b.concat(list(xs), axis=1)),
    Case("concat", (("n", 5), (2, 5)), lambda b, *xs: b.concat(list(xs), axis=0)),
    Case("split", (("n", 6),), lambda b, x: b.split(x, 3, axis=1)),
    _case("strided_slice", ("n", 37), axes=[1], begin=[3], end=[30], strides=[2]),
    _case("strided_slice", ("n", 37), axes=[0, 1], begin=[0, -7], end=["n", 37]),
    _case("tril", ("n", 9), k=1),
    _case("triu", (3, "n", 9), k=-1),
    _case("stop_lift_params", ("n", 9)),
    Case("where", (("n", 9), ("n", 9)), lambda b, x, y: b.where(b.less(x, y), x, y)),
    Case("full", (("n", 3),), lambda b, x: b.add(x, b.full(("n", 3), 2.5, dtype=str(x.dtype)))),
    Case("logical_and", (("n", 9), ("n", 9)), lambda b, x, y: b.logical_and(b.less(x, y), b.greater(x, 0.0))),
    Case("logical_or", (("n", 9), ("n", 9)), lambda b, x, y: b.logical_or(b.less(x, y), b.greater(x, 0.0))),
    Case("logical_xor", (("n", 9), ("n", 9)), lambda b, x, y: b.logical_xor(b.less(x, y), b.greater(x, 0.0))),
    Case("logical_not", (("n", 9),), lambda b, x: b.logical_not(x)),
    Case("astype", (("n", 9),), lambda b, x: b.astype(x, dtype="i32")),
    Case("astype", (("n", 9),), lambda b, x: b.astype(b.astype(x, dtype="bf16"), dtype="f32")),
    Case("take", (("n", 9),), lambda b, x: b.take(x, b.constant(PAIRS - 1), axis=1)),
    Case("take", ((7, 33),), lambda b, x: b.take(x, b.constant(np.array([6, 0, 3], np.int64)), axis=0)),
    Case("gather_elements", ((3, 4),), lambda b, x: b.gather_elements(x, b.constant(PAIRS), axis=1)),
    Case("scatter_elements", ((3, 4), (3, 2)), lambda b, x, u: b.scatter_elements(x, b.constant(PAIRS), u, axis=1)),
    Case("scatter_elements", (("n", 4), (5, 4)), lambda b, x, u: b.scatter_elements(
        x, b.constant(np.zeros((5, 4), np.int64)), u, axis=0, reduction="add")),
    Case("gather_nd", ((3, 4, 5),), lambda b, x: b.gather_nd(x, b.constant(PAIRS))),
    Case("arange", (("n", 3),), lambda b, x: b.add(b.reshape(b.arange("n", dtype=str(x.dtype)), shape=("n", 1)), x)),
    Case("shape_value", (("n", 3),), lambda b, x: b.multiply(x, b.astype(b.shape_value("n * 2"), dtype=str(x.dtype)))),
    Case("quantize", (("n", 9),), lambda b, x: b.quantize(x, b.constant(np.float32(0.02)), b.constant(np.int8(3)), dtype="i8")),
    Case("dequantize", (("n", 9),), lambda b, x: b.dequantize(
        b.quantize(x, b.constant(SCALES), b.constant(ZEROS), dtype="i8", axis=1),
        b.constant(SCALES), b.constant(ZEROS), axis=1)),
    Case("pack_weight", ((37, 45),), lambda b, x: b.pack_weight(x, layout="tile 32")),
    Case("packed_take", ((3, 41, 16),), lambda b, x: b.packed_take(
        x, b.constant(np.array([[40, 0, -1], [15, 16, 31]])), layout="tile 16", n=45)),
    Case("packed_matmul", (("n", 37), (37, 45)), lambda b, x, w: b.packed_matmul(
        x, b.pack_weight(w, layout="tile 32"), layout="tile 32", n=45)),
    Case("grouped_matmul", (("n", 37), (37, 45)), lambda b, x, w: b.grouped_matmul(
        x, w, b.constant(np.array([0, 1, 1])))),
    Case("packed_grouped_matmul", (("n", 37), (37, 45)), lambda b, x, w: b.packed_grouped_matmul(
        x, b.pack_weight(w, layout="tile 32"), b.constant(np.array([0, 1, 1])), layout="tile 32", n=45)),
    Case("packed_conv2d", (("n", 9, 8, 5), (45, 20)), lambda b, x, w: b.packed_conv2d(
        x, b.pack_weight(w, layout="tile 16"), layout="tile 16", channels=20, kernel_size=[3, 3],
        padding=[1, 0, 1, 1], strides=[2, 1])),
    Case("winograd_conv2d", (("n", 9, 8, 5), (80, 20)), lambda b, x, w: b.winograd_conv2d(
        x, b.pack_weight(w, layout="tile 16"), layout="tile 16", channels=20, padding=[1, 0, 1, 2])),
    Case("match_cast", (("n", "m"),), lambda b, x: b.match_cast(x, ("n", "n")), kind="square"),
]  # fmt: skip

INTEGER = [
    *(_case(op, ("n", 37), ("n", 37)) for op in INTEGER_BINARY.split()),
    *(_case(op, ("n", 37), ("n", 37), kind="nonzero") for op in ["divide", "floor_divide", "mod"]),
    *(_case(op, ("n", 37), (37,), kind="few") for op in COMPARE.split()),
    *(_case(op, ("n", 37), ("n", 37), kind="shift") for op in ["left_shift", "right_shift"]),
    _case("bitwise_not", ("n", 37)), _case("abs", ("n", 37)), _case("negative", ("n", 37)), _case("sign", ("n", 37)),
    _case("sum", ("n", 37), axis=[1]), _case("max", ("n", 37), axis=[0]), _case("cumsum", ("n", 37), axis=1),
    _case("argsort", ("n", 37), axis=1, kind="few"), _case("cumprod", ("n", 7), axis=1), _case("cummax", ("n", 7), axis=1),
    _case("permute_dims", ("n", 37, 3), axes=[2, 0, 1]), _case("clip", ("n", 37), min=-3, max=4),
    Case("astype", (("n", 9),), lambda b, x: b.astype(x, dtype="f32")),
    Case("astype", (("n", 9),), lambda b, x: b.astype(x, dtype="i1")),
]  # fmt: skip

#: Ops that are no computation of their own, each with where it is tested.
ELSEWHERE = {
    "constant": "in the cases above", "get_param": "test/transforms", "set_output": "test/transforms",
    "bind_argument": "test/transforms", "prim_value": "test_shape_values.py", "to_vdevice": "test/lowering/linalg",
    "hint_on_device": "test/transforms", "index_copy": "test_state.py", "dynamic_strided_slice": "test_data_sizes.py",
    "pack_nibbles": "test_quantize.py", "unpack_nibbles": "test_quantize.py", "unpack_planes": "test_quantize.py",
    "quantized_matmul": "test_integer_sums.py", "quantized_conv2d": "test_byte_sums.py",
    "quantized_grouped_matmul": "test_row_groups.py",
    "packed_quantized_conv2d": "test_byte_sums.py",
    "look_up": "test_quantize.py", "bitcast": "test_elementwise_numbers.py", "keep": "test_unread_checks.py",
    "rank": "test_tensor_parallel.py", "all_reduce": "test_tensor_parallel.py", "all_gather": "test_tensor_parallel.py",
    "call_extern": "test_externs.py",
}  # fmt: skip


def values(shape: tuple[int, ...], dtype: np.dtype, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Inputs for a case; ``few`` has ties, ``special`` infinities and NaN."""
    if dtype.kind in "iu":
        found = rng.integers(-100, 100, shape)
        found = np.where(found == 0, 7, found) if kind == "nonzero" else found % 7 if kind == "shift" else found
        return (found % 3 if kind == "few" else found).astype(dtype)
    found = np.abs(rng.standard_normal(shape)) + 0.1 if kind == "positive" else rng.standard_normal(shape) * 2
    if kind == "few":
        found = np.round(found)
    if kind == "special":
        found = np.where(rng.random(shape) < 0.5, rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0], shape), found)
    return found.astype(dtype)


def module_of(cases: list[Case], dtype: str, static: int | None) -> rx.Module:
    """One function per case; ``static`` replaces ``n``."""
    builder = rx.Builder()
    for number, case in enumerate(cases):
        with builder.function(f"f{number}_{case.op}"):
            shapes = [tuple(static if d == "n" and static is not None else d for d in s) for s in case.shapes]
            if case.kind == "dims":
                builder.input("dims", ("n",), dtype)
            inputs = [builder.input(f"x{i}", shape, dtype) for i, shape in enumerate(shapes)]
            result = case.build(builder, *inputs)
            builder.output(*(result if isinstance(result, tuple) else (result,)))
    return builder.build()


def check(
    module: rx.Module, cases: list[Case], dtype: str, rows: list[int], executable: rx.Executable | None = None
) -> None:  # fmt: skip
    executable = executable or rx.compile(module)
    rng = np.random.default_rng(0)
    failures: list[str] = []
    for number, case in enumerate(cases):
        name = f"f{number}_{case.op}"
        for n in rows:
            shapes = [tuple(n if isinstance(d, str) else d for d in s) for s in case.shapes]
            inputs = [values(s, numpy_dtype(dtype), case.kind, rng) for s in ([(n,)] if case.kind == "dims" else []) + shapes]
            want = rx.evaluate(module, name, *inputs)
            got = executable(*inputs, entry=name)
            got = got if isinstance(got, tuple) else (got,)
            failures += [f"{name} n={n}: {text}" for w, g in zip(want, got, strict=True) if (text := difference(w, g, dtype))]
    assert not failures, "\n".join(failures)


def difference(want: np.ndarray, got: np.ndarray, dtype: str) -> str | None:
    """What is wrong with a result, None when nothing is."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"expected {want.dtype}{want.shape}, got {got.dtype}{got.shape}"
    kind = dtype_name(want.dtype)
    if kind not in TOLERANCE:
        return None if np.array_equal(want, got) else f"{int((want != got).sum())} of {want.size} elements differ"
    a, b = want.astype(np.float64), got.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)) or not np.array_equal(
        a[~np.isfinite(a)], b[~np.isfinite(b)], equal_nan=True
    ):
        return "infinities or NaNs differ"
    finite = np.isfinite(a)
    scale = max(1.0, float(np.abs(a[finite]).max(initial=0.0)))
    worst = float(np.abs(a[finite] - b[finite]).max(initial=0.0)) / scale
    return f"off by {worst:.1e} of {scale:.3g}" if worst > max(TOLERANCE[kind], TOLERANCE.get(dtype, 0.0)) else None


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16"])
def test_floating_point_ops_with_dynamic_sizes(dtype: str) -> None:
    cases = [c for c in FLOAT if dtype == "f32" or c.op not in ("quantize", "dequantize")]
    check(module_of(cases, dtype, None), cases, dtype, ROWS)


@pytest.mark.parametrize("n", [1, 33])
def test_floating_point_ops_with_static_sizes(n: int) -> None:
    cases = [
        c
        for c in FLOAT
        if c.kind not in ("square", "dims") and c.op not in ("strided_slice", "reshape", "full", "arange", "shape_value")
    ]
    check(module_of(cases, "f32", n), cases, "f32", [n])


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
def test_integer_ops(dtype: str) -> None:
    check(module_of(INTEGER, dtype, None), INTEGER, dtype, ROWS)


def test_every_op_is_in_the_sweep() -> None:
    names = {cls.OPERATION_NAME.removeprefix("relax.") for cls in Relax.operations}
    assert names - {c.op for c in [*FLOAT, *INTEGER]} == set(ELSEWHERE)


def test_the_narrow_types_are_those_of_ml_dtypes() -> None:
    assert numpy_dtype("bf16") == ml_dtypes.bfloat16
