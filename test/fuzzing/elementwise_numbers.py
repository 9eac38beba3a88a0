"""Elementwise ops on random numbers and edges, against extended precision: a dtype, a processor and a few ops for each seed."""

from __future__ import annotations

import random
from functools import partial

import numpy as np

import relaxir as rx
from fuzzing.targets import compiled, is_gpu
from relaxir.lowering.target import Target
from support.elementwise import FLOATS, INTEGERS, module_for, names_for
from support.elementwise import check as check_op
from support.emulation import compile_for, runs_natively

__all__ = ["check"]

_TARGETS = ("", "", "x86-64-v2", "x86-64-v3", "x86-64-v4")


def check(seed: int) -> None:
    """Raises AssertionError for a result, compiled or evaluated, that is farther off than the table of ops allows."""
    rng = random.Random(seed)
    name = "" if is_gpu() else rng.choice(_TARGETS)
    dtype = rng.choice([*FLOATS, *FLOATS, *INTEGERS, "i1"])
    names = rng.sample(names_for(dtype), 12)
    module = module_for(dtype, names)
    executable = compile_for(module, name) if name else compiled(module)
    target = Target.parse(f"cpu:{name}") if name else Target.host()
    flushes = not is_gpu() and dtype == "bf16" and target.has_bf16 and runs_natively(target)
    found = list[str | None]()
    with np.errstate(all="ignore"):
        for op in names:
            found.append(check_op(op, dtype, partial(executable, entry=op), seed, 2000, flushes))
            found.append(check_op(op, dtype, lambda *x, op=op: rx.evaluate(module, op, *x)[0], seed, 2000))
    assert not any(found), "\n".join(line for line in found if line is not None)
