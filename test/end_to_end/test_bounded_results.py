"""Results whose sizes data decides, or unknown sizes of inputs: compiled code gives as many elements as the reference does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.symbolic import symbol

#: Of ``x``, [n, 4], and its first ``q`` rows, which an element of another input counts.
COMPUTED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "itself": lambda b, x, q: b.exp(q),
    "one more": lambda b, x, q: b.pad(q, [1, 0], [0, 0]),
    "all again": lambda b, x, q: b.concat([q, x, q]),
    "every second": lambda b, x, q: b.strided_slice(q, [0], [0], ["q"], [2]),
    "half": lambda b, x, q: b.strided_slice(q, [0], [0], ["q // 2"]),
    "what is left of five": lambda b, x, q: b.strided_slice(q, [0], [0], ["q % 5"]),
    "pooled": lambda b, x, q: b.max_pool2d(b.reshape(q, (1, 1, "q", 4)), [2, 2], [2, 2]),
    "products": lambda b, x, q: b.matmul(q, b.permute_dims(q)),
    "flat": lambda b, x, q: b.reshape(q, ("q * 4",)),
    "the others": lambda b, x, q: b.strided_slice(x, [0], ["q"], ["n"]),
}

UNKNOWN: dict[str, Callable[[Any, Any], Any]] = {
    "from one on": lambda b, x: b.strided_slice(x, [0], [1], [2**62]),
    "at most two": lambda b, x: b.strided_slice(x, [0], [1], [3]),
    "the last two": lambda b, x: b.strided_slice(x, [0], [-2], [2**62]),
    "all but two": lambda b, x: b.strided_slice(x, [0], [1], [-1]),
    "every third": lambda b, x: b.strided_slice(x, [0], [0], [2**62], [3]),
    "padded": lambda b, x: b.pad(b.strided_slice(x, [0], [1], [3]), [1, 0], [0, 1]),
    "of all": lambda b, x: b.add(b.strided_slice(x, [0], [0], [2**62], [2]), 1),
    "either": lambda b, x: b.cond(b.less(b.sum(x), 5.0), lambda v: b.concat([v, v]), lambda v: b.concat([v, b.exp(v), v]), x),
    "a loop": lambda b, x: b.while_loop(lambda i, v: b.less(i, 3), lambda i, v: (b.add(i, 1), b.add(v, v)), (b.constant(0), x))[
        1
    ],
}


def _check(module: rx.Module, calls: list[list[Any]]) -> None:
    executable = rx.compile(module)
    for arrays in calls:
        np.testing.assert_allclose(executable(*arrays), rx.evaluate(module, "main", *arrays)[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "rows"), [(name, rows) for name in COMPUTED for rows in ("n", None) if rows or name != "the others"]
)
def test_sizes_that_data_decides(name: str, rows: str | None) -> None:
    b = rx.Builder()
    with b.function("main"):
        x, end = b.input("x", (rows, 4)), b.input("end", (1,), "i64")
        q = b.match_cast(b.dynamic_strided_slice(x, b.constant([0]), end, [0]), (symbol("q"), 4))
        b.output(COMPUTED[name](b, x, q))
    sizes = [(10, 7), (10, 10), (9, 2), (3, 3)] + ([] if name == "pooled" else [(4, 0), (1, 1)])
    _check(b.build(), [[np.arange(n * 4, dtype=np.float32).reshape(n, 4) / n, np.array([q])] for n, q in sizes])


@pytest.mark.parametrize("name", UNKNOWN)
def test_sizes_of_inputs_that_have_no_name(name: str) -> None:
    b = rx.Builder()
    with b.function("main"):
        b.output(UNKNOWN[name](b, b.input("x", (None, 4))))
    _check(b.build(), [[np.arange(n * 4, dtype=np.float32).reshape(n, 4) / 40] for n in (5, 0, 1, 2, 3, 11)])
