"""The passes to code for a GPU keep what all passes do: they go on from printed text, and a second run changes nothing."""

from __future__ import annotations

import pytest

from relaxir.dialect.context import new_context
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager
from relaxir.dialect.passes.pipeline_text import parse_pipeline
from relaxir.lowering.cuda.compiler import CudaCompiler
from relaxir.lowering.lower import lower
from relaxir.lowering.relax_pipeline import default_pipeline
from support.stage_modules import MODULES

TARGET = "cuda:sm_80"


@pytest.mark.parametrize("name", MODULES)
def test_each_step_goes_on_from_the_text_of_the_one_before(name: str) -> None:
    compiler, seen = CudaCompiler(TARGET, {}), list[str]()
    steps = [e.text for e in parse_pipeline(compiler.pipeline(checked=False))]
    start = MODULES[name]().run(default_pipeline()).ir.operation
    text, context = start.get_asm(enable_debug_info=True), new_context()
    with manager.observing(lambda element, op: seen.append(str(op))):
        lower(start, ",".join(steps))
    for step, want in zip(steps, seen, strict=True):
        operation = parse_module(text, "-", context).operation
        lower(operation, step)
        assert str(operation) == want, f"{step} gives something else after printing and parsing what it starts from"
        text = operation.get_asm(enable_debug_info=True)


@pytest.mark.parametrize("name", ["dynamic", "state"])
def test_a_second_run_changes_nothing(name: str) -> None:
    compiler, seen = CudaCompiler(TARGET, {}), list[tuple[str, str]]()
    start = MODULES[name]().run(default_pipeline()).ir.operation
    with manager.observing(lambda element, op: seen.append((element, op.get_asm(enable_debug_info=True)))):
        lower(start, compiler.pipeline(checked=False))
    ours = [(step, text) for step, text in seen if step.startswith("relax-")]
    context = new_context()
    for step, text in ours:
        operation = parse_module(text, "-", context).operation
        before = str(operation)
        lower(operation, step)
        assert str(operation) == before, f"{step} is not idempotent"
