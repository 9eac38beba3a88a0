"""What code is for travels in the module."""

from __future__ import annotations

import pytest

from relaxir.dialect.context import new_context
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.parser import parse_module
from relaxir.lowering.set_target import set_target, target_of
from relaxir.lowering.target import TARGETS, Target


@pytest.mark.parametrize("name", ["cpu", *(f"cpu:{t}" for t in TARGETS)])
@pytest.mark.parametrize("openmp", [True, False])
def test_a_target_is_the_same_after_printing_and_parsing(name: str, openmp: bool) -> None:
    target = Target.parse(name, openmp)
    module = parse_module("module {}", "-", new_context())
    set_target(module.operation, target)
    assert target_of(parse_module(str(module), "-", new_context()).operation) == target


@pytest.mark.parametrize(("text", "got"), [("", "none"), ('attributes {relax.target = {cpu = "x"}}', '{cpu = "x"}')])
def test_a_module_that_does_not_say_what_it_is_for(text: str, got: str) -> None:
    module = parse_module(f"module {text} {{}}", "-", new_context())
    with pytest.raises(RelaxError) as caught:
        target_of(module.operation)
    assert caught.value.args[0] == f"expected a module with relax.target, which relax-set-target writes, got {got}"
