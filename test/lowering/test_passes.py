"""What every pass between relax and LLVM keeps: file, name and test agree, its input stays, and a second run changes nothing.

That meaning is preserved is tested by running compiled code, in end_to_end: behind ``relax-to-linalg`` nothing evaluates what
is between passes, as linalg, buffers and vectors have no reference semantics of ours.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

import pytest

from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager
from relaxir.dialect.passes.pipeline_text import parse_pipeline
from relaxir.dialect.passes.registry import registered_pass
from relaxir.lowering.cuda.pipeline import cuda_pipeline
from relaxir.lowering.passes import PASSES, register_passes
from support.stage_modules import MODULES
from support.stages import elements, lowered

TESTS = Path(__file__).resolve().parent


@functools.cache
def stages(name: str, checked: bool) -> list[tuple[str, str, str]]:
    """Each step on a module, with the texts before and after."""
    seen: list[tuple[str, str]] = []
    with manager.observing(lambda element, op: seen.append((element, text_of(op)))):
        lowered(MODULES[name](), checked=checked)
    count = len(elements(checked))
    return [(step, before, after) for (_, before), (step, after) in zip(seen[-count - 1 :], seen[-count:], strict=False)]


def text_of(operation: ir.Operation) -> str:
    return operation.get_asm(enable_debug_info=True, assume_verified=True)


def pass_of(step: str) -> str:
    return step.partition("{")[0]


@pytest.mark.parametrize("name", PASSES)
def test_file_pass_and_test_have_one_name(name: str) -> None:
    register_passes()
    cls, stem = registered_pass(name), name.removeprefix("relax-")
    assert cls is not None
    assert cls.name == name
    assert cls.__module__.rpartition(".")[2] == stem.replace("-", "_")
    assert re.search(rf"RUN: .*--{name}\b", (TESTS / f"{stem}.mlir").read_text())
    about = sys.modules[cls.__module__].__doc__ or ""
    assert "Before" in about
    assert re.search(r"\bafter\b", about, re.IGNORECASE)


def test_the_pipeline_has_every_pass() -> None:
    """That of a CPU, or that of a GPU, but for what ``relaxir.compile`` puts in front of these."""
    cuda = [e.text for e in parse_pipeline(cuda_pipeline(checked=True))]
    found = {pass_of(step) for steps in (elements(False), elements(True), cuda) for step in steps}
    first = {"relax-set-target", "relax-set-cuda-target", "relax-keep-checks", "relax-skip-masked-products"}
    assert {step for step in found if step.startswith("relax-")} == set(PASSES) - first


@pytest.mark.parametrize(("module", "checked"), [("dynamic", False), ("state", True)])
def test_a_second_run_changes_nothing_and_the_input_stays(module: str, checked: bool) -> None:
    ours = [stage for stage in stages(module, checked) if pass_of(stage[0]) in PASSES]
    assert len(ours) > 20
    context = new_context()
    for step, before, after in ours:
        start, end = (parse_module(text, "-", context) for text in (before, after))
        made = manager.run(start, step)
        assert text_of(start.operation) == before, f"{step} changed its input"
        assert made.verify(), step
        again = manager.run(end, step)
        assert str(again) == str(end), f"{step} is not idempotent"
