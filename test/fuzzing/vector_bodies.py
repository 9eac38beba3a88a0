"""Random functions of scalars as bodies of ``linalg.generic``: compiled to vectors, they give what a loop of scalars gives.

The scalars are compiled by MLIR's own lowerings, which share nothing with what makes vectors of a body. Varied are dtypes,
operations, how many results there are, how long and of how many dimensions the loops are, and the processor.
"""

from __future__ import annotations

import random

import numpy as np

import relaxir as rx
from support.scalar_functions import ScalarFunction

from .device_scalars import differences, host_results, random_data, results_of

__all__ = ["check", "text"]

# With a fused multiply-add and without, which functions are expanded with. A newer processor's own conversions take subnormal
# numbers of bf16 as zero.
_TARGETS = ("cpu:x86-64-v3", "cpu:x86-64")
#: Shapes of at most as many elements as the loop of scalars goes through.
_SHAPES = ((64,), (37,), (8,), (3,), (1,), (8, 8), (5, 7), (4, 16), (2, 3, 9))


def check(seed: int) -> None:
    """Raises AssertionError for a number that differs."""
    rng, function, data = random.Random(seed), ScalarFunction(seed), random_data(seed)
    shape, chosen = _drawn(rng, function)
    target = rng.choice(_TARGETS)
    expected = host_results(function, data, target)
    executable = rx.compile(rx.Module.parse(_text(function, shape, chosen)), target=target, cache=False)
    found = executable(*_inputs(data, shape))
    results = found if isinstance(found, tuple) else (found,)
    wrong = list[str]()
    for (name, kind), result in zip(chosen, results, strict=True):
        part = expected[name][: result.size]
        wrong += differences(name, kind, part, np.ascontiguousarray(result).reshape(-1).view(part.dtype))
    assert not wrong, f"{wrong[:5]}\n" + text(seed)


def text(seed: int) -> str:
    """The module of a seed."""
    function = ScalarFunction(seed)
    return _text(function, *_drawn(random.Random(seed), function))


def _drawn(rng: random.Random, function: ScalarFunction) -> tuple[tuple[int, ...], list[tuple[str, str]]]:
    """How long the loops are, and which results there are."""
    results = results_of(function)
    return rng.choice(_SHAPES), rng.sample(results, min(rng.choice((1, 1, 2, 4)), len(results)))


def _inputs(data: dict[str, np.ndarray], shape: tuple[int, ...]) -> list[np.ndarray]:
    """The first and the second values of each type."""
    count = int(np.prod(shape))
    halves = ((x[:count], x[len(x) // 2 :][:count]) for x in data.values())
    return [np.ascontiguousarray(half).reshape(shape) for pair in halves for half in pair]


def _text(function: ScalarFunction, shape: tuple[int, ...], chosen: list[tuple[str, str]]) -> str:
    arguments = [(f"{kind}_{i}", kind) for kind in ScalarFunction.types() for i in (0, 1)]
    values = [v for group in (function.outputs, function.inexact) for part in group.values() for v in part]
    by_name = {name: value for (name, _), value in zip(results_of(function), values, strict=True)}
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    same = f"affine_map<({dims}) -> ({dims})>"
    body = "\n    ".join(function.lines)
    types = ", ".join(_tensor(shape, kind) for _, kind in chosen)
    taken = ", ".join(_tensor(shape, kind) for _, kind in arguments)
    return f"""func.func @main({", ".join(f"%in_{n}: {_tensor(shape, kind)}" for n, kind in arguments)}) -> ({types}) {{
  {" ".join(f"%e{i} = tensor.empty() : {_tensor(shape, kind)}" for i, (_, kind) in enumerate(chosen))}
  %r:{len(chosen)} = linalg.generic {{indexing_maps = [{", ".join([same] * (len(arguments) + len(chosen)))}],
      iterator_types = [{", ".join(['"parallel"'] * len(shape))}]}}
      ins({", ".join(f"%in_{n}" for n, _ in arguments)} : {taken})
      outs({", ".join(f"%e{i}" for i in range(len(chosen)))} : {types}) {{
  ^bb0({", ".join(f"%{n}: {kind}" for n, kind in arguments)}, {", ".join(f"%o{i}: {k}" for i, (_, k) in enumerate(chosen))}):
    {body}
    linalg.yield {", ".join(by_name[n] for n, _ in chosen)} : {", ".join(kind for _, kind in chosen)}
  }} -> ({types})
  return {", ".join(f"%r#{i}" for i in range(len(chosen)))} : {types}
}}"""


def _tensor(shape: tuple[int, ...], kind: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{kind}>"
