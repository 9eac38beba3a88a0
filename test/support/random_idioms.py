"""What models do with weights, and passes look for: random ops alone hardly ever come together like this."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from support.random_body import Body, Value

__all__ = ["IDIOMS", "Idiom", "choose"]


@dataclass(frozen=True)
class Idiom:
    """An idiom on an input of shape ``[n, 3]``.

    Attributes:
        inputs: the further inputs that it takes.
        weights: its weights.
        write: writes it, given the body, the input, the further inputs and the weights; returns the results.
    """

    inputs: Sequence[Value]
    weights: Sequence[Value]
    write: Callable[[Body, Value, Sequence[Value], Sequence[Value]], list[Value]]


def _value(*shape: int, dtype: str = "f32") -> Value:
    return Value("", shape, dtype)


def _product(body: Body, x: Value, w: Value) -> Value:
    batch = w.shape[:-2]
    return body.one("matmul", [x, w], (*batch, x.shape[0], w.shape[-1]), 3 * x.bound * w.bound)[0]


def _sum(body: Body, x: Value, y: Value) -> Value:
    return body.one("add", [x, y], x.shape, x.bound + y.bound)[0]


def _transposed(body: Body, w: Value) -> Value:
    return body.one("permute_dims", [w], w.shape[::-1], w.bound, "{axes = array<i64: 1, 0>}")[0]


def _parallel(body: Body, x: Value, inputs: Sequence[Value], weights: Sequence[Value]) -> list[Value]:
    """Query, key and value: products of one value, with biases."""
    *matrices, bias = weights
    products = [_product(body, x, w) for w in matrices]
    return [_sum(body, products[0], bias), _sum(body, products[1], bias), *products[2:]]


def _concatenated(body: Body, x: Value, inputs: Sequence[Value], weights: Sequence[Value]) -> list[Value]:
    """Transposed weights side by side."""
    a, b = (_transposed(body, w) for w in weights)
    both = body.one("concat", [a, b], (3, 4), 3, "{axis = 1 : i64}")[0]
    return [_product(body, x, both)]


def _adapter(body: Body, x: Value, inputs: Sequence[Value], weights: Sequence[Value]) -> list[Value]:
    """A weight and a low-rank one, added up before or after the product; the latter comes as weights or as inputs."""
    a, b = inputs or weights[1:]
    delta = _product(body, a, b)
    if body.rng.random() < 0.5:
        return [_product(body, x, _sum(body, weights[0], delta))]
    return [_sum(body, _product(body, x, weights[0]), _product(body, x, delta))]


def _table(body: Body, x: Value, inputs: Sequence[Value], weights: Sequence[Value]) -> list[Value]:
    """Each index picks a matrix."""
    picked = body.one("take", [weights[0], inputs[0]], (8, 3, 2), 3, "{axis = 0 : i64}")[0]
    return [_product(body, x, picked)]


def _quantized(body: Body, x: Value, inputs: Sequence[Value], weights: Sequence[Value]) -> list[Value]:
    """An int8 weight, dequantized by one op or spelled out, and transposed."""
    stored, scale, zero = weights
    wide = Value("", (2, 3), bound=18)
    if body.rng.random() < 0.5:
        real = body.emit("dequantize", [stored, scale, zero], [wide], "{axis = 0 : i64}")[0]
        return [_product(body, x, _transposed(body, real))]
    numbers = [body.emit("astype", [v], [Value("", v.shape)], "{dtype = f32}")[0] for v in (stored, zero)]
    (centred,) = body.one("subtract", numbers, (2, 3), 6)
    return [_product(body, x, _transposed(body, body.one("multiply", [centred, scale], (2, 3), 18)[0]))]


def _broadcast(body: Body, x: Value, inputs: Sequence[Value], weights: Sequence[Value]) -> list[Value]:
    """A weight that grows by being repeated, and is moved then."""
    (row,) = weights
    (full,) = body.one("broadcast_to", [row], (6, 3), 3)
    return [_product(body, x, _transposed(body, full))]


def _counted(body: Body, x: Value, inputs: Sequence[Value], weights: Sequence[Value]) -> list[Value]:
    """A loop of as many rounds as the input has rows."""
    (w,) = weights
    low, step, high, name = "%low", "%step", "%high", "%counted"
    body.lines += [f"{low} = arith.constant 0 : index", f"{step} = arith.constant 1 : index"]
    body.lines.append(f'{high} = "relax.prim_value"() {{value = ["{x.shape[0]}"]}} : () -> index')
    body.lines.append(f"{name} = scf.for %round = {low} to {high} step {step} iter_args(%sum = {w.text}) -> ({w.type}) {{")
    total = _sum(body, Value("%sum", w.shape), w)
    body.lines += [f"scf.yield {total.text} : {w.type}", "}"]
    return [Value(name, w.shape, bound=24)]


IDIOMS: tuple[Idiom, ...] = (
    Idiom([], [_value(3, 2), _value(3, 2), _value(3, 4), _value(2)], _parallel),
    Idiom([], [_value(2, 3), _value(2, 3)], _concatenated),
    Idiom([], [_value(3, 3), _value(3, 1), _value(1, 3)], _adapter),
    Idiom([_value(3, 1), _value(1, 3)], [_value(3, 3)], _adapter),
    Idiom([_value(8, dtype="i64")], [_value(4, 3, 2)], _table),
    Idiom([], [_value(2, 3, dtype="i8"), _value(2, 1), _value(2, 1, dtype="i8")], _quantized),
    Idiom([], [_value(1, 3)], _broadcast),
    Idiom([], [_value(2, 3)], _counted),
)


def choose(rng: random.Random) -> Idiom | None:
    """One of the idioms, or none."""
    return rng.choice(IDIOMS) if rng.random() < 0.5 else None
