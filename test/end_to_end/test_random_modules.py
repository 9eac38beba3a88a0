"""Random modules, compiled, against the reference: sharing, calls, control flow, symbols, duplicate outputs."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.functions import name_of
from support.meaning import arguments_for, entry_functions, raw_weights
from support.module_generator import random_module

#: Sums and polynomials differ from NumPy's in the last bits, and a few ops in a row multiply that.
TOLERANCE = 1e-4

#: What an executable cannot have; such a module is refused when it is compiled.
REFUSED = ("of static shape", "expected tensors at the boundary", "that its inputs determine", "within one kind of device")

MODULES = 60


def check(text: str) -> int | None:
    """Compiles a module and compares every entry; returns how many results were compared, None when it is refused."""
    module = rx.Module.parse(text)
    operation = module.ir.operation
    entries = [name_of(f) for f in entry_functions(operation)]
    rng = np.random.default_rng(0)
    raw = {k: v for name in entries for k, v in raw_weights(operation, name, rng).items()}
    try:
        executable = rx.compile(module)
    except rx.RelaxError as error:
        if not any(reason in str(error) for reason in REFUSED):
            raise
        return None
    executable.bind(executable.prepare(raw))
    compared = 0
    for name in entries:
        inputs = arguments_for(operation, name, rng)
        weights = {w.name: raw[w.name] for w in module.functions[name].weights}
        want = rx.evaluate(module, name, *inputs, weights=weights)
        got = executable(*inputs, entry=name)
        for expected, found in zip(want, got if isinstance(got, tuple) else (got,), strict=True):
            assert expected.dtype == found.dtype
            close = np.allclose(found.astype("f8"), expected.astype("f8"), TOLERANCE, TOLERANCE, equal_nan=True)
            assert close, f"@{name}: expected {expected}, got {found}"
            compared += 1
    return compared


@pytest.mark.parametrize("chunk", range(6))
def test_compiled_random_modules_mean_what_they_did(chunk: int) -> None:
    results = [check(random_module(seed)) for seed in range(chunk, MODULES, 6)]
    assert sum(r or 0 for r in results) > 0
