"""``Builder.cond``, ``while_loop`` and ``scan``: what they compute, and every mistake at the caller's line."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

import relaxir as rx


def branches_and_loops():
    b = rx.Builder()
    with b.function("main"):
        x, flag = b.input("x", ("n", 4)), b.input("flag", (1, 1), np.bool_)
        w = b.weight("w", (4, 4))
        y = b.cond(flag, lambda: x @ w, lambda: x - 1)
        count, y = b.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 2), (b.full((), 0, "i64"), y))
        total, (before, index) = b.scan(lambda c, row: (c + row[0], (b.relu(c), row[1])), b.full((4,), 0.0), (y, b.arange("n")))
        grow = lambda v: b.while_loop(lambda v: b.sum(v) < 100, lambda v: v + 1, v)  # noqa: E731
        least = b.cond(count > 2, lambda a, c: (grow(a), c), lambda a, c: (c, a), total, total)
        b.output(y, count, total, before, index, *least)
    return b.build()


@pytest.mark.parametrize("flag", [True, False])
def test_branches_and_loops(flag):
    module = branches_and_loops()
    x, w = np.arange(12, dtype=np.float32).reshape(3, 4) / 10, np.eye(4, dtype=np.float32) * 3
    y = (x @ w if flag else x - 1) * 8
    sums = np.cumsum(y, 0)
    least = sums[-1].copy()
    while least.sum() < 100:
        least += 1
    before = np.maximum(np.concatenate([np.zeros((1, 4)), sums[:-1]]), 0)
    wanted = (y, 3, sums[-1], before, np.arange(3), least, sums[-1])
    exe = rx.compile(module, cache=False)
    exe.bind(exe.prepare({"w": w}))
    given = x, np.full((1, 1), flag)
    for got in (rx.evaluate(module, "main", *given, weights={"w": w}), exe(*given)):
        for g, want in zip(got, wanted, strict=True):
            np.testing.assert_allclose(g, want, rtol=1e-6)


def a_value_that_has_ended(b, x, flag):
    kept = []
    b.cond(flag, lambda: kept.append(x + 1) or x, lambda: x)
    return kept[0] + 1


def a_symbol_that_has_ended(b, x, flag):
    b.cond(flag, lambda: [x, b.match_cast(x, ("m", 4))][0], lambda: x)
    return b.full(("m",), 1.0)


MISTAKES = {
    "expected a condition that is one boolean, got tensor<nx4xf32>": lambda b, x, flag: b.cond(x, lambda: x, lambda: x),
    "expected tensor<nx4xf32> of both branches, got tensor<f32>": lambda b, x, flag: b.cond(flag, lambda: x, lambda: b.sum(x)),
    "expected 1 values of both branches, got 2": lambda b, x, flag: b.cond(flag, lambda: x, lambda: (x, x)),
    "expected a condition that is one boolean, got 2 values": lambda b, x, flag: b.while_loop(
        lambda v: (flag, flag), lambda v: v, x
    ),
    "expected tensor<nx4xf32> from the body of a loop, got tensor<f32>": lambda b, x, flag: b.while_loop(
        lambda v: flag, b.sum, x
    ),
    "expected rows of one length, which is known or symbolic": lambda b, x, flag: b.scan(lambda c, r: (c, r), x, (x, flag)),
    "expected a tuple of what is carried, 1 values, and a row from each step": lambda b, x, flag: b.scan(lambda c, r: c, x, x),
    "expected tensor<nx4xf32> from each step, got tensor<f32>": lambda b, x, flag: b.scan(lambda c, r: (b.sum(c), r), x, x),
    "expected rows whose sizes are known or symbolic, got tensor<?xf32>": lambda b, x, flag: b.scan(
        lambda c, r: (c, b.match_cast(r, ("?",))), x, x
    ),
    "expected values of @main, got one of a branch or loop that has ended (relax.add)": a_value_that_has_ended,
    "expected symbols of @main (n), got m": a_symbol_that_has_ended,
    "expected output(...) of @main outside of branches and loops": lambda b, x, flag: b.cond(
        flag, lambda: b.output(x), lambda: x
    ),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_told_at_their_line_and_leave_nothing_behind(message):
    b = rx.Builder()
    with b.function("main"):
        x, flag = b.input("x", ("n", 4)), b.input("flag", (), np.bool_)
        with pytest.raises(rx.RelaxError) as caught:
            MISTAKES[message](b, x, flag)
        assert caught.value.args[0] == message
        assert str(caught.value.location).startswith(__file__)
        with suppress(ZeroDivisionError):
            b.while_loop(lambda v: flag, lambda v: 1 / 0, x)
        b.output(x + 1)
    assert "scf.execute_region" not in str(b.build())
