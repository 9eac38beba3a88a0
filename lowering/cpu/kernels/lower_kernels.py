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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ....dialect.bindings import func, ir, passmanager
from ....dialect.errors import from_mlir_error
from ....dialect.functions import body_of, functions
from ....dialect.plugins import KERNELS, load
from ...kernels.emit.emitter import Emitter
from ...kernels.emit.memory import Memory
from ...kernels.structure.match import find_group
from ...kernels.structure.nest import collapse, read_nest
from ...lowering_pass import LoweringPass
from ...marks import CONTRACTION, KERNEL, ROWS
from ...set_target import target_of
from ...target import Target
from .contraction.kernel import lower_group
from .nest.generic_loops import Loops
from .nest.plain_loops import has_template, lower_to_plain_loops
from .nest.row_kernels import lower_rows
from .nest.streaming import StreamedLoops
from .nest.transposed_loops import TiledLoops
from .nest.vector_plan import make_plan

__all__ = ["LowerKernels", "Template", "lower_kernels"]

#: A template of another package (``relaxir.kernels``): it is asked before ours, with a function and what it is lowered for.
#: It puts its own code in the place of all linalg operations of the function and returns True, or changes nothing and
#: returns False, as for a function without any.
Template = Callable[[func.FuncOp, Target], bool]


@dataclass(frozen=True)
class LowerKernels(LoweringPass):
    """Puts loops over vectors in the place of linalg operations on buffers, and of copies.

    Attributes:
        all: of every function; else of kernels alone.
    """

    name: ClassVar[str] = "relax-lower-kernels"
    all: bool = False

    def run(self, op: ir.Operation) -> None:
        lower_kernels(op, [f for f in functions(op) if self.all or KERNEL in f.attributes], target_of(op))


def lower_kernels(module: ir.Operation, chosen: Sequence[func.FuncOp], target: Target) -> None:
    """Replaces, in place, each linalg operation (and memref.copy) of some functions of a module; math stays as it is.

    Raises:
        RelaxError: an operation is none on buffers, or of no structure, at its location; the module is then half lowered.
    """
    for function in chosen:
        _copies_to_generic(function.operation)
    _generalize(module, chosen)
    others: tuple[Template, ...] = load(KERNELS)
    for function in chosen:
        if not any(lower(function, target) for lower in others):
            _lower_function(function, target)


def _lower_function(function: func.FuncOp, target: Target) -> None:
    found = _linalg_operations(function.operation)
    block = body_of(function)
    if not found or block is None:
        return
    if not all(map(has_template, found)):
        lower_to_plain_loops(function)
        return
    emitter = Emitter(block, target.openmp)
    if ROWS in function.attributes:
        lower_rows(found, ir.IntegerAttr(function.attributes[ROWS]).value, emitter, target)
        return
    for operation in _lower_contractions(found, emitter, target):
        _lower_generic(operation, emitter, target)


def _lower_contractions(found: list[ir.Operation], emitter: Emitter, target: Target) -> list[ir.Operation]:
    """Lowers contractions with their fills and epilogues; returns the operations that remain."""
    groups = [find_group(op, [o.operation for o in op.block.operations]) for op in found if CONTRACTION in op.attributes]
    members = [{found.index(op) for op in (g.fill, g.contraction, g.epilogue) if op is not None} for g in groups]
    gone = set[int]()
    for group, positions in zip(groups, members, strict=True):
        if lower_group(group, emitter, target):
            gone |= positions
    return [op for i, op in enumerate(found) if i not in gone]


def _linalg_operations(function: ir.Operation) -> list[ir.Operation]:
    """The outermost linalg operations of a function, in order."""
    return _found(function, lambda name: name.startswith("linalg."))


def _found(function: ir.Operation, is_wanted: Callable[[str], bool]) -> list[ir.Operation]:
    found = list[ir.Operation]()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if is_wanted(operation.name):
            found.append(operation)
            return ir.WalkResult.SKIP
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _lower_generic(operation: ir.Operation, emitter: Emitter, target: Target) -> None:
    """Replaces a linalg.generic on buffers by loops.

    Raises:
        RelaxError: it cannot be handled; the function is then left half lowered.
    """
    with emitter.before(operation):
        memory = Memory(emitter)
        nest = collapse(read_nest(operation, memory))
        plan = make_plan(nest, target)
        kind = StreamedLoops if plan.streamed else Loops if plan.tile is None else TiledLoops
        kind(nest, plan, emitter, memory).build()
    operation.erase()


def _generalize(module: ir.Operation, chosen: Sequence[func.FuncOp]) -> None:
    """Named linalg operations become linalg.generic."""
    names = {op.name for f in chosen for op in _linalg_operations(f.operation)}
    if names <= {"linalg.generic"}:
        return
    try:
        with module.context:
            passmanager.PassManager.parse("builtin.module(func.func(linalg-generalize-named-ops))").run(module)
    except ir.MLIRError as error:
        raise from_mlir_error(error) from error


def _copies_to_generic(function: ir.Operation) -> None:
    for copy in _found(function, lambda name: name == "memref.copy"):
        source, destination = copy.operands
        _copy_generic(copy, source, destination)
        copy.erase()


def _copy_generic(at: ir.Operation, source: ir.Value, destination: ir.Value) -> None:
    rank = ir.MemRefType(source.type).rank
    context = at.context
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank, context))
    attributes = {
        "indexing_maps": ir.ArrayAttr.get([identity, identity], context),
        "iterator_types": ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>", context)] * rank, context),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1], context),
    }
    generic = ir.Operation.create(
        "linalg.generic",
        operands=[source, destination],
        attributes=attributes,
        regions=1,
        loc=at.location,
        ip=ir.InsertionPoint(at),
    )
    kinds = [ir.MemRefType(v.type).element_type for v in (source, destination)]
    block = generic.regions[0].blocks.append(*kinds, arg_locs=[at.location] * 2)
    ir.Operation.create("linalg.yield", operands=[block.arguments[0]], loc=at.location, ip=ir.InsertionPoint(block))
