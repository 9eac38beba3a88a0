"""Kernels built ahead of all else, in groups: other processes compile one group while this one builds the next.

Before, behind the passes that plan kernels::

    call @kernel_0(%x, %y) : (memref<64xf32>, memref<64xf32>) -> ()
    func.func private @kernel_0(%x: memref<64xf32>, %y: memref<64xf32>) attributes {relax.kernel} { linalg.generic ... }

after, with the LLVM IR of the kernel on its way to a process::

    call @kernel.5ee5bb..0(%x, %y) : (memref<64xf32>, memref<64xf32>) -> ()
    func.func private @kernel.5ee5bb..0(memref<64xf32>, memref<64xf32>) attributes {relax.arguments = array<i64: 10, 1, 6>}

A kernel has one text in every module (:mod:`.llvm_units`), so the code is the same as if all were built together.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...dialect.bindings import func, ir
from ...dialect.functions import functions, name_of
from ...dialect.plugins import KERNELS, plugins
from ...dialect.traversal import nested_operations, operations
from ..llvm_text import llvm_ir
from ..lower import lower
from ..marks import CONTRACTION, KERNEL_TEXT
from ..target import Target
from .codegen import UnitQueue, safe_text
from .kernel_arguments import KernelArguments
from .known_kernels import call_declared, count_of, declare, is_apart
from .llvm_units import Unit, units_of
from .pipeline import building_pipeline

__all__ = ["EarlyKernels", "build_early"]

# Parts of all kernels that groups have: another process compiles one while the next is built, and products, which are first,
# take longer to compile. Setting up the passes of a group takes 10 ms. With three groups, of 1, 2 and 4 parts, it waited 0.13
# of ResNet-50's 1.2 s for the second one (two cores of Zen 5).
_GROUPS = (1, 1, 2, 3)


@dataclass
class EarlyKernels:
    """What was taken out of a module.

    Attributes:
        queue: the units that are compiled.
        kept: of kernels that say what they are (``relax.kernel_text``), that text, the symbol and the arguments.
    """

    queue: UnitQueue
    kept: list[tuple[str, str, KernelArguments]] = field(default_factory=list[tuple[str, str, KernelArguments]])


def build_early(module: ir.Operation, target: Target, processes: int) -> EarlyKernels | None:
    """Declares the kernels that know nothing of their module, in place; None where no process would compile them.

    Args:
        module: with buffers and planned kernels.
        target: what to compile for.
        processes: how many others compile.
    """
    if processes == 0 or plugins(KERNELS):  # templates of others tell the report what they take
        return None
    early = EarlyKernels(UnitQueue(target, processes))
    renamed: dict[str, str] = {}
    for group in _groups([f for f in functions(module) if is_apart(f)]):
        renamed |= _build(module, group, target, early)
    call_declared(module, renamed)
    return early


def _groups(kernels: list[func.FuncOp]) -> list[list[func.FuncOp]]:
    """Products first, which LLVM takes longest for."""
    ordered = sorted(kernels, key=lambda f: not any(CONTRACTION in o.attributes for o in nested_operations(f.operation)))
    ends = [len(ordered) * sum(_GROUPS[: i + 1]) // sum(_GROUPS) for i in range(len(_GROUPS))]
    return [g for begin, end in zip([0, *ends], ends, strict=False) if (g := ordered[begin:end])]


def _build(module: ir.Operation, group: list[func.FuncOp], target: Target, early: EarlyKernels) -> dict[str, str]:
    """Lowers kernels apart, hands them to the queue and declares them; returns how they are called now, by name.

    One that callers have to lend memory to stays.
    """
    with module.context, ir.Location.unknown():
        apart = ir.Module.create()
    for name in module.attributes:
        apart.operation.attributes[name] = module.attributes[name]
    for function in group:
        function.operation.clone(ip=ir.InsertionPoint(apart.body))
    lower(apart.operation, building_pipeline())
    with module.context, ir.Location.unknown():
        text = llvm_ir(apart.operation)
    units = {name: unit for unit in units_of(safe_text(text, target)) if unit.is_kernel for name in unit.functions}
    taken = _arguments(apart.operation)
    renamed: dict[str, str] = {}
    used: dict[str, Unit] = {}
    for function in group:
        name = name_of(function)
        unit, arguments = units.get(name), taken.get(name)
        if unit is None or arguments is None or arguments.count != count_of(function):
            continue
        used[unit.name] = unit
        if KERNEL_TEXT in function.attributes:
            early.kept.append((ir.StringAttr(function.attributes[KERNEL_TEXT]).value, unit.name, arguments))
        renamed[name] = declare(module, function, unit.name, arguments)
    early.queue.add({unit.name: unit.text for unit in used.values()})
    return renamed


def _arguments(lowered: ir.Operation) -> dict[str, KernelArguments]:
    """What functions of LLVM's dialect say of their arguments, by name."""
    found: dict[str, KernelArguments] = {}
    for op in operations(lowered.regions[0].blocks[0]):
        arguments = KernelArguments.of(op)
        if arguments is not None:
            found[ir.StringAttr(op.attributes["sym_name"]).value] = arguments
    return found
