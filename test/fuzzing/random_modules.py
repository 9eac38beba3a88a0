"""Random modules, compiled, against the reference: sharing, calls, control flow, symbols, duplicate outputs."""

from __future__ import annotations

import numpy as np

import relaxir as rx
from relaxir.dialect.functions import name_of
from support.meaning import arguments_for, entry_functions, raw_weights
from support.module_generator import random_module

__all__ = ["REFUSED", "check", "check_text", "text"]

#: Sums and polynomials differ from NumPy's in the last bits, and a few ops in a row multiply that.
TOLERANCE = 1e-4

#: What an executable cannot have; such a module is refused when it is compiled (lowering/README.md, "What is refused").
REFUSED = ("of static shape", "expected tensors at the boundary", "that its inputs determine", "within one kind of device")


def text(seed: int) -> str:
    """The module of a seed."""
    return random_module(seed)


def check(seed: int) -> str | None:
    """Compiles the module of a seed and compares every result of every entry; returns why it was refused, if it was."""
    return check_text(text(seed))


def check_text(text: str, checked: bool = False) -> str | None:
    """The same of a module."""
    module = rx.Module.parse(text)
    operation = module.ir.operation
    entries = [name_of(f) for f in entry_functions(operation)]
    rng = np.random.default_rng(0)
    raw = {k: v for name in entries for k, v in raw_weights(operation, name, rng).items()}
    try:
        executable = rx.compile(module, checked=checked)
    except rx.RelaxError as error:
        reason = next((r for r in REFUSED if r in str(error)), None)
        if reason is None:
            raise
        return reason
    executable.bind(executable.prepare(raw))
    for name in entries:
        inputs = arguments_for(operation, name, rng)
        weights = {w.name: raw[w.name] for w in module.functions[name].weights}
        want = rx.evaluate(module, name, *inputs, weights=weights)
        got = executable(*inputs, entry=name)
        for expected, found in zip(want, got if isinstance(got, tuple) else (got,), strict=True):
            _compare(name, expected, found)
    return None


def _compare(name: str, expected: np.ndarray, found: np.ndarray) -> None:
    assert expected.dtype == found.dtype
    close = np.allclose(found.astype("f8"), expected.astype("f8"), TOLERANCE, TOLERANCE, equal_nan=True)
    assert close, f"@{name}: expected {expected}, got {found}"
