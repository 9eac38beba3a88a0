"""A relax module to object code and the manifest that says how to call it and how to prepare its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..dialect.bindings import ir
from ..dialect.errors import DiagnosticError, RelaxError
from ..dialect.passes import manager
from .cpu.codegen import object_code
from .cpu.pipeline import lowering_pipeline
from .cpu.translate import translate
from .make_manifest import make_manifest
from .manifest import TargetSpec
from .passes import register_passes
from .set_target import set_target, target_of
from .target import Target

__all__ = ["Compiled", "compile_module", "lower", "manifest_of"]


@dataclass(frozen=True)
class Compiled:
    """Object code and its manifest (version 1, see ``lowering/README.md``)."""

    object_code: bytes
    manifest: dict[str, Any]


def compile_module(module: ir.Operation, target: Target, checked: bool = False) -> Compiled:
    """Compiles every public function, and the preparation of the weights of those that have a transform function.

    Args:
        module: a module of relax functions; it is consumed.
        target: what to generate code for.
        checked: whether every access of the code says that it is inside of its buffer.

    Raises:
        RelaxError: a function cannot be compiled, with the location of the op that is to blame.
    """
    set_target(module, target)
    lower(module, lowering_pipeline(checked))
    manifest = manifest_of(module)
    return Compiled(object_code(translate(module, manifest), target), manifest)


def lower(module: ir.Operation, pipeline: str) -> None:
    """Runs passes of ours and of MLIR in place, verifying before MLIR's.

    Raises:
        RelaxError: what a pass raised, or MLIR said.
    """
    register_passes()
    with manager.verifying_before_upstream():
        try:
            manager.run_in_place(module, pipeline)
        except DiagnosticError as error:
            if isinstance(error.__cause__, RelaxError):
                raise error.__cause__ from None
            raise


def manifest_of(module: ir.Operation) -> dict[str, Any]:
    """The manifest of a module that is lowered, a JSON object without a report."""
    target = target_of(module)
    return make_manifest(module, TargetSpec(target.triple, target.cpu, target.features, target.openmp))
