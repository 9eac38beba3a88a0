"""A relax module to code and the manifest that says how to call it and how to prepare its weights, whatever runs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.traversal import nested_operations
from .compiler import Compiler, Listener
from .make_manifest import make_manifest
from .marks import LOWERED, TRUSTED

__all__ = ["Compiled", "compile_module", "manifest_of", "refuse_lowered"]


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
    refuse_lowered(module)
    compiler.as_one_text = listener is not None
    compiler.lower(module, checked)
    manifest = manifest_of(module, compiler)
    return Compiled(compiler.code(module, manifest, listener), manifest)


def refuse_lowered(module: ir.Operation) -> None:
    """Raises RelaxError for what only lowering says: that iterations are independent, for one, is not looked at again."""
    for op in (module, *nested_operations(module)):
        name = next((n for n in _attributes(op) if n in LOWERED or n.partition(".")[0] in TRUSTED), None)
        if name is not None:
            message = f"'{op.name}' op expected no {name}, which lowering itself writes: relax-opt goes on with lowered modules"
            raise RelaxError(message, op.location)


def _attributes(op: ir.Operation) -> Iterator[str]:
    """The names of an operation's attributes, and of those of its arguments and results."""
    for name, value in op.attributes.items():
        yield name
        for own in ir.ArrayAttr(value) if name in ("arg_attrs", "res_attrs") else ():
            yield from (item.name for item in ir.DictAttr(own))


def manifest_of(module: ir.Operation, compiler: Compiler) -> dict[str, Any]:
    """The manifest of a module that is lowered, a JSON object without a report."""
    part = compiler.manifest_part(module)
    return make_manifest(module, compiler.spec) | ({compiler.spec.backend: part} if part else {})
