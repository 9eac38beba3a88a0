"""The work of passes grows with the module, and not faster. Counted in calls of functions, as times depend on the machine."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from benchmark.pass_cost import PASSES, module_text

from relaxir.dialect.context import new_context
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager

SMALL, LARGE = 320, 1280


def calls_per_op(ops: int) -> dict[str, float]:
    """Calls of Python and C functions per op, for each of the passes that ``benchmark/pass_cost.py`` times."""
    module, found = parse_module(module_text(ops), "-", new_context()), Counter[str]()

    def count(frame: Any, event: str, argument: Any) -> None:
        found[name] += event in ("call", "c_call")

    for name in PASSES:
        sys.setprofile(count)
        try:
            manager.run_in_place(module, name)
        finally:
            sys.setprofile(None)
    return {name: number / ops for name, number in found.items()}


def test_four_times_the_ops_take_four_times_the_calls() -> None:
    small, large = calls_per_op(SMALL), calls_per_op(LARGE)
    assert {name: large[name] / small[name] for name in PASSES if large[name] > 1.1 * small[name]} == {}
