"""Linalg operations on buffers become loops over vectors: the templates of this folder applied to a module.

Before::

    linalg.generic {indexing_maps = [...], iterator_types = ["parallel"]} ins(%x : memref<64xf32>) outs(%y : memref<64xf32>) {
    ^bb0(%a: f32, %b: f32):
      %0 = arith.addf %a, %a : f32
      linalg.yield %0 : f32
    }

after, for vectors of 512 bits::

    scf.for %i = %c0 to %c64 step %c16 {
      %0 = vector.load %x[%i] : memref<64xf32>, vector<16xf32>
      %1 = arith.addf %0, %0 : vector<16xf32>
      vector.store %1, %y[%i] : memref<64xf32>, vector<16xf32>
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ....dialect.bindings import func, ir
from ....dialect.functions import body_of, functions, name_of
from ....dialect.reports import report
from ....dialect.reports.kernels import KernelSection
from ...kernels.emit.emitter import Emitter
from ...kernels.emit.memory import Memory
from ...kernels.structure.as_generic import as_generic, linalg_operations
from ...kernels.structure.match import find_group
from ...kernels.structure.nest import collapse, read_nest
from ...kernels.structure.words import as_words
from ...lowering_pass import LoweringPass
from ...marks import CONTRACTION, KERNEL, ROWS
from ...set_target import target_of
from ...target import Target
from ..llvm_worker import HOISTED
from .contraction.kernel import lower_group
from .nest.generic_loops import Loops
from .nest.plain_loops import has_template, lower_to_plain_loops
from .nest.plan_loops import checked_nest_plan
from .nest.row_kernels import lower_rows
from .nest.streaming import StreamedLoops
from .nest.transposed_loops import TiledLoops
from .package_templates import lower_by_packages
from .windows.kernel import lower_windows
from .winograd.kernel import lower_winograd

__all__ = ["LowerKernels", "lower_kernels"]


@dataclass(frozen=True)
class LowerKernels(LoweringPass):
    """Puts loops over vectors in the place of linalg operations on buffers, and of copies.

    Attributes:
        all: of every function; else of kernels alone.
    """

    name: ClassVar[str] = "relax-lower-kernels"
    dialects: ClassVar[tuple[str, ...]] = ("omp",)
    all: bool = False

    def run(self, op: ir.Operation) -> None:
        lower_kernels(op, [f for f in functions(op) if self.all or KERNEL in f.attributes], target_of(op))


def lower_kernels(module: ir.Operation, chosen: Sequence[func.FuncOp], target: Target) -> None:
    """Replaces, in place, each linalg operation (and memref.copy) of some functions of a module; math stays as it is.

    Raises:
        RelaxError: an operation is none on buffers, or of no structure, at its location; the module is then half lowered.
    """
    chosen = as_generic(module, chosen)
    taken = set[str]()
    for function in chosen:
        if lower_by_packages(function, target):
            taken.add(name_of(function))
        else:
            _lower_function(function, target)
    if taken:
        report.change(KernelSection, lambda section: section.without_plans(taken))


def _lower_function(function: func.FuncOp, target: Target) -> None:
    found = linalg_operations(function.operation)
    block = body_of(function)
    if not found or block is None:
        return
    if not all(map(has_template, found)):
        lower_to_plain_loops(function)
        return
    emitter = Emitter(block, target.openmp)
    if lower_windows(found, emitter, target):
        return
    if lower_winograd(found, emitter, target):
        _mark_hoisted(function)
        return
    if ROWS in function.attributes:
        lower_rows(found, ir.IntegerAttr(function.attributes[ROWS]).value, emitter, target)
        return
    is_hoisted = any(CONTRACTION in op.attributes for op in found)
    for operation in _lower_contractions(found, emitter, target):
        is_hoisted |= _lower_generic(operation, emitter, target)
    if is_hoisted:
        _mark_hoisted(function)


def _mark_hoisted(function: func.FuncOp) -> None:
    """Says that nothing can be moved out of loops, nor be shared in them: templates of products and of tiles see to that."""
    function.attributes["llvm.passthrough"] = ir.ArrayAttr.get([ir.StringAttr.get(HOISTED, function.context)], function.context)


def _lower_contractions(found: list[ir.Operation], emitter: Emitter, target: Target) -> list[ir.Operation]:
    """Lowers contractions with their fills and epilogues; returns the operations that remain."""
    groups = [find_group(op, [o.operation for o in op.block.operations]) for op in found if CONTRACTION in op.attributes]
    members = [{found.index(op) for op in (g.fill, g.contraction, g.epilogue) if op is not None} for g in groups]
    gone = set[int]()
    for group, positions in zip(groups, members, strict=True):
        if lower_group(group, emitter, target):
            gone |= positions
    return [op for i, op in enumerate(found) if i not in gone]


def _lower_generic(operation: ir.Operation, emitter: Emitter, target: Target) -> bool:
    """Replaces a linalg.generic on buffers by loops; whether these turn tiles round, in registers.

    Raises:
        RelaxError: it cannot be handled; the function is then left half lowered.
    """
    with emitter.before(operation):
        memory = Memory(emitter)
        nest = as_words(collapse(read_nest(operation, memory)), memory)
        plan = checked_nest_plan(nest, target)
        kind = StreamedLoops if plan.streamed else Loops if plan.tile is None else TiledLoops
        kind(nest, plan, emitter, memory).build()
    operation.erase()
    return kind is TiledLoops
