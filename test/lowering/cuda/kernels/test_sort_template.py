"""Sorting on the emulator: runs of 32, merged pass by pass, along any axis, of any dtype, with equals and NaN in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.lowering.cuda.emulator.machine import Machine
from support.emulated_cuda import agrees, plans


def sorting(shape: tuple[int | str, ...], dtype: str, axis: int, *, descending: bool) -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(b.argsort(b.input("x", shape, dtype), axis=axis, descending=descending))
    return b.build()


def few(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Equals, both zeros, and NaN."""
    found = np.random.default_rng(len(shape)).integers(0 if dtype[0] == "u" else -3, 9, shape).astype(numpy_dtype(dtype))
    if dtype[0] in "bf":
        found.reshape(-1)[::7], found.reshape(-1)[3::11] = np.nan, -0.0
    return found


@pytest.mark.parametrize(
    ("shape", "sizes", "axis", "dtype", "descending"),
    [
        ((5, 50), (), 1, "f32", False),
        (("n", "m"), (9, 33), 1, "f32", True),
        (("n", 3), (300, 3), 0, "bf16", True),
        ((2, "n", 5), (2, 129, 5), 1, "ui8", False),
        ((4000,), (), 0, "i64", True),
        (("n", 32), (7, 32), -1, "f8E5M2", False),
        (("n", "m"), (3, 1), 1, "f64", True),
        (("n", "m"), (3, 0), 1, "i1", False),
        (("n", "m"), (0, 40), 1, "f16", False),
        ((1, 1), (), 1, "f32", True),
        ((1, 2), (), 0, "bf16", True),
    ],
)
def test_positions(
    shape: tuple[int | str, ...], sizes: tuple[int, ...], axis: int, dtype: str, descending: bool
) -> None:  # fmt: skip
    x = few(sizes or tuple(int(s) for s in shape), dtype)
    executable = agrees(sorting(shape, dtype, axis, descending=descending), x, target="cuda:sm_90a")
    assert plans(executable) == ["sort run=32 threads=128"]
    assert executable.manifest.data["cuda"]["graphs"] == ["relaxir_main"], "a call only launches"


@pytest.mark.parametrize(
    ("shape", "sizes", "count"),
    [((1, 3), (), 2), ((1, 3), (), 1), (("n", 3), (4, 3), 2), ((5, "n"), (5, 40), 7), ((1, "n"), (1, 3), 3), ((1, 1), (), 1)],
)
def test_a_few_first_positions(shape: tuple[int | str, ...], sizes: tuple[int, ...], count: int) -> None:
    """Loops over one row are none: what they compared is beside what reads elements."""
    b = rx.Builder()
    with b.function("main"):
        order = b.argsort(b.input("x", shape, "f32"), axis=1, descending=True)
        b.output(b.strided_slice(order, axes=[1], begin=[0], end=[count], strides=[1]))
    module = b.build()
    for target in ("cuda:sm_80", "cuda:sm_90a"):
        agrees(module, few(sizes or tuple(int(s) for s in shape), "f32"), target=target)


def test_how_many_launches_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[str] = []
    launch = Machine.launch

    def counted(machine: Machine, loaded: Any, kernel: Any, *more: Any) -> None:
        launched.append(kernel.name)
        launch(machine, loaded, kernel, *more)

    monkeypatch.setattr(Machine, "launch", counted)
    executable = rx.compile(sorting(("n", "m"), "f32", 1, descending=False), "cuda:sm_80", device="emulated")
    for length, launches in ((32, 1), (33, 3), (512, 5), (513, 7), (2048, 7)):
        del launched[:]
        executable(few((2, length), "f32"))
        assert len(launched) == launches
