"""The work of passes grows with the module, and not faster. Counted in calls of functions, as times depend on the machine."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import pytest
from benchmark.pass_cost import PASSES, lowering_passes, module_text, to_be_lowered

from relaxir.dialect.context import new_context
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager
from support.pattern_passes import PATTERN_PASSES

SMALL, LARGE = 160, 640
#: One after the other, as ``benchmark/pass_cost.py`` times them; and each of those with patterns by itself, on what is inlined.
IN_TURN = list(PASSES)
ALONE = [f"{name}{options}" for name, options in PATTERN_PASSES.items()]


def calls_per_op(ops: int, alone: bool) -> dict[str, float]:
    """Calls of Python and C functions per op, by pass."""
    module, found = parse_module(module_text(ops), "-", new_context()), Counter[str]()

    def count(frame: Any, event: str, argument: Any) -> None:
        found[name] += event in ("call", "c_call")

    if alone:
        manager.run_in_place(module, PASSES[0])
    for name in ALONE if alone else IN_TURN:
        pipeline = manager.build(name, module.context)
        target = module.operation.clone(ip=False).operation if alone else module.operation
        sys.setprofile(count)
        try:
            pipeline.run(target)
        finally:
            sys.setprofile(None)
    return {name: number / ops for name, number in found.items()}


@pytest.mark.parametrize("alone", [False, True])
def test_four_times_the_ops_take_four_times_the_calls(alone: bool) -> None:
    small, large = calls_per_op(SMALL, alone), calls_per_op(LARGE, alone)
    assert {name: large[name] / small[name] for name in small if large[name] > 1.1 * small[name]} == {}


def lowering_calls_per_op(ops: int) -> dict[str, float]:
    """The same of the passes between relax and LLVM, in turn; several runs of one count together."""
    module, found = to_be_lowered(ops, new_context()), Counter[str]()

    def count(frame: Any, event: str, argument: Any) -> None:
        found[name] += event in ("call", "c_call")

    for name in lowering_passes():
        pipeline = manager.build(name, module.context)
        sys.setprofile(count)
        try:
            pipeline.run(module.operation)
        finally:
            sys.setprofile(None)
    return {name: number / ops for name, number in found.items()}


def test_so_do_the_passes_of_lowering() -> None:
    small, large = lowering_calls_per_op(SMALL), lowering_calls_per_op(LARGE)
    assert {name: (small[name], large[name]) for name in small if large[name] > 1.1 * small[name]} == {}
