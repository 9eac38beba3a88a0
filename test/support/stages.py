"""A compilation taken apart: lowering up to a pass, with other passes or something done to the IR in between, and the rest.

The steps are those of ``rx.compile``, as the texts of pipelines say them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import relaxir as rx
from relaxir.compiler import default_pipeline
from relaxir.dialect.bindings import ir
from relaxir.dialect.passes.pipeline_text import parse_pipeline
from relaxir.dialect.symbolic import Expr
from relaxir.lowering.arena import arena_of
from relaxir.lowering.cpu.codegen import object_code
from relaxir.lowering.cpu.pipeline import lowering_pipeline
from relaxir.lowering.cpu.translate import translate
from relaxir.lowering.entries import entries_of
from relaxir.lowering.lower import lower
from relaxir.lowering.make_manifest import make_manifest
from relaxir.lowering.manifest import Manifest
from relaxir.lowering.manifest_specs import TargetSpec
from relaxir.lowering.set_target import set_target, target_of
from relaxir.lowering.target import Target
from relaxir.runtime.executable import Executable
from relaxir.runtime.library import Library
from relaxir.runtime.threads import find_runtime
from support.kept_kernels import kept

__all__ = ["arena_size", "elements", "executable_of", "llvm_text", "lowered", "target_named"]


def target_named(name: str = "cpu") -> Target:
    """A target as ``rx.compile`` has it."""
    return Target.parse(name, openmp=find_runtime() is not None)


def elements(checked: bool = False) -> list[str]:
    """The passes between relax and LLVM, in order."""
    return [e.text for e in parse_pipeline(lowering_pipeline(checked))]


def lowered(
    module: rx.Module, target: Target | None = None, passes: str | None = None, *, upto: str | None = None,
    checked: bool = False, change: Callable[[list[str]], Sequence[str]] = list,
) -> ir.Operation:  # fmt: skip
    """A module on its way to LLVM; it stays as it is, and what is returned is another one.

    Args:
        module: relax functions.
        target: what for; by default what ``rx.compile`` takes.
        passes: the relax passes, those of ``rx.compile`` by default.
        upto: the pass before the first one of this name is the last one; by default all run.
        checked: for checked code.
        change: the passes that take the place of those there are.
    """
    target = target or target_named()
    laid_out = module.with_weight_layouts(target.weight_layouts)
    made = laid_out.run(default_pipeline() if passes is None else passes)
    operation = made.ir.operation
    set_target(operation, target)
    given = change(elements(checked))
    names = [text.partition("{")[0] for text in given]
    lower(operation, ",".join(given if upto is None else given[: names.index(upto)]))
    return operation


def llvm_text(module: ir.Operation) -> str:
    """The LLVM IR of a module that all passes have run on."""
    return translate(module, _manifest(module))


def _manifest(module: ir.Operation) -> dict[str, Any]:
    target = target_of(module)
    return make_manifest(module, TargetSpec(target.triple, target.cpu, target.features, target.openmp))


def arena_size(module: ir.Operation) -> int | Expr:
    """Scratch memory of ``@main``, in bytes, of a module that uses an arena."""
    (function,) = (f for f, entry in entries_of(module) if entry.spec.name == "main")
    return arena_of(function).size


def executable_of(module: ir.Operation, edit: Callable[[str], str] = str, code_target: Target | None = None) -> Executable:
    """An executable of a module that all passes have run on.

    Args:
        module: as :func:`lowered` gives it.
        edit: changes the LLVM IR.
        code_target: whose instructions are generated, if it is not the module's target.
    """
    manifest = _manifest(module)
    with kept():
        code = object_code(edit(translate(module, manifest)), code_target or target_of(module)).archive()
    read = Manifest.of(manifest)
    return Executable(manifest, Library.from_object(code, read.symbols, read.target.openmp), object_code=code)
