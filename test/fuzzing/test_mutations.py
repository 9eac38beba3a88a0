"""The faults of ``make mutants`` are faults: each changes what a program does, and nothing of what only is read."""

from __future__ import annotations

import ast

from fuzzing.mutants import drawn, stages
from fuzzing.mutations import mutations

SOURCE = '''
"""Text."""
from os import path

def f(x: list[int] = [1]) -> bool:
    """Text."""
    if not x or len(x) > 2:
        raise ValueError(f"expected {len(x) + 1}")
    x.append(3)
    return any(y == 0 for y in x) and path is not None
'''


def test_all_faults_of_a_function():
    found = list(mutations(SOURCE))
    assert len({m.text for m in found}) == len(found)
    assert [(m.line, m.kind) for m in found] == [
        (9, "statement left out"),
        (5, "a number one more"),
        (7, "condition negated"),
        (8, "statement left out"),
        (7, "and as or, or as and"),
        (7, "not left out"),
        (7, "Gt as GtE"),
        (7, "a number one more"),
        (9, "a number one more"),
        (10, "and as or, or as and"),
        (10, "any as all"),
        (10, "Eq as NotEq"),
        (10, "a number one more"),
        (10, "IsNot as Is"),
    ]
    assert all(ast.get_docstring(ast.parse(m.text)) == "Text." for m in found)


def test_faults_are_drawn_alike_again():
    first = [str(m) for m in drawn(3, 4, "dialect/transforms/cleanup")]
    assert first == [str(m) for m in drawn(3, 4, "dialect/transforms/cleanup")]
    (mutant,) = drawn(3, 1, "dialect/transforms/cleanup/inline.py")
    assert [name for name, _ in stages(mutant.path)][:2] == ["its lit tests", "lit tests"]
