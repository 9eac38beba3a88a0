"""Random ``linalg.generic`` operations as written by hand, between relax ops: results are NumPy's, or refused.

Index maps have sums, negative factors, ``mod``, ``floordiv`` and ``ceildiv``; sizes are known or not, and fit or are off by
one; bodies divide, and read elements of other tensors at places that are computed, from other elements, too. Arrays are against
guard pages. What a loop reads outside of a tensor has to be refused by the call, or by MLIR's verifier; what stays inside is
computed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import relaxir as rx
from fuzzing.targets import compiled
from support.guard_pages import guarded_copy

__all__ = ["Case", "case", "check"]

#: Of MLIR's verifier, where all sizes are known.
_VERIFIER = r"inferred input/output operand .* has shape's dimension|unexpected result less than 0|expected"

Array = np.ndarray[Any, Any]
Place = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One module and its inputs.

    Attributes:
        text: the module; ``@main`` takes ``x``, ``y`` and ``z``, of 64-bit integers.
        inputs: those three.
        want: the result; None where the loops read outside of a tensor, divide by zero, or sizes do not agree.
    """

    text: str
    inputs: tuple[Array, Array, Array]
    want: Array | None


def check(seed: int) -> str | None:
    """Compiles and calls; None, or that MLIR refuses the module."""
    made = case(seed)
    try:
        module = rx.Module.parse(made.text)
    except rx.RelaxError as error:
        return _expected(bool(re.search(_VERIFIER, str(error))), made, error) or "refused by MLIR's verifier"
    executable = compiled(module)
    for edge in ("end", "start"):
        try:
            got = executable(*(guarded_copy(a, edge) for a in made.inputs))
        except rx.RelaxError as error:
            _expected(made.want is None, made, error)
            continue
        _expected(made.want is not None, made, got)
        np.testing.assert_array_equal(got, made.want, str(made))
    return None


def _expected(holds: bool, made: Case, got: object) -> None:
    assert holds, f"got {got}\n{[a.shape for a in made.inputs]}\n{made.text}"


# -- index maps ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Expr:
    """An index: MLIR's text, and what it is at a place."""

    text: str
    at: Callable[[Place], int]


def _sum(rng: random.Random, rank: int) -> _Expr:
    """Multiples of loops and a constant."""
    if rng.random() < 0.2:
        d = rng.randrange(rank)
        return _Expr(f"d{d}", lambda p: p[d])
    factors, constant = [rng.choice((0, 1, 1, 2, 3, -1, -2)) for _ in range(rank)], rng.choice((0, 0, 1, 3, 5))
    shown = " + ".join([*(f"d{i} * {f}" for i, f in enumerate(factors)), str(constant)])
    return _Expr(shown, lambda p: sum(f * i for f, i in zip(factors, p, strict=True)) + constant)


def _index(rng: random.Random, rank: int, depth: int = 2) -> _Expr:
    inner, by = _sum(rng, rank), rng.randint(1, 4)
    for kind in rng.choices(("none", "mod", "floordiv", "ceildiv"), (4, 2, 2, 1), k=depth):
        inner = _divided(inner, kind, by)
    return inner


def _divided(x: _Expr, kind: str, by: int) -> _Expr:
    if kind == "none":
        return x
    compute = {"mod": lambda p: x.at(p) % by, "floordiv": lambda p: x.at(p) // by, "ceildiv": lambda p: -(-x.at(p) // by)}
    return _Expr(f"({x.text}) {kind} {by}", compute[kind])


# -- bodies ----------------------------------------------------------------------------------------------------------

#: Of an element of x, ``%a``, and one of y, ``%b``; an element of z is read at a place. A result of None fails.
_Body = tuple[list[str], Callable[[Place, int, int, Array], int | None]]


def _body(rng: random.Random, rank: int, z: int) -> _Body:
    kind = rng.choice(("sum", "sum", "constant", "element", "affine", "place", "clamped", "value"))
    if kind == "sum":
        return ["%v = arith.addi %a, %b : i64"], lambda p, a, b, z: a + b
    if kind == "constant":
        by = rng.choice((1, 2, 3, 0, -1, -2))
        lines = [f"%c = arith.constant {by} : i64", "%q = arith.floordivsi %a, %c : i64", "%v = arith.addi %q, %b : i64"]
        return lines, lambda p, a, b, z: a // by + b if by else None
    if kind == "element":
        name = rng.choice(list(_DIVISIONS))
        return [f"%v = arith.{name} %a, %b : i64"], lambda p, a, b, z: _DIVISIONS[name](a, b) if b else None
    if kind == "affine":
        return _affine(rng, rank)
    return _read(rng, kind, rank, z)


#: Divisions of ``affine`` expressions; MLIR says nothing of a divisor that is not positive.
_AFFINE: dict[str, Callable[[int, int], int]] = {
    "floordiv": lambda a, b: a // b, "ceildiv": lambda a, b: -(-a // b), "mod": lambda a, b: a % b,
}  # fmt: skip


def _affine(rng: random.Random, rank: int) -> _Body:
    """A loop's index divided by a number, or by an element."""
    kind, d, factor, more = rng.choice(list(_AFFINE)), rng.randrange(rank), rng.choice((1, 2, -1)), rng.choice((0, 1, -3))
    by, add = rng.choice((1, 2, 3, None, None)), rng.choice((0, 0, 1))
    index = f"(d0 * {factor} + {more}) {kind} {'s0' if by is None else by} + d1 * {add}"
    lines = [
        f"%i = linalg.index {d} : index", "%s = arith.index_cast %a : i64 to index", "%t = arith.index_cast %b : i64 to index",
        f"%k = affine.apply affine_map<(d0, d1)[s0] -> ({index})>(%i, %t)[%s]", "%v = arith.index_cast %k : index to i64",
    ]  # fmt: skip

    def compute(place: Place, a: int, b: int, z: Array) -> int | None:
        divisor = a if by is None else by
        return _AFFINE[kind](place[d] * factor + more, divisor) + b * add if divisor > 0 else None

    return lines, compute


def _bits(number: int) -> int:
    """A number of 64 bits read without a sign."""
    return number % 2**64


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


#: Divisions by what is not 0. What is read without a sign comes back with one where it is stored.
_DIVISIONS: dict[str, Callable[[int, int], int]] = {
    "divsi": _truncated,
    "remsi": lambda a, b: a - b * _truncated(a, b),
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "divui": lambda a, b: _signed(_bits(a) // _bits(b)),
    "remui": lambda a, b: _signed(_bits(a) % _bits(b)),
}


def _signed(bits: int) -> int:
    return bits - 2**64 if bits >> 63 else bits


def _read(rng: random.Random, kind: str, rank: int, z: int) -> _Body:
    """An element of z at a place of the loops, or at one that an element says, limited to the tensor or not."""
    if kind == "place":
        d, factor, more = rng.randrange(rank), rng.choice((1, 2, -1)), rng.choice((0, 1, 3))
        lines = [f"%i = linalg.index {d} : index", f"%k = affine.apply affine_map<(d0) -> (d0 * {factor} + {more})>(%i)"]
        place: Callable[[Place, int], int] = lambda p, a: p[d] * factor + more  # noqa: E731
    else:
        lines, limit = ["%k0 = arith.index_cast %a : i64 to index"], max(z - 1, 0)
        if kind == "clamped":
            lines += ["%low = arith.constant 0 : index", f"%high = arith.constant {limit} : index"]
            lines += ["%k1 = arith.maxsi %k0, %low : index", "%k = arith.minsi %k1, %high : index"]
            place = lambda p, a: min(max(a, 0), limit)  # noqa: E731
        else:
            lines += ["%k = arith.addi %k0, %k0 : index"]
            place = lambda p, a: 2 * a  # noqa: E731
    then = "divided" if kind == "place" and rng.random() < 0.3 else "twice" if rng.random() < 0.3 else "sum"
    lines += ["%e = tensor.extract %z[%k] : ZTYPE", *_THEN[then]]
    return lines, lambda p, a, b, z: _read_then(then, z, place(p, a), b)


#: What becomes of an element of z, ``%e``.
_THEN = {
    "sum": ["%v = arith.addi %e, %b : i64"],
    "divided": ["%v = arith.floordivsi %b, %e : i64"],
    "twice": ["%l = arith.index_cast %e : i64 to index", "%f = tensor.extract %z[%l] : ZTYPE", "%v = arith.addi %f, %b : i64"],
}


def _read_then(then: str, z: Array, place: int, b: int) -> int | None:
    if not 0 <= place < len(z):
        return None
    e = int(z[place])
    if then == "sum":
        return e + b
    if then == "divided":
        return b // e if e else None
    return int(z[e]) + b if 0 <= e < len(z) else None


# -- modules ---------------------------------------------------------------------------------------------------------


def case(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    rank = rng.choice((1, 1, 2))
    loops = tuple(rng.choice((0, 1, 2, 3, 4, 6)) if rng.random() < 0.9 else 1 for _ in range(rank))
    exprs = [_index(rng, rank) for _ in range(rng.choice((1, 1, 2)))]
    places = list(np.ndindex(*loops))
    shape = tuple(max(0, _needed(e, loops) + rng.choice((0, 0, 0, -1, 0 if _loop(e, rank) else 1))) for e in exprs)
    lines, compute = _body(rng, rank, length := rng.choice((0, 1, 3, 6)))
    x, y, z = (_array(rng, s) for s in (shape, loops, (length,)))
    types = [_type(s, rng.random() < 0.4) for s in (shape, loops, (length,))]
    before, after = rng.choice((None, *_AROUND)), rng.choice((None, *_AROUND))
    read = x if before is None else _AROUND[before](x)
    want = _computed(exprs, places, read, y, z, compute)
    if want is not None and after is not None:
        want = _AROUND[after](want)
    return Case(_module(exprs, types, lines, loops, before, after), (x, y, z), want)


def _needed(expr: _Expr, loops: Place) -> int:
    """How many elements an index walks along; as many as turns where it is a loop's own, of which all have to agree."""
    return max([expr.at(p) + 1 for p in np.ndindex(*loops)], default=loops[loop[0]] if (loop := _loop(expr, len(loops))) else 1)


def _loop(expr: _Expr, rank: int) -> list[int]:
    """The loop that an index is of, however it is written, as MLIR simplifies; none of another index."""
    return [d for d in range(rank) if all(expr.at(p) == p[d] for p in np.ndindex(*(5,) * rank))]


#: Relax ops in front of the loops and behind them, which may be fused with them.
_AROUND: dict[str, Callable[[Array], Array]] = {"relax.negative": np.negative, "relax.abs": np.abs}


def _array(rng: random.Random, shape: tuple[int, ...]) -> Array:
    return np.array([rng.randint(-3, 8) for _ in range(int(np.prod(shape)))], np.int64).reshape(shape)


def _type(shape: tuple[int, ...], unknown: bool) -> str:
    return f"tensor<{''.join('?x' if unknown else f'{n}x' for n in shape)}i64>"


def _computed(
    exprs: list[_Expr], places: list[Place], x: Array, y: Array, z: Array, compute: Callable[..., int | None]
) -> Array | None:  # fmt: skip
    """The loops' result; None where they read outside, or sizes of a loop do not agree, whether it has a turn or not."""
    own = [(n, y.shape[d]) for e, n in zip(exprs, x.shape, strict=True) for d in _loop(e, y.ndim)]
    if any(a != b for a, b in own):
        return None
    found = np.zeros(y.shape, np.int64)
    for place in places:
        where = tuple(e.at(place) for e in exprs)
        if not all(0 <= i < n for i, n in zip(where, x.shape, strict=True)):
            return None
        value = compute(place, int(x[where]), int(y[place]), z)
        if value is None:
            return None
        found[place] = value
    return found


#: What the callers call the sizes of loops, which results have.
_NAMES = ('"n"', '"m"')


def _module(
    exprs: list[_Expr], types: list[str], body: list[str], loops: Place, before: str | None, after: str | None
) -> str:  # fmt: skip
    xt, yt, zt = types
    dims = ", ".join(f"d{i}" for i in range(len(loops)))
    same = f"affine_map<({dims}) -> ({dims})>"
    named = yt if "?" not in yt else yt.replace(">", f", {{sym = [{', '.join(_NAMES[: len(loops)])}]}}>")
    lines = [f"%y = tensor.cast %yy : {named} to {yt}"]
    lines += [f'%r = "{before}"(%x) : ({xt}) -> {xt}'] if before else []
    lines += [f"%i{i} = arith.constant {i} : index\n  %n{i} = tensor.dim %y, %i{i} : {yt}" for i in range(len(loops))]
    read, iterators = ", ".join(e.text for e in exprs), ", ".join(['"parallel"'] * len(loops))
    sizes = ", ".join(f"%n{i}" for i in range(len(loops))) if "?" in yt else ""
    lines += [
        f"%out = tensor.empty({sizes}) : {yt}",
        f"%g = linalg.generic {{indexing_maps = [affine_map<({dims}) -> ({read})>, {same}, {same}],",
        f"    iterator_types = [{iterators}]}}",
        f"    ins(%{'r' if before else 'x'}, %y : {xt}, {yt}) outs(%out : {yt}) {{",
        "^bb0(%a: i64, %b: i64, %o: i64):",
        *(f"  {line}" for line in body),
        "  linalg.yield %v : i64",
        f"}} -> {yt}",
    ]
    if after:
        lines.append(f'%s = "{after}"(%g) : ({yt}) -> {yt}')
    inner = "\n  ".join(lines).replace("ZTYPE", zt)
    inner += f"\n  %w = tensor.cast %{'s' if after else 'g'} : {yt} to {named}\n  return %w : {named}"
    return f"func.func @main(%x: {xt}, %yy: {named}, %z: {zt}) -> {named} {{\n  {inner}\n}}\n"
