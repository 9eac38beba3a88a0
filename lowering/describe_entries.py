"""Writes down what each entry is to its callers, before types forget names and symbols; state then is an input and a result.

Before::

    func.func @main(%x: tensor<?x64xf32, {sym = ["n"]}> {relax.name = "x"}, %w: tensor<64x64xf32> {relax.name = "w"})
        -> (tensor<?x64xf32, {sym = ["n"]}> {relax.name = "y"}) attributes {relax.num_input = 1 : i64}

after (shortened)::

    func.func @main(...) -> (...) attributes {relax.num_input = 1 : i64, relax.entry = {
        name = "main", symbol = "relaxir_main", symbols = [{min = 0 : i64, name = "n"}],
        inputs = [{dtype = "f32", name = "x", shape = ["n", 64 : i64]}],
        weights = [{dtype = "f32", name = "w", shape = [64 : i64, 64 : i64]}],
        outputs = [{dtype = "f32", name = "y", shape = ["n", 64 : i64]}], ...}}

A function whose name later passes could give one of theirs, as ``@kernel_0``, becomes ``@kernel_0.entry``: callers know it by
the name in ``relax.entry``. Results whose sizes data decides come in as much memory as they can need, with their sizes
(:mod:`.bound_results`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import ClassVar

from ..dialect.bindings import func, ir
from ..dialect.errors import RelaxError
from ..dialect.functions import KEYWORD, STATE, functions, is_private, name_of
from ..dialect.transforms.cleanup.inlining import unused_symbol
from .bound_results import bound_results
from .boundary import Boundary, argument_symbols
from .check_entries import public_functions
from .entries import Entry, entries_of, entry_of, write_entry
from .lowering_pass import LoweringPass
from .manifest_specs import StateSpec
from .size_checks import inner_sizes

__all__ = ["DescribeEntries", "describe_entries"]

#: Names of functions that passes after this one make, or declare.
_LIKE_OURS = re.compile(r".*_\d+(_device)?|(kernel|relax|extern).*", re.DOTALL)


@dataclass(frozen=True)
class DescribeEntries(LoweringPass):
    """Writes down what each entry is to its callers."""

    name: ClassVar[str] = "relax-describe-entries"

    def run(self, op: ir.Operation) -> None:
        describe_entries(op)


def describe_entries(module: ir.Operation) -> None:
    """Describes every public function that is not described yet, in place.

    Raises:
        RelaxError: something at its boundary is no tensor, has sizes that inputs do not determine, or does not go together with
            that of another function.
    """
    private = [f for f in functions(module) if is_private(f)]
    for function in public_functions(module):
        if entry_of(function) is None:
            _describe(function, private)
    found = [entry for _, entry in entries_of(module)]
    _check_state(found)
    _check_symbols(found)


def _describe(function: func.FuncOp, private: list[func.FuncOp]) -> None:
    bounded = bound_results(function, argument_symbols(function))
    boundary = Boundary.of(function)
    sizes, memory = inner_sizes(function, set(boundary.symbols), private)
    updates = {s.result: s.argument for s in boundary.state}
    write_entry(function, Entry(replace(boundary.spec(sizes, memory), bounded=tuple(bounded)), updates))
    for attribute in (STATE, KEYWORD):
        if attribute in function.attributes:
            del function.attributes[attribute]
    if _LIKE_OURS.fullmatch(name_of(function)):
        _rename(function)


def _rename(function: func.FuncOp) -> None:
    module = function.operation.parent.operation
    old, taken = name_of(function), {name_of(f) for f in functions(module)}
    new = unused_symbol(f"{old}.entry", taken)
    ir.SymbolTable.replace_all_symbol_uses(old, new, module)
    function.attributes["sym_name"] = ir.StringAttr.get(new)


def _check_state(entries: list[Entry]) -> None:
    """Raises RelaxError when two functions have different state of one name."""
    known: dict[str, tuple[StateSpec, str]] = {}
    for entry in entries:
        for state in entry.spec.state:
            other, where = known.setdefault(state.name, (state, entry.spec.name))
            if (other.array, other.first) != (state.array, state.first):
                raise RelaxError(
                    f"expected one type and first value for state '{state.name}', got others in @{where} and @{entry.spec.name}"
                )


def _check_symbols(entries: list[Entry]) -> None:
    """Raises RelaxError when two functions have one name in C."""
    taken: dict[str, str] = {}
    for entry in entries:
        other = taken.setdefault(entry.spec.symbol, entry.spec.name)
        if other != entry.spec.name:
            raise RelaxError(f"expected function names that differ in C, got @{other} and @{entry.spec.name}")
