"""Patterns on MLIR's drivers: what the drivers promise, and which passes go through them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.ops import Abs, Add, Exp, Negative
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager
from relaxir.dialect.passes.rewriting import Rewriter, greedily, observed, walk
from relaxir.dialect.traversal import nested_operations
from support.pattern_passes import PATTERN_PASSES, WHOLE_PASSES
from support.random_pipelines import PASSES

LIT = Path(__file__).parent
T = "tensor<4xf32>"
CHAIN = f"""
  func.func @f(%x: {T}, %c: i1) -> {T} {{
    %0 = "relax.abs"(%x) : ({T}) -> {T}
    %1 = "relax.exp"(%0) : ({T}) -> {T}
    %2 = scf.if %c -> {T} {{
      %3 = "relax.abs"(%1) : ({T}) -> {T}
      scf.yield %3 : {T}
    }} else {{
      scf.yield %1 : {T}
    }}
    %4 = "relax.abs"(%2) : ({T}) -> {T}
    return %4 : {T}
  }}"""


def names(module: ir.Module) -> list[str]:
    return [op.name.removeprefix("relax.") for op in nested_operations(module.operation)][1:]


@pytest.fixture
def module():
    made = parse_module(CHAIN, "-", new_context())
    with made.context, ir.Location.unknown():
        yield made


def negated(op: Abs, rewriter: Rewriter) -> bool:
    with rewriter.before(op):
        return rewriter.replace(op, Negative.create(Abs.create(op.operands[0]).results[0]))


def test_a_walk_tries_each_op_once_and_no_new_one(module):
    run = walk(module.operation, [(Abs, negated)])
    assert run.rewrites == {"negated": 3}
    assert names(module) == ["abs", "negative", "exp", "scf.if", "abs", "negative", "scf.yield", "scf.yield",
                             "abs", "negative", "func.return"]  # fmt: skip


def test_new_ops_have_the_location_of_the_old_one(module):
    before = [str(op.location) for op in nested_operations(module.operation) if op.name == "relax.abs"]
    walk(module.operation, [(Abs, negated)])
    after = [str(op.location) for op in nested_operations(module.operation) if op.name == "relax.abs"]
    assert before == after


def test_the_first_pattern_that_rewrites_is_the_last_one_tried(module):
    tried: list[str] = []

    def refuses(op: Abs, rewriter: Rewriter) -> bool:
        tried.append("refuses")
        return False

    def never(op: Abs, rewriter: Rewriter) -> bool:
        raise AssertionError

    run = walk(module.operation, [(Abs, refuses), (Abs, negated), (Abs, never)])
    assert tried == ["refuses"] * 3
    assert run.patterns == ["refuses", "negated", "never"]


def test_what_was_discarded_goes_at_the_end_unless_it_is_read(module):
    def skip_exp(op: Exp, rewriter: Rewriter) -> bool:
        op.result.replace_all_uses_with(op.operands[0])
        rewriter.discard(op, op.operands[0].owner)  # abs, which is read now by others
        return True

    walk(module.operation, [(Exp, skip_exp)])
    assert names(module)[:2] == ["abs", "scf.if"]


def test_the_op_that_is_tried_next_may_be_discarded(module):
    def merge(op: Abs, rewriter: Rewriter) -> bool:
        following = [use.owner for use in op.result.uses]
        if len(following) != 1 or not isinstance(following[0], Exp):
            return False
        with rewriter.before(op):
            both = Add.create(op.operands[0], op.operands[0]).results[0]
        following[0].result.replace_all_uses_with(both)
        rewriter.discard(op, following[0])
        return True

    walk(module.operation, [(Abs, merge)])
    assert names(module)[:2] == ["add", "scf.if"]


def test_listeners_are_told_what_takes_the_place_of_what(module):
    told: list[tuple[int, int]] = []

    class Listens:
        def replace(self, old, new):
            told.append((len(old), len(new)))

    def skip(op: Abs, rewriter: Rewriter) -> bool:
        rewriter.discard(*([op.operands[0].owner] if not isinstance(op.operands[0], ir.BlockArgument) else []))
        return rewriter.replace(op, [op.operands[0]])

    walk(module.operation, [(Abs, skip)], Listens())
    assert told == [(1, 1)] * 3  # neither exp nor scf.if went: they are read
    assert names(module)[0] == "exp"


@pytest.mark.parametrize("budget", [1, 9, 40])
def test_greedy_patterns_that_undo_each_other_are_an_error(module, budget):
    """Neighbours put each other on the driver's list again: without a budget one sweep never ends."""
    done = []

    def other(op: Abs | Exp, rewriter: Rewriter) -> bool:
        done.append(op.operation.name)
        assert len(done) <= 10 * budget, "the budget does not hold"
        with rewriter.before(op):
            return rewriter.replace(op, type(op).create(op.operands[0]))

    with pytest.raises(RelaxError, match=f"expected endless work to end within {budget} rewrites per sweep, got more"):
        greedily(module.operation, [(Abs, other), (Exp, other)], budget, "endless work")
    assert len(done) == 10 * budget


@pytest.mark.parametrize("budget", [0, -1])
def test_a_greedy_driver_has_a_budget(module, budget):
    with pytest.raises(ValueError, match=f"expected a budget of at least 1 rewrite, got {budget}"):
        greedily(module.operation, [], budget, "nothing")


def test_an_error_in_a_pattern_comes_through(module):
    def fails(op: Abs, rewriter: Rewriter) -> bool:
        raise RelaxError("expected nothing")

    with pytest.raises(RelaxError, match="expected nothing"):
        walk(module.operation, [(Abs, fails)])


def driver_runs(name: str, options: str = "") -> tuple[int, int]:
    """How often a pass runs a driver on the modules of its own lit file, and how often patterns rewrite then."""
    context, runs, rewrites = new_context(), 0, 0
    for part in re.split(r"^// -----.*$", (LIT / f"{name.removeprefix('relax-')}.mlir").read_text(), flags=re.M):
        with observed() as found:
            try:
                manager.run(parse_module(part, "-", context), name + options)
            except RelaxError:
                continue
        runs, rewrites = runs + len(found), rewrites + sum(sum(run.rewrites.values()) for run in found)
    return runs, rewrites


def test_each_pass_says_whether_its_rewrites_are_patterns():
    assert sorted([*PATTERN_PASSES, *WHOLE_PASSES]) == sorted(n for n in PASSES if n in manager.registered())


@pytest.mark.parametrize("name", PATTERN_PASSES)
def test_rewrites_go_through_the_pattern_driver(name):
    assert driver_runs(name, PATTERN_PASSES[name])[1] > 0


@pytest.mark.parametrize("name", WHOLE_PASSES)
def test_whole_function_moves_do_not(name):
    assert driver_runs(name) == (0, 0)
