"""Refuses a module that cannot be compiled, before anything is done: one without an entry, with recursion, or with lazy IO.

Before::

    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = call @main(%x)
      ...

after: an error, ``'func.func' op expected no recursion in compiled code, got the calls @main -> @main``. A module that can be
compiled stays as it is. A function that is named like one that prepares weights, and does not say whose, is warned of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..dialect.bindings import func, ir
from ..dialect.call_graph import CallGraph
from ..dialect.errors import RelaxError, warn
from ..dialect.functions import TRANSFORM_FOR, body_of, functions, is_private, name_of, transform_targets
from ..dialect.transform_rules import unmarked_transforms
from ..dialect.traversal import nested_operations
from .entries import entry_of
from .linalg.io import refuse_lazy_io
from .lowering_pass import LoweringPass

__all__ = ["CheckEntries", "check_entries", "entry_functions", "public_functions"]


@dataclass(frozen=True)
class CheckEntries(LoweringPass):
    """Refuses modules that cannot be compiled."""

    name: ClassVar[str] = "relax-check-entries"

    def run(self, op: ir.Operation) -> None:
        check_entries(op)


#: Of which all operations are compiled.
_DIALECTS = frozenset({"arith", "cf", "index", "linalg", "math", "relax", "scf"})
#: Those of others that are: none reads or writes memory at places that nothing checks.
_OPERATIONS = frozenset(
    {"affine.apply", "affine.max", "affine.min", "builtin.module", "func.call", "func.func", "func.return"}
    | {f"tensor.{n}" for n in ("cast", "collapse_shape", "dim", "empty", "expand_shape", "extract", "extract_slice",
                               "from_elements", "generate", "insert", "insert_slice", "rank", "splat", "yield")}
)  # fmt: skip


def check_entries(module: ir.Operation) -> None:
    """Raises RelaxError for what cannot be compiled, with the location of the op that is to blame."""
    _refuse_foreign(module)
    refuse_lazy_io(module)
    _refuse_declarations(module)
    _warn_of_unmarked(module)
    _refuse_recursion(module)
    if not entry_functions(module):
        raise RelaxError("expected a public function to compile, got none")


def _refuse_foreign(module: ir.Operation) -> None:
    """Refuses operations of dialects that say where in memory they read and write: nobody checks whether they may."""
    for op in nested_operations(module):
        if op.name not in _OPERATIONS and op.name.partition(".")[0] not in _DIALECTS:
            raise RelaxError(
                f"'{op.name}' op expected an operation that relaxir compiles, got one of another dialect", op.location
            )


def _refuse_declarations(module: ir.Operation) -> None:
    """Refuses calls of functions without a body: what has their names in the process is C, and takes what C passes."""
    declared = {name_of(f) for f in functions(module) if body_of(f) is None}
    for op in nested_operations(module) if declared else ():
        if op.name == "func.call" and (callee := ir.FlatSymbolRefAttr(op.attributes["callee"]).value) in declared:
            raise RelaxError(f"'func.call' op expected a function with a body, got the declaration @{callee}", op.location)


def public_functions(module: ir.Operation) -> list[func.FuncOp]:
    """The functions with a body that callers can name."""
    return [f for f in functions(module) if body_of(f) is not None and not is_private(f)]


def entry_functions(module: ir.Operation) -> list[func.FuncOp]:
    """Those of them that prepare no weights."""
    return [f for f in public_functions(module) if not transform_targets(f) and not _is_step(f)]


def _is_step(function: func.FuncOp) -> bool:
    entry = entry_of(function)
    return entry is not None and entry.is_step


def _refuse_recursion(module: ir.Operation) -> None:
    """Raises RelaxError naming a cycle of calls: memory is planned ahead, so that nothing bounds it where calls may nest."""
    cycle = CallGraph(module).cycle()
    if cycle:
        text = " -> ".join(f"@{name_of(f)}" for f in (*cycle, cycle[0]))
        raise RelaxError(f"'func.func' op expected no recursion in compiled code, got the calls {text}", cycle[0].location)


def _warn_of_unmarked(module: ir.Operation) -> None:
    for function in unmarked_transforms({name_of(f): f for f in functions(module)}):
        what = f"@{name_of(function)} is compiled as an entry and prepares no weights"
        warn(f"'func.func' op has no {TRANSFORM_FOR}: {what}", function.location)
