"""Every op exists in its four places under its family's name: definition, reference, lowering and tests."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from relaxir import dialect, lowering
from relaxir.dialect import ops  # noqa: F401  fills the dialect
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.op import EffectOp
from relaxir.dialect.reference import registry
from relaxir.dialect.relax import Relax
from relaxir.lowering.linalg import registry as linalg
from support.op_samples import lit_file

TESTS = Path(__file__).resolve().parent.parent
OPERATIONS: list[type[EffectOp]] = list(Relax.operations)

#: Where more than two ops are named in one table outside of the four places, and why a new op need not be added: what an op
#: *is* its class declares, these say what one pass does with the ops that it is about.
TABLES = {
    "analysis/index_range.py": "ops that positions are made, moved and put together with: of others nothing is known",
    "analysis/integer_bits.py": "ops that integers are put together with: of others nothing is known but the width",
    "transforms/cleanup/canonical_patterns.py": "rewrites, each of one op",
    "transforms/devices/uses.py": "ops that are about devices, or callbacks",
    "transforms/packing/block_movement.py": "rewrites, each of one op: a growth is not sunk through others",
    "transforms/packing/group_packed_rows.py": "products whose kernels read pairs of rows: weights of others stay as they are",
    "transforms/parallel/cut_rules.py": "rules, each of some ops: others work on whole tensors",
    "transforms/parallel/weight_math_cuts.py": "rules, each of one op: weights behind others stay whole",
    "transforms/precision/quantize_weights.py": "searches, and ops that routers are looked for through: not through others",
    "transforms/products/axis_moves.py": "ops that products are looked for through: not through others",
}


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
    assert keywords - {"shape", "dtype", "results"} == set(op.attrs) - {"dtype"}


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


def _named_op(node: ast.expr) -> str | None:
    """The op that an expression names, by class or by name; of a tuple, its first part."""
    if isinstance(node, ast.Tuple) and node.elts:
        return _named_op(node.elts[0])
    if isinstance(node, ast.Attribute):
        return _named_op(node.value) if node.attr == "OPERATION_NAME" else node.attr
    return node.id if isinstance(node, ast.Name) else node.value if isinstance(node, ast.Constant) else None


def _union(node: ast.expr) -> list[ast.expr]:
    return [*_union(node.left), *_union(node.right)] if isinstance(node, ast.BinOp) else [node]


def _tables(source: str, short: bool = True) -> list[list[str]]:
    """The ops that each collection of ops in a file names; ``short`` for names without ``relax.``, too."""
    names = {n for op in OPERATIONS for n in (op.__name__, op.OPERATION_NAME, *([name(op)] if short else []))}
    found: list[list[str]] = []
    for node in ast.walk(ast.parse(source)):
        items: list[Any] = []
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            items = node.elts
        elif isinstance(node, ast.Dict):
            items = node.keys
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            items = _union(node)
        ops_named = [n for item in items if item is not None and (n := _named_op(item)) in names]
        if len(ops_named) > 2:
            found.append(ops_named)
    return found


def test_what_an_op_is_stands_on_its_class() -> None:
    """No table elsewhere wants a new op: what it costs, how it fails, rounds, reads images its class says."""
    found: set[str] = set()
    for folder in (Path(dialect.__file__).parent, Path(lowering.__file__).parent):
        files = [p for p in folder.rglob("*.py") if p.relative_to(folder).parts[0] not in ("ops", "reference", "linalg")]
        # Kernels name functions of the math dialect: exp, sin, log.
        found |= {str(p.relative_to(folder)) for p in files if _tables(p.read_text(), short=folder.name == "dialect")}
    assert found == set(TABLES)


def test_tables_of_ops_are_found() -> None:
    assert _tables('X = {"relax.add": 1, "relax.take": 2, "relax.tril": 3}') == [["relax.add", "relax.take", "relax.tril"]]
    assert _tables("X = Add | ops.Take | Tril.OPERATION_NAME") == [["Add", "Take", "Tril"]]
    assert _tables("X = ((Add, f), (Take, g), (Tril, h))") == [["Add", "Take", "Tril"]]
    assert _tables("X = (Add, Take)") == []
