"""Linalg on tensors to object code for a CPU: outline, bufferize, kernels, LLVM."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.functions import body_of, find_function, functions, name_of
from ..drop_empty import drop_empty
from ..fusion.flatten_epilogues import flatten_epilogues
from ..fusion.outline_kernels import outline_kernels, restore_destinations
from ..fusion.repeat_producers import prepare_fusion
from ..fusion.report_kernels import relax_ops, report_kernels
from ..marks import KERNEL
from ..move_checks_first import move_checks_first
from ..signature import Signature
from ..target import Target
from .arena import Arena
from .bufferize import add_destinations, bufferize, use_arena
from .carry_in_place import carry_in_place
from .check_accesses import FAULT_BYTES, check_accesses
from .codegen import llvm_ir, object_code
from .kernels import lower_kernels, lower_operations
from .lend_memory import lend_memory
from .lower_checks import check_allocations, lower_checks
from .share_copies import share_copies
from .share_frames import share_frames
from .share_loops import share_loops
from .upstream import run_upstream
from .wrapper import body_name, entry_point

__all__ = ["CompiledCode", "compile_linalg"]

_SIMPLIFY = "builtin.module(inline,canonicalize,cse)"
_FUSE = "builtin.module(func.func(linalg-fuse-elementwise-ops,resolve-shaped-type-result-dims),canonicalize,cse,symbol-dce)"
_FUSE_EPILOGUES = "builtin.module(func.func(linalg-fuse-elementwise-ops),canonicalize,cse)"
_TO_CF = "builtin.module(fold-memref-alias-ops,cse,expand-strided-metadata,lower-affine,convert-scf-to-cf)"
_TO_LLVM = (
    "builtin.module(convert-math-to-llvm,convert-math-to-libm,convert-vector-to-llvm{reassociate-fp-reductions=true},"
    "finalize-memref-to-llvm{use-aligned-alloc=true},convert-to-llvm,canonicalize,cse,"
    "reconcile-unrealized-casts)"
)


@dataclass(frozen=True)
class CompiledCode:
    """Object code with one C entry point per signature.

    Attributes:
        object_code: the object file.
        arenas: the arena of each entry, by function name.
    """

    object_code: bytes
    arenas: Mapping[str, Arena]


def compile_linalg(
    module: ir.Operation,
    signatures: Sequence[Signature],
    target: Target,
    told: Collection[str] = (),
    constants: Callable[[Mapping[str, Arena]], str] = lambda arenas: "",
    sites: list[str] | None = None,
) -> CompiledCode:
    """Compiles the functions of the signatures; the module is consumed.

    Args:
        module: linalg on plain tensors, as ``relax-to-linalg`` leaves it.
        signatures: the entries, as they were before encodings were dropped.
        target: what to generate code for.
        told: the functions whose kernels the report lists.
        constants: LLVM IR text to put beside the functions, given their arenas.
        sites: what accesses there are, for code that checks all of them, is added to this list; None: it checks none.

    Raises:
        RelaxError: an op cannot be lowered, with its location.
    """
    with module.context, ir.Location.unknown():
        drop_empty(module)
        run_upstream(module, _SIMPLIFY)
        move_checks_first(module)
        drop_empty(module)
        prepare_fusion(module)
        run_upstream(module, _FUSE)
        flatten_epilogues(module)
        outline_kernels(module)
        run_upstream(module, _FUSE_EPILOGUES)
        restore_destinations(module)
        report_kernels(module, told)
        share_frames(module)
        shapes = {s.name: [t.shape for t in [*s.inputs, *s.weights]] for s in signatures}
        allocates = carry_in_place(module, shapes)
        for signature in signatures:
            add_destinations(find_function(module, signature.name), {s.result: s.argument for s in signature.state})
        bufferize(module, list(shapes), loops_allocate=allocates)
        share_loops(module, target)
        ops = {name_of(f): relax_ops(f) for f in functions(module)} if sites is not None else {}
        lower_operations(module, [f for f in functions(module) if KERNEL in f.attributes], target)
        lend_memory(module)
        reserved = 0 if sites is None else FAULT_BYTES
        arenas = {s.name: use_arena(find_function(module, s.name), s, reserved) for s in signatures}
        share_copies(module)
        lower_kernels(module, target)
        if sites is not None:
            sites += check_accesses(module, {s.name: len(s.tensors) for s in signatures}, ops)
        _mark_internal(module, signatures)
        run_upstream(module, _TO_CF)
        check_allocations(module)
        lower_checks(module)
        run_upstream(module, _TO_LLVM)
        _check_translatable(module)
        text = llvm_ir(module) + "".join(entry_point(s, arenas[s.name]) for s in signatures) + constants(arenas)
    return CompiledCode(object_code(text, target), arenas)


def _check_translatable(module: ir.Operation) -> None:
    """Raises RelaxError at an op that is not in the LLVM dialect: translating it would crash the process."""

    def visit(op: ir.Operation) -> ir.WalkResult:
        if not op.name.startswith(("llvm.", "omp.", "builtin.module")):
            left.append((op.name, str(op.location)))
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    left: list[tuple[str, str]] = []
    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    for name, location in left:
        raise RelaxError(f"'{name}' op cannot be lowered to LLVM", location)


def _mark_internal(module: ir.Operation, signatures: Sequence[Signature]) -> None:
    """Kernels stay functions of their own (code size, compile time) and no name of ours but the entries' is visible."""
    bodies = {s.name: body_name(s) for s in signatures}
    for function in functions(module):
        if body_of(function) is None:
            continue
        function.attributes["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
        if KERNEL in function.attributes:
            function.attributes["llvm.no_inline"] = ir.UnitAttr.get()
            del function.attributes[KERNEL]
        if name_of(function) in bodies:
            function.attributes["sym_name"] = ir.StringAttr.get(bodies[name_of(function)])
