"""Random modules, compiled, with arrays against guard pages: sharing, calls, control flow, symbols, duplicate outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

import relaxir as rx
from fuzzing.targets import compiled
from relaxir.debugging.meaning import arguments_for, entry_functions, raw_weights
from relaxir.dialect.functions import name_of
from support.guard_pages import Edge, guarded, guarded_copy
from support.module_generator import random_module

__all__ = ["REFUSED", "check", "check_text", "text"]

#: Sums and polynomials differ from NumPy's in the last bits, and a few ops in a row multiply that.
TOLERANCE = 1e-4

#: What an executable cannot have; such a module is refused when it is compiled (lowering/README.md, "What is refused").
REFUSED = ("that its inputs determine",)

Array = np.ndarray[Any, Any]


def text(seed: int) -> str:
    """The module of a seed."""
    return random_module(seed, compilable=True)


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
        executable = compiled(module, checked=checked)
    except rx.RelaxError as error:
        reason = next((r for r in REFUSED if r in str(error)), None)
        if reason is None:
            raise
        return reason
    for edge in get_args(Edge):
        prepared = executable.prepare({n: guarded_copy(w, edge) for n, w in raw.items()})
        prepared.update({n: guarded_copy(np.asarray(w), edge) for n, w in prepared.items()})
        executable.bind(prepared)
        for name in entries:
            inputs = arguments_for(operation, name, rng)
            want = rx.evaluate(module, name, *inputs, weights={w.name: raw[w.name] for w in module.functions[name].weights})
            into = tuple(guarded(w.shape, w.dtype, edge, fill=255) for w in want)
            executable(*(guarded_copy(x, edge) for x in inputs), entry=name, out=into if len(into) != 1 else into[0])
            _compare(name, want, into)
    return None


def _compare(name: str, want: Sequence[Array], got: Sequence[Array]) -> None:
    for expected, found in zip(want, got, strict=True):
        assert expected.dtype == found.dtype
        close = np.allclose(found.astype("f8"), expected.astype("f8"), TOLERANCE, TOLERANCE, equal_nan=True)
        assert close, f"@{name}: expected {expected}, got {found}"
