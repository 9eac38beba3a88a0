"""Math on vectors against float64: error in units in the last place, infinities, NaN, zeros, subnormal numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest

from relaxir.lowering.target import Target
from support.kernel_harness import Compiled, function, generic, memref, narrower

EDGES = [
    0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 88.72, 88.73, -87.3, -87.4, -103.9, -104.0, 1e5, 1.1e5, 3e38, -3e38,
    1e-45, 1.17e-38, 127.9999, 128.0, -149.0, -126.5, 2.0, 1024.0,
]  # fmt: skip

# Function, reference in float64, greatest error in units in the last place among normal results.
FUNCTIONS = {
    "exp": (np.exp, 1.0),
    "exp2": (np.exp2, 1.0),
    "expm1": (np.expm1, 1.5),
    "log": (np.log, 1.0),
    "log2": (np.log2, 2.0),
    "log10": (np.log10, 2.3),
    "log1p": (np.log1p, 2.5),
    "tanh": (np.tanh, 4.5),
    "erf": (np.vectorize(math.erf), 6.0),
    "sin": (np.sin, 2.0),
    "cos": (np.cos, 2.0),
    "tan": (np.tan, 3.0),
    "asin": (np.arcsin, 3.0),
    "acos": (np.arccos, 2.5),
    "atan": (np.arctan, 2.5),
    "sinh": (np.sinh, 3.0),
    "cosh": (np.cosh, 2.5),
    "asinh": (np.arcsinh, 3.0),
    "acosh": (np.arccosh, 3.0),
    "atanh": (np.arctanh, 3.0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5),
}


def numbers():
    rng = np.random.default_rng(0)
    return np.concatenate([
        rng.standard_normal(4000), rng.standard_normal(4000) * 30, np.linspace(-110, 90, 4001),
        rng.choice([-1, 1], 4000) * np.exp2(rng.uniform(-149, 127, 4000)), EDGES,
    ]).astype(np.float32)  # fmt: skip


def evaluate(name, x, target=None):
    types = [memref(x.shape)] * 2
    body = f"  %y = math.{name} %x0 : f32\n  linalg.yield %y : f32"
    dims = ", ".join("ij"[: x.ndim])
    out = np.zeros_like(x)
    maps = [f"({dims}) -> ({dims})"] * 2
    Compiled(function(types, generic(maps, "p" * x.ndim, types, body)), target)(x, out)
    return out


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_accuracy(name):
    reference, limit = FUNCTIONS[name]
    x = numbers()
    got, exact = evaluate(name, x), reference(x.astype(np.float64))
    rounded = exact.astype(np.float32)
    special = ~np.isfinite(rounded)
    np.testing.assert_array_equal(got[special], rounded[special])
    error = np.abs(got[~special] - exact[~special])
    unit = np.maximum(np.spacing(np.abs(rounded[~special])), np.float32(1e-45))
    normal = np.abs(exact[~special]) > 1.2e-38
    assert (error / unit)[normal].max() < limit
    assert not (~normal).any() or error[~normal].max() < 1.2e-38  # a subnormal result may be 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["exp", "log", "expm1", "log1p"])
@pytest.mark.parametrize("target", ["host", "narrow", "without FMA"])
def test_doubles(name, target):
    """Against libm in 80 bits."""
    rng = np.random.default_rng(0)
    x = np.concatenate([
        rng.standard_normal(4000), rng.uniform(-760, 720, 8000), EDGES,
        rng.choice([-1, 1], 8000) * np.exp2(rng.uniform(-1074, 1023, 8000)),
        1 + rng.uniform(-1, 1, 4000) * 2.0 ** rng.uniform(-50, -1, 4000), [math.sqrt(0.5), math.sqrt(2)],
        [709.78, 709.79, -708.4, -745.13, -745.14, -746, 5e-324, 2.2250738585072014e-308, 1.7e308, -1.0],
    ])  # fmt: skip
    types, out = [memref(x.shape, "f64")] * 2, np.zeros_like(x)
    body = f"  %y = math.{name} %x0 : f64\n  linalg.yield %y : f64"
    known = {"host": None, "narrow": narrower(128), "without FMA": without("fma")}[target]
    Compiled(function(types, generic(["(i) -> (i)"] * 2, "p", types, body)), known)(x, out)
    exact = getattr(np, name)(x.astype(np.longdouble))
    rounded = exact.astype(np.float64)
    special = ~np.isfinite(rounded) | (np.abs(rounded) > 1.797e308)
    np.testing.assert_array_equal(out[special & ~np.isfinite(rounded)], rounded[special & ~np.isfinite(rounded)])
    unit = np.spacing(np.abs(rounded[~special]))
    error = np.abs(out[~special] - exact[~special]) / unit
    normal = np.abs(rounded[~special]) > 2.3e-308
    assert error[normal].max() < (1.1 if name in ("exp", "log") else 3.0)
    assert error[~normal].max(initial=0) < 2


@pytest.mark.parametrize("width", [None, 128])
def test_angles_of_two_numbers(width):
    """Of all signs, zeros, infinities and magnitudes; zeros keep their signs."""
    rng, special = np.random.default_rng(1), np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, 3e38])
    y, x = np.meshgrid(special, special)
    y = np.concatenate(
        [y.reshape(-1), rng.choice([-1, 1], 8000) * np.exp2(rng.uniform(-149, 127, 8000)), rng.standard_normal(8000)]
    )
    x = np.concatenate(
        [x.reshape(-1), rng.choice([-1, 1], 8000) * np.exp2(rng.uniform(-149, 127, 8000)), rng.standard_normal(8000)]
    )
    y, x = y.astype(np.float32), x.astype(np.float32)
    types, out = [memref(x.shape)] * 3, np.zeros_like(x)
    body = "  %y = math.atan2 %x0, %x1 : f32\n  linalg.yield %y : f32"
    target = None if width is None else narrower(width)
    Compiled(function(types, generic(["(i) -> (i)"] * 3, "p", types, body)), target)(y, x, out)
    exact = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    is_number = ~np.isnan(exact)
    assert np.isnan(out[~is_number]).all()
    np.testing.assert_array_equal(np.signbit(out[is_number]), np.signbit(exact[is_number]))
    unit = np.maximum(np.spacing(np.abs(exact[is_number]).astype(np.float32)), np.float32(1e-45))
    error, normal = np.abs(out[is_number] - exact[is_number]), np.abs(exact[is_number]) > 1.2e-38
    assert (error / unit)[normal].max() < 3.5
    assert error[~normal].max() < 1.2e-38


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sin"])
def test_scalars_and_narrow_vectors_agree_with_wide_ones(name):
    x = numbers()[:500]
    wide = evaluate(name, x)
    np.testing.assert_array_equal(evaluate(name, x, narrower(128)), wide)
    single = np.array([evaluate(name, np.array(v)) for v in x[:3]])
    np.testing.assert_array_equal(single, wide[:3])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_results_are_the_same_without_an_instruction_that_scales(name):
    host = Target.host()
    features = ",".join(f for f in host.features.split(",") if not f.startswith("+avx512"))
    x = numbers()
    np.testing.assert_array_equal(evaluate(name, x, replace(narrower(256), features=features)), evaluate(name, x))


def test_powers_of_two_have_exact_logarithms():
    x = np.exp2(np.arange(-149, 128)).astype(np.float32)
    np.testing.assert_array_equal(evaluate("log2", x), np.arange(-149, 128))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("exponent", [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.5, 2.5, -3.0])
def test_powers_with_a_constant_exponent(exponent):
    types = [memref((40,))] * 2
    body = f"  %e = arith.constant {exponent} : f32\n  %y = math.powf %x0, %e : f32\n  linalg.yield %y : f32"
    x = np.concatenate([np.random.default_rng(0).standard_normal(34), [0.0, -0.0, 1, np.inf, -np.inf, np.nan]])
    x, out = x.astype(np.float32), np.zeros(40, np.float32)
    Compiled(function(types, generic(["(i) -> (i)"] * 2, "p", types, body)))(x, out)
    exact = np.power(x.astype(np.float64), np.full(40, exponent))  # a scalar 0.5 would be sqrt: NaN of minus infinity
    np.testing.assert_allclose(out, exact, rtol=1e-6)


#: What C's pow tells apart, of both signs.
_BASES = [0.0, 1.0, math.inf, math.nan, 0.5, 2.0, 1e-45, 3.4e38, 0.99999994, 1.0000001]
_EXPONENTS = [0.0, 1.0, 2.0, 3.0, 0.5, 1.5, 2.5, math.inf, math.nan, 1e-45, 16777215.0, 16777216.0, 3e38, 1e-3, 0.37, 40.0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("plain", [False, True])
def test_powers_of_any_sign(plain):
    rng = np.random.default_rng(0)
    edges = np.array([(s * x, t * y) for s in (1, -1) for t in (1, -1) for x in _BASES for y in _EXPONENTS], np.float32)
    base = np.concatenate([edges[:, 0], rng.choice([-1, 1], 4000) * rng.uniform(0, 5, 4000), rng.lognormal(0, 20, 4000)])
    whole = rng.choice([-3, -2, -1, 0, 1, 2, 3, 0.5, 1.5, -2.5], 4000)
    exponent = np.concatenate([edges[:, 1], whole, rng.normal(0, 3, 4000)]).astype(np.float32)
    base, out = base.astype(np.float32), np.zeros(len(exponent), np.float32)
    types = [memref(base.shape)] * 3
    body = "  %y = math.powf %x0, %x1 : f32\n  linalg.yield %y : f32"
    Compiled(function(types, generic(["(i) -> (i)"] * 3, "p", types, body)), without("fma") if plain else None)(
        base, exponent, out
    )
    exact = np.power(base.astype(np.float64), exponent.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(out), np.isnan(exact))
    np.testing.assert_array_equal(np.signbit(out)[~np.isnan(exact)], np.signbit(exact)[~np.isnan(exact)])
    np.testing.assert_array_max_ulp(out[~np.isnan(exact)], exact[~np.isnan(exact)].astype(np.float32), 0 if not plain else 1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("exponent", [*_EXPONENTS[4:], -3.0, -0.37, -4.5, 5.0, -7.0])
def test_powers_with_any_constant_exponent(exponent):
    x = np.concatenate([np.random.default_rng(0).standard_normal(90) * 4, np.array(_BASES), -np.array(_BASES)]).astype(
        np.float32
    )
    number = np.float32(exponent)
    text = f"0x{number.view(np.uint32):08x}"
    got = applied(x, f"  %e = arith.constant {text} : f32\n  %y = math.powf %x0, %e : f32\n  linalg.yield %y : f32")
    exact = np.power(x.astype(np.float64), np.full(len(x), number, np.float64))
    if exponent == 0.5:
        exact = exact.astype(np.float32)
    np.testing.assert_array_equal(got, exact.astype(np.float32))


@pytest.mark.parametrize("stays", [False, True])
def test_powers_in_f64_of_singles(stays):
    """What becomes f32 again needs no libm; what stays f64 does."""
    x = np.abs(np.random.default_rng(0).standard_normal(90)).astype(np.float32)
    end = "" if stays else "  %z = arith.truncf %y : f64 to f32\n"
    types = [memref(x.shape), memref(x.shape, "f64" if stays else "f32")]
    body = "  %e = arith.constant 0.37 : f64\n  %d = arith.extf %x0 : f32 to f64\n  %y = math.powf %d, %e : f64\n"
    body += f"{end}  linalg.yield {'%y : f64' if stays else '%z : f32'}"
    out = np.zeros(x.shape, np.float64 if stays else np.float32)
    Compiled(function(types, generic(["(i) -> (i)"] * 2, "p", types, body)))(x, out)
    np.testing.assert_array_max_ulp(out, (x.astype(np.float64) ** 0.37).astype(out.dtype), 1 if stays else 0)


def without(feature):
    """The host as if its processor had not that feature."""
    host = Target.host()
    return replace(host, features=host.features.replace(f"+{feature}", f"-{feature}"))


def applied(x, body, target=None):
    """The results of a body of one input."""
    types, out = [memref(x.shape)] * 2, np.zeros_like(x)
    Compiled(function(types, generic(["(i) -> (i)"] * 2, "p", types, body)), target)(x, out)
    return out


@pytest.mark.parametrize("scales", [True, False])
def test_exp_of_what_is_not_positive(scales):
    target = Target.host() if scales else without("avx512vl")
    assert scales or not target.has_scalef
    x = np.concatenate([np.minimum(numbers(), np.float32(0)), np.linspace(-104.6, -86, 20001).astype(np.float32)])
    got = applied(x, "  %y = math.exp %x0 {relax.not_positive} : f32\n  linalg.yield %y : f32", target)
    exact, known = np.exp(x.astype(np.float64)), ~np.isnan(x)
    np.testing.assert_array_equal(np.isnan(got), ~known)
    unit = np.maximum(np.spacing(exact[known].astype(np.float32)), np.float32(1e-45))
    assert np.max(np.abs(got[known] - exact[known]) / unit) <= 1.0


@pytest.mark.parametrize("scales", [True, False])
def test_exp_of_weights_is_never_subnormal(scales):
    """Nor 0 before it is less than e ** -80."""
    target = Target.host() if scales else without("avx512vl")
    x = np.concatenate([np.minimum(numbers(), np.float32(0)), np.linspace(-105, -79, 20001).astype(np.float32)])
    got = applied(x, "  %y = math.exp %x0 {relax.vanishing} : f32\n  linalg.yield %y : f32", target)
    exact, known = np.exp(x.astype(np.float64)), ~np.isnan(x)
    np.testing.assert_array_equal(np.isnan(got), ~known)
    assert (got[x < -80] == 0).all()
    seen = x >= -80
    unit = np.spacing(exact[seen].astype(np.float32))
    assert np.max(np.abs(got[seen] - exact[seen]) / unit) <= 1.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("has_fma", [True, False])
def test_remainders_are_exact(has_fma):
    """Of multiples and their neighbours, large quotients among small ones, zeros, infinities."""
    target = Target.host() if has_fma else replace(without("fma"), vector_bits=128)
    assert target.has_fma == has_fma
    rng = np.random.default_rng(0)
    y = (rng.choice([-1, 1], 6000) * np.exp2(rng.uniform(-20, 20, 6000))).astype(np.float32)
    x = (y * rng.integers(-5000, 5000, 6000)).astype(np.float32)
    x = (x.view(np.int32) + rng.integers(-1, 2, 6000, np.int32)).view(np.float32)
    few = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, 3.0, -7.5], np.float32)
    left, right = (v.ravel() for v in np.meshgrid(few, few))
    x, y = np.concatenate([x, left, x[:100] * np.float32(2**30)]), np.concatenate([y, right, y[:100]])
    types, out = [memref(x.shape)] * 3, np.zeros_like(x)
    body = "  %y = arith.remf %x0, %x1 : f32\n  linalg.yield %y : f32"
    Compiled(function(types, generic(["(i) -> (i)"] * 3, "p", types, body)), target)(x, y, out)
    want = np.fmod(x, y)
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(np.signbit(out)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])


@pytest.mark.parametrize("name", ["maximum", "minimum"])
@pytest.mark.parametrize("other", [0.0, 6.0, -2.5, np.inf, -np.inf, np.nan])
def test_extremes_keep_nan(name, other):
    x, number = numbers(), np.float32(other)
    want = getattr(np, name)(x, number)
    for operands in ("%x0, %c", "%c, %x0"):
        constant = f"  %c = arith.constant 0x{number.view(np.uint32):08X} : f32\n"
        got = applied(x, f"{constant}  %y = arith.{name}f {operands} : f32\n  linalg.yield %y : f32")
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("size", [5, 64, 200])
def test_largest_number_of_a_row(size):
    x = np.random.default_rng(0).permutation(numbers())[: 40 * size].reshape(40, size)
    x[1], x[2, 1:] = np.nan, -np.inf
    types, out = [memref(x.shape), memref((40,))], np.full(40, -np.inf, np.float32)
    body = "  %y = arith.maxnumf %x1, %x0 {relax.number_first} : f32\n  linalg.yield %y : f32"
    Compiled(function(types, generic(["(i, j) -> (i, j)", "(i, j) -> (i)"], "pr", types, body)))(x, out)
    np.testing.assert_array_equal(out, np.fmax.reduce(x, axis=1, initial=-np.inf))


def test_extremes_of_two_elements():
    rng = np.random.default_rng(1)
    x, y = (rng.permutation(numbers()) for _ in range(2))
    types, out = [memref(x.shape)] * 3, np.zeros_like(x)
    body = "  %y = arith.maximumf %x0, %x1 : f32\n  linalg.yield %y : f32"
    Compiled(function(types, generic(["(i) -> (i)"] * 3, "p", types, body)))(x, y, out)
    np.testing.assert_array_equal(out, np.maximum(x, y))
