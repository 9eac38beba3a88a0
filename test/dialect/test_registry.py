"""Every op exists in its four places under its family's name: definition, reference, lowering and tests."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

from relaxir.dialect import ops  # noqa: F401  fills the dialect
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.op import EffectOp
from relaxir.dialect.reference import registry
from relaxir.dialect.relax import Relax
from relaxir.lowering.linalg import registry as linalg
from support.op_samples import lit_file

TESTS = Path(__file__).resolve().parent.parent
OPERATIONS: list[type[EffectOp]] = list(Relax.operations)


def family(op: type[EffectOp]) -> str:
    return op.__module__.rsplit(".", 1)[-1]


def name(op: type[EffectOp]) -> str:
    return op.OPERATION_NAME.removeprefix("relax.")


def test_there_are_ops() -> None:
    assert len(OPERATIONS) > 100
    assert len({name(op) for op in OPERATIONS}) == len(OPERATIONS)


def test_families_have_one_list() -> None:
    assert {family(op) for op in OPERATIONS} == set(registry.FAMILIES) == set(linalg.FAMILIES)


@pytest.mark.parametrize("op", OPERATIONS, ids=name)
def test_definition_has_a_docstring_of_its_own(op: type[EffectOp]) -> None:
    text = op.__dict__.get("__doc__")
    assert text
    assert text.strip().splitlines()[0].rstrip().endswith((".", ":"))


@pytest.mark.parametrize("op", OPERATIONS, ids=name)
def test_reference_is_in_the_family_file(op: type[EffectOp]) -> None:
    found = registry.reference_of(name(op))
    assert found.family == family(op)


@pytest.mark.parametrize("op", OPERATIONS, ids=name)
def test_reference_takes_the_attributes(op: type[EffectOp]) -> None:
    parameters = inspect.signature(registry.reference_of(name(op)).function).parameters.values()
    keywords = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert keywords - {"shape", "dtype"} == set(op.attrs) - {"dtype"}


@pytest.mark.parametrize("op", OPERATIONS, ids=name)
def test_lowering_is_in_the_family_file(op: type[EffectOp]) -> None:
    """Or in a part that the file lists. That of lazy IO says which pass takes the op away before."""
    package = linalg.__name__.rsplit(".", 1)[0]
    parts = importlib.import_module(f"{package}.{family(op)}").__all__
    allowed = {f"{package}.{module}" for module in (family(op), *parts)}
    assert linalg.lowering_of(op.OPERATION_NAME).__module__ in allowed


@pytest.mark.parametrize("op", OPERATIONS, ids=name)
def test_round_trip_is_tested(op: type[EffectOp]) -> None:
    assert f'"relax.{name(op)}"(' in lit_file(family(op)).read_text()


@pytest.mark.parametrize("op", OPERATIONS, ids=name)
def test_diagnostics_are_tested(op: type[EffectOp]) -> None:
    if op.infer is None and op.check is None:
        return
    invalid = lit_file(family(op)).with_name(f"invalid-{lit_file(family(op)).name}").read_text()
    shared = (TESTS / "dialect" / "invalid-core.mlir").read_text()
    assert f"'relax.{name(op)}' op" in invalid + shared


@pytest.mark.parametrize("op", OPERATIONS, ids=name)
def test_reference_is_tested(op: type[EffectOp]) -> None:
    text = (TESTS / "reference" / f"test_{family(op)}.py").read_text()
    assert re.search(rf'"{name(op)}"|\b{name(op)}\b', text)


def test_no_reference_is_left_over() -> None:
    assert set(registry.families_loaded()) == {name(op) for op in OPERATIONS}


def test_no_lowering_is_left_over() -> None:
    assert set(linalg.lowerings()) <= {op.OPERATION_NAME for op in OPERATIONS}


def test_an_op_without_reference() -> None:
    with pytest.raises(RelaxError, match=r"expected an op with reference semantics, got 'relax\.nothing'"):
        registry.reference_of("nothing")
