"""Expands exp, log, tanh, erf, sin, cos and their kin on f32 scalars and vectors into polynomials; other types are left alone.

Maxima and minima that keep NaN, too: of equal zeros they take either, for which LLVM's code needs five instructions, not three.

Before::

    %y = math.exp %x : vector<16xf32>

After: about 15 fused multiply-adds and bit operations instead of 16 calls of ``expf``.

Errors are below 2.3 units in the last place (tanh: 4, erf: 6) where measured against float64 over the whole range. NaN stays
NaN, infinities and zeros give what C's functions give. The expansions rely on no fast-math flag and none is set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....dialect.bindings import ir
from ....dialect.functions import body_of, functions
from ...generics import NOT_POSITIVE, NUMBER_FIRST
from ...target import Target
from .emitter import Emitter

__all__ = ["EXPANDED", "expand_math"]

# Adding 1.5 * 2**23 rounds a small float to an integer, found in the low bits of the sum. fptosi of a NaN would be poison.
_ROUND = 12582912.0
_ROUND_BITS = 0x4B400000
_LOG2_E = 1.44269504088896341
# Below this exp is 0, above 89 it is infinite.
_EXP_LOW = -104.5
# So many doublings keep the smallest exp of what is not positive a normal number.
_DECAY_BIAS = 24
# The widest form of scalef wants to be told how to round: as the processor is set to.
_LANES_512, _CURRENT_ROUNDING = 16, 4
# ln 2 and pi / 2 in parts, so that a small integer times the first part is exact (Cody and Waite).
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_HALF_PI = (1.57079601, 3.13916473e-07, 5.39030253e-15)
# Beyond this the three parts of pi / 2 are too few for 1e-6; such arguments go to libm.
_TRIGONOMETRIC_LIMIT = 1e5

# Minimax polynomials, highest power first. exp: fitted here, `1 + r + r * r * p(r)` is off by 3e-9; log: Cephes
# (Moshier); tanh, erf: Eigen, both of tanh times 256 so that no product is subnormal unless x is; sin, cos: N. Juffa.
_EXP = (1.3814540579915047e-3, 8.36874544620514e-3, 4.166838899254799e-2, 0.1666652113199234, 0.4999999403953552)
_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_TANH_TOP = (
    -7.06756730220429e-14, 5.12048103635141e-11, -2.20279590966716e-08, 1.31130805513501e-05, 3.80344923438026e-03,
    1.63139053792112e-01, 1.25274228708297e+00,
)  # fmt: skip
_TANH_BOTTOM = (3.06754149034757e-04, 3.03448846557834e-02, 5.80719265904384e-01, 1.25274244749923e00)
_TANH_LIMIT = 7.90531110763549805
_ERF_TOP = (
    0.00022905065861350646, 0.0034082910107109506, 0.050955695062380861, 0.18520832239976145, 1.128379143519084,
)  # fmt: skip
_ERF_BOTTOM = (
    -1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885, 0.014070470171167667,
    0.11098505178285362, 0.49746925110067538, 1.0,
)  # fmt: skip
_ERF_LIMIT = 3.832506856900711
_SIN = (2.86567956e-6, -1.98559923e-4, 8.33338592e-3, -1.66666672e-1)
_COS = (2.44331571e-5, -1.38873162e-3, 4.16666456e-2, -0.5, 1.0)


def expand_math(module: ir.Operation, target: Target) -> None:
    """Replaces the operations in place, in every function; those without an expansion stay and become calls of libm."""
    for function in functions(module):
        block = body_of(function)
        found = _found(function.operation)
        if block is None or not found:
            continue
        emitter = Emitter(block)
        for operation in found:
            _expand(operation, emitter, target)


def _found(function: ir.Operation) -> list[ir.Operation]:
    found = list[ir.Operation]()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in _EXPANSIONS and _is_f32(operation.results[0].type):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _is_f32(kind: ir.Type) -> bool:
    return isinstance(kind.element_type if isinstance(kind, ir.VectorType) else kind, ir.F32Type)


def _expand(operation: ir.Operation, emitter: Emitter, target: Target) -> None:
    with emitter.before(operation):
        result = _EXPANSIONS[operation.name](_F32(emitter, operation, target), list(operation.operands))
    if result is not None:
        operation.results[0].replace_all_uses_with(result)
        operation.erase()


class _F32:
    """Arithmetic on values of one type: f32 or a vector of f32."""

    def __init__(self, emitter: Emitter, operation: ir.Operation, target: Target):
        self.emitter, self.operation, self.target = emitter, operation, target
        self.kind = operation.results[0].type
        self.width = width = self.kind.shape[0] if isinstance(self.kind, ir.VectorType) else 0
        self.integer = emitter.vector(width, emitter.i32) if width else emitter.i32
        self.truth = emitter.vector(width, emitter.i1) if width else emitter.i1

    def number(self, value: float) -> ir.Value:
        return self.emitter.constant(value, self.kind)

    def count(self, value: int) -> ir.Value:
        return self.emitter.constant(value, self.integer)

    def op(self, name: str, *operands: ir.Value) -> ir.Value:
        return self.emitter.op(name, operands, operands[0].type)

    def add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.addf", a, b)

    def sub(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.subf", a, b)

    def mul(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.mulf", a, b)

    def fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        return self.op("math.fma", a, b, c)

    def polynomial(self, x: ir.Value, factors: Sequence[float]) -> ir.Value:
        """Horner's rule, highest power first."""
        total = self.number(factors[0])
        for factor in factors[1:]:
            total = self.fma(total, x, self.number(factor))
        return total

    def bits(self, x: ir.Value) -> ir.Value:
        return self.emitter.op("arith.bitcast", [x], self.integer)

    def from_bits(self, x: ir.Value) -> ir.Value:
        return self.emitter.op("arith.bitcast", [x], self.kind)

    def compare(self, predicate: str, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.emitter.op("arith.cmpf", [a, b], self.truth, {"predicate": self.emitter.float_predicate(predicate)})

    def select(self, condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.emitter.op("arith.select", [condition, a, b], a.type)

    def clamp(self, x: ir.Value, low: float, high: float) -> ir.Value:
        """Between two numbers; NaN stays NaN (this operand order is one vmaxps, one vminps)."""
        bottom, top = self.number(low), self.number(high)
        x = self.select(self.compare("ogt", bottom, x), bottom, x)
        return self.select(self.compare("olt", top, x), top, x)

    def absolute(self, x: ir.Value) -> ir.Value:
        return self.op("math.absf", x)

    def rounded(self, x: ir.Value, factor: float) -> tuple[ir.Value, ir.Value]:
        """``x * factor`` to the nearest integer, as f32 and as i32; it must be below 2**22."""
        n, bits = self.biased(x, factor, 0)
        return n, self.op("arith.subi", bits, self.count(_ROUND_BITS))

    def biased(self, x: ir.Value, factor: float, bias: int) -> tuple[ir.Value, ir.Value]:
        """``n = x * factor`` to the nearest integer, and an i32 of which the low bits are ``n + bias``."""
        shift = self.number(_ROUND + bias)
        total = self.fma(x, self.number(factor), shift)
        return self.sub(total, shift), self.bits(total)

    def power_of_two(self, exponent: ir.Value) -> ir.Value:
        """``2 ** e`` of an i32 whose low 9 bits are ``e + 127``, at least 0; it is 0 when they are."""
        return self.from_bits(self.op("arith.shli", exponent, self.count(23)))

    def powers_of_two(self, exponent: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Two numbers whose product is ``2 ** n``, given an i32 of which the low bits are ``n + 254``: neither overflows."""
        half = self.op("arith.shrui", exponent, self.count(1))
        return self.power_of_two(half), self.power_of_two(self.op("arith.subi", exponent, half))

    @property
    def has_scalef(self) -> bool:
        """Whether an instruction multiplies by powers of two, in these vectors."""
        return self.target.has_scalef and self.width % 4 == 0 and self.width > 0

    def scalef(self, x: ir.Value, n: ir.Value) -> ir.Value:
        """``x * 2 ** n``, rounded once, by that instruction; on Zen 4 it leaves the multipliers alone."""
        em, lanes = self.emitter, min(self.width, self.target.lanes())
        name, kind = f"llvm.x86.avx512.mask.scalef.ps.{32 * lanes}", em.vector(lanes, em.f32)
        all_lanes = em.constant(-1, em.integer(max(8, lanes)))
        rounding = [em.constant(_CURRENT_ROUNDING, em.i32)] if lanes == _LANES_512 else []
        parts = [[em.lanes(v, at, lanes) for v in (x, n)] for at in range(0, self.width, lanes)]
        return em.joined([em.intrinsic(name, [p, q, p, all_lanes, *rounding], kind) for p, q in parts])


def _exp_argument(f: _F32, x: ir.Value) -> ir.Value:
    """x, where exp is neither 0 nor infinite for certain."""
    if NOT_POSITIVE not in f.operation.attributes:
        return f.clamp(x, _EXP_LOW, 89.0)
    low = f.number(_EXP_LOW)
    return f.select(f.compare("ogt", low, x), low, x)


def _exp_rest(f: _F32, x: ir.Value, n: ir.Value) -> ir.Value:
    """``x - n * ln 2``."""
    return f.fma(n, f.number(-_LN2_LOW), f.fma(n, f.number(-_LN2_HIGH), x))


def _exp_scaled(f: _F32, r: ir.Value, n: ir.Value, bits: ir.Value) -> ir.Value:
    """``exp(r) * 2**n``, given an i32 of which the low bits are n with a bias."""
    p = f.polynomial(r, (*_EXP, 1.0, 1.0))
    if f.has_scalef:
        return f.scalef(p, n)
    if NOT_POSITIVE in f.operation.attributes:
        # One factor, 2**24 too large, is neither infinite nor subnormal.
        return f.mul(f.mul(p, f.power_of_two(bits)), f.number(2.0**-_DECAY_BIAS))
    s, t = f.powers_of_two(bits)
    return f.mul(f.mul(p, s), t)


def _exp(f: _F32, operands: Sequence[ir.Value]) -> ir.Value:
    x = _exp_argument(f, operands[0])
    n, bits = f.biased(x, _LOG2_E, 127 + _DECAY_BIAS if NOT_POSITIVE in f.operation.attributes else 254)
    return _exp_scaled(f, _exp_rest(f, x, n), n, bits)


def _exp2(f: _F32, operands: Sequence[ir.Value]) -> ir.Value:
    """The integer part is exact, so only the fraction meets a rounded ln 2."""
    x = f.clamp(operands[0], -151.0, 129.0)
    n, bits = f.biased(x, 1.0, 254)
    return _exp_scaled(f, f.mul(f.sub(x, n), f.number(0.693147180559945309)), n, bits)


def _expm1(f: _F32, operands: Sequence[ir.Value]) -> ir.Value:
    """``2**n * q + (2**n - 1)``: exact cancellation for small x; for large x that would overflow, exp is the same."""
    x = f.clamp(operands[0], _EXP_LOW, 89.0)
    n, bits = f.biased(x, _LOG2_E, 254)
    r = _exp_rest(f, x, n)
    q = f.fma(f.polynomial(r, _EXP), f.mul(r, r), r)
    s, t = f.powers_of_two(bits)
    scale = f.mul(s, t)
    small = f.fma(q, scale, f.sub(scale, f.number(1.0)))
    return f.select(f.compare("ogt", n, f.number(30.0)), f.mul(f.fma(q, s, s), t), small)


def _log_parts(f: _F32, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """e, r, y with ``x == 2**e * (1 + r)`` and ``log(1 + r) == r + y``; meaningless unless x is positive and finite."""
    tiny = f.compare("olt", x, f.number(1.1754943508222875e-38))
    scaled = f.select(tiny, f.mul(x, f.number(8388608.0)), x)  # subnormal numbers get an exponent
    bits = f.bits(scaled)
    # The mantissa from sqrt(1/2) to sqrt(2): 0x3F3504F3 is sqrt(1/2).
    exponent = f.op("arith.shrsi", f.op("arith.subi", bits, f.count(0x3F3504F3)), f.count(23))
    mantissa = f.from_bits(f.op("arith.subi", bits, f.op("arith.shli", exponent, f.count(23))))
    r = f.sub(mantissa, f.number(1.0))
    e = f.emitter.op("arith.sitofp", [exponent], f.kind)
    e = f.select(tiny, f.sub(e, f.number(23.0)), e)
    z = f.mul(r, r)
    y = f.fma(z, f.number(-0.5), f.mul(f.polynomial(r, _LOG), f.mul(r, z)))
    return e, r, y


def _log_edges(f: _F32, x: ir.Value, y: ir.Value) -> ir.Value:
    """y, but infinity and NaN as they are, 0 to minus infinity, less to NaN."""
    y = f.select(f.compare("olt", x, f.number(float("inf"))), y, f.add(x, x))
    y = f.select(f.compare("oeq", x, f.number(0.0)), f.number(float("-inf")), y)
    return f.select(f.compare("olt", x, f.number(0.0)), f.number(float("nan")), y)


def _log(f: _F32, operands: Sequence[ir.Value]) -> ir.Value:
    e, r, y = _log_parts(f, operands[0])
    y = f.fma(e, f.number(_LN2_LOW), y)
    return _log_edges(f, operands[0], f.fma(e, f.number(_LN2_HIGH), f.add(r, y)))


def _log2(f: _F32, operands: Sequence[ir.Value]) -> ir.Value:
    """Exact for powers of two."""
    e, r, y = _log_parts(f, operands[0])
    return _log_edges(f, operands[0], f.fma(f.add(r, y), f.number(_LOG2_E), e))


def _log10(f: _F32, operands: Sequence[ir.Value]) -> ir.Value:
    return f.mul(_log(f, operands), f.number(0.434294481903251828))


def _log1p(f: _F32, operands: Sequence[ir.Value]) -> ir.Value:
    """``log(u) * x / (u - 1)`` with ``u = 1 + x`` rounded: the rounding of u cancels (Kahan)."""
    (x,) = operands
    one = f.number(1.0)
    u = f.add(x, one)
    y = f.mul(_log(f, [u]), f.op("arith.divf", x, f.sub(u, one)))
    y = f.select(f.compare("olt", u, f.number(float("inf"))), y, u)
    return f.select(f.compare("oeq", u, one), x, y)


def _tanh(f: _F32, operands: Sequence[ir.Value]) -> ir.Value:
    x = f.clamp(operands[0], -_TANH_LIMIT, _TANH_LIMIT)
    s = f.mul(x, x)
    return f.op("arith.divf", f.mul(x, f.polynomial(s, _TANH_TOP)), f.polynomial(s, _TANH_BOTTOM))


def _erf(f: _F32, operands: Sequence[ir.Value]) -> ir.Value:
    """A quotient: three times as fast as the two polynomials and the exp that would be right to one unit."""
    x = f.clamp(operands[0], -_ERF_LIMIT, _ERF_LIMIT)
    s = f.mul(x, x)
    return f.op("arith.divf", f.mul(x, f.polynomial(s, _ERF_TOP)), f.polynomial(s, _ERF_BOTTOM))


def _sin(f: _F32, operands: Sequence[ir.Value]) -> ir.Value | None:
    return _trigonometric(f, operands[0], 0)


def _cos(f: _F32, operands: Sequence[ir.Value]) -> ir.Value | None:
    return _trigonometric(f, operands[0], 1)


def _trigonometric(f: _F32, x: ir.Value, quadrant: int) -> ir.Value:
    """A polynomial when all lanes are at most 1e5 in absolute value, else libm."""
    em = f.emitter
    fits = f.compare("ole", f.absolute(x), f.number(_TRIGONOMETRIC_LIMIT))
    if isinstance(f.kind, ir.VectorType):
        fits = em.reduce("and", fits)
    polynomial = lambda: [_quadrants(f, x, quadrant)]  # noqa: E731
    return em.when(fits, polynomial, lambda: [em.clone(f.operation, [x], f.kind)], [f.kind])[0]


def _quadrants(f: _F32, x: ir.Value, quadrant: int) -> ir.Value:
    n, integer = f.rounded(x, 0.636619772367581343)
    r = x
    for part in _HALF_PI:
        r = f.fma(n, f.number(-part), r)
    s = f.mul(r, r)
    sine = f.fma(f.polynomial(s, _SIN), f.mul(r, s), r)
    cosine = f.polynomial(s, _COS)
    turn = f.op("arith.addi", integer, f.count(quadrant))
    odd = f.emitter.op("arith.trunci", [turn], f.truth)
    y = f.select(odd, cosine, sine)
    sign = f.op("arith.shli", f.op("arith.andi", turn, f.count(2)), f.count(30))
    return f.from_bits(f.op("arith.xori", f.bits(y), sign))


def _rsqrt(f: _F32, operands: Sequence[ir.Value]) -> ir.Value:
    return f.op("arith.divf", f.number(1.0), f.op("math.sqrt", operands[0]))


def _powf(f: _F32, operands: Sequence[ir.Value]) -> ir.Value | None:
    """Products or a root for some constant exponents; anything else is libm's, exp(b * log(a)) loses up to six bits."""
    base, exponent = operands
    number = _constant(exponent)
    if number == 0.5:  # unlike sqrt, infinite for minus infinity and +0 for -0
        root = f.op("math.sqrt", f.add(base, f.number(0.0)))
        return f.select(f.compare("oeq", base, f.number(float("-inf"))), f.number(float("inf")), root)
    if number is None or number not in (-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0):
        return None
    if number == 0.0:
        return f.number(1.0)
    result = base
    for _ in range(int(abs(number)) - 1):
        result = f.mul(result, base)
    return f.op("arith.divf", f.number(1.0), result) if number < 0 else result


def _maximum(f: _F32, operands: Sequence[ir.Value]) -> ir.Value:
    return _extreme(f, operands, "ogt")


def _minimum(f: _F32, operands: Sequence[ir.Value]) -> ir.Value:
    return _extreme(f, operands, "olt")


def _extreme(f: _F32, operands: Sequence[ir.Value], predicate: str) -> ir.Value:
    """One vmaxps, which keeps a NaN in its second operand, and unless the first is known to be none, what makes one of it.

    It is another NaN: LLVM would make one choice of two that may both choose the operand, of two comparisons and no vmaxps.
    The second operand is what a reduction found so far, which then waits for no comparison.
    """
    b, a = operands
    if _constant(b) is not None:
        a, b = b, a
    best, known = f.select(f.compare(predicate, a, b), a, b), _constant(a)
    is_number = known is not None and known == known
    return best if is_number else f.select(f.compare("uno", a, a), f.number(float("nan")), best)


def _larger(f: _F32, operands: Sequence[ir.Value]) -> ir.Value | None:
    """One vmaxps, which gives its second operand where one is NaN."""
    number, other = operands
    return f.select(f.compare("ogt", other, number), other, number) if NUMBER_FIRST in f.operation.attributes else None


def _constant(value: ir.Value) -> float | None:
    """The value of a constant or of a vector that is one constant everywhere."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    if owner.name == "vector.broadcast":
        return _constant(owner.operands[0])
    if owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        attribute = attribute.get_splat_value() if attribute.is_splat else None
    return attribute.value if isinstance(attribute, ir.FloatAttr) else None


_EXPANSIONS: dict[str, Callable[[_F32, Sequence[ir.Value]], ir.Value | None]] = {
    "math.exp": _exp,
    "math.exp2": _exp2,
    "math.expm1": _expm1,
    "math.log": _log,
    "math.log2": _log2,
    "math.log10": _log10,
    "math.log1p": _log1p,
    "math.tanh": _tanh,
    "math.erf": _erf,
    "math.sin": _sin,
    "math.cos": _cos,
    "math.rsqrt": _rsqrt,
    "math.powf": _powf,
    "arith.maximumf": _maximum,
    "arith.minimumf": _minimum,
    "arith.maxnumf": _larger,
}

EXPANDED = frozenset(name for name in _EXPANSIONS if name.startswith("math."))
"""The operations that become long chains of arithmetic."""
