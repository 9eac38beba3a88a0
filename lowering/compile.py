"""A relax module to code and the manifest that says how to call it and how to prepare its weights, whatever runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..dialect.bindings import ir
from ..dialect.errors import DiagnosticError, RelaxError
from ..dialect.passes import manager
from .compiler import Compiler, Listener
from .make_manifest import make_manifest
from .passes import register_passes

__all__ = ["Compiled", "compile_module", "lower", "manifest_of"]


@dataclass(frozen=True)
class Compiled:
    """Code and its manifest (version 1, see ``lowering/README.md``)."""

    code: bytes
    manifest: dict[str, Any]


def compile_module(
    module: ir.Operation, compiler: Compiler, checked: bool = False, listener: Listener | None = None
) -> Compiled:  # fmt: skip
    """Compiles every public function, and the preparation of the weights of those that have a transform function.

    Args:
        module: a module of relax functions; it is consumed.
        compiler: of the target to generate code for.
        checked: whether every access of the code says that it is inside of its buffer.
        listener: is told what code is made of.

    Raises:
        RelaxError: a function cannot be compiled, with the location of the op that is to blame.
    """
    lower(module, compiler.pipeline(checked))
    manifest = manifest_of(module, compiler)
    return Compiled(compiler.code(module, manifest, listener), manifest)


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


def manifest_of(module: ir.Operation, compiler: Compiler) -> dict[str, Any]:
    """The manifest of a module that is lowered, a JSON object without a report."""
    part = compiler.manifest_part(module)
    return make_manifest(module, compiler.spec) | ({compiler.spec.backend: part} if part else {})
