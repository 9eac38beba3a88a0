"""Passes as the command line names them: building pipelines from flags, listing what there is, saving what failed."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING

from ..dialect.errors import RelaxError
from ..weights.files import replacing
from .print_ir import named_passes, printing, prints_around

if TYPE_CHECKING:
    from ..debugging.semantics import SemanticsCheck
    from ..dialect.bindings import ir
    from ..dialect.passes.manager import Pipeline
    from .options import Options

__all__ = ["build", "is_pass", "passes", "pipeline_text", "reproducer_pipeline", "write_reproducer"]

_UNKNOWN = "does not refer to a registered pass"
_RESTRICTED = re.compile(r"restricted to '([^']+)'")
_PIPELINE = re.compile(rb'mlir_reproducer:\s*\{\s*pipeline:\s*"((?:[^"\\]|\\.)*)"')


def is_pass(name: str) -> bool:
    """Whether a pass of that name exists, ours or MLIR's."""
    return _is_ours(name) or _UNKNOWN not in (_refusal(name) or "")


def pipeline_text(options: Options) -> str | None:
    """The pipeline that the flags ask for, None without any. An upstream pass that only runs on one op is nested under it."""
    if options.pass_pipeline is not None:
        return options.pass_pipeline
    if not options.passes:
        return None
    return f"builtin.module({','.join(_element(name, values) for name, values in options.passes)})"


def build(text: str, options: Options, context: ir.Context, check: SemanticsCheck | None = None) -> Pipeline:
    """The pipeline, with printing and timing as asked; ``check`` is told of its passes. Raises RelaxError for wrong text."""
    from ..dialect.passes import manager

    _register_lowering()
    before, after = named_passes(options, is_pass)
    named = prints_around(options, before, after) if before or after else None
    with manager.observing(check.after) if check else nullcontext():
        pipeline = manager.build(text, context, named)
    pipeline.enable_verifier(options.verify_each)
    if named is None and options.prints_ir:
        pipeline.enable_ir_printing(**printing(options))
    if options.mlir_timing:
        pipeline.enable_timing()
    if options.mlir_pass_statistics:
        pipeline.enable_statistics()
    return pipeline


def passes() -> Iterator[tuple[str, str]]:
    """Names and one-line descriptions of all passes: ours, then MLIR's, of which only the names are known."""
    from ..dialect.passes.registry import listed, upstream_passes

    _register_lowering()
    for name, pass_class in listed():
        about = str(pass_class) if isinstance(pass_class, RelaxError) else (pass_class.__doc__ or "").strip().split("\n", 1)[0]
        yield name, about
    for name in upstream_passes():
        yield name, ""


def write_reproducer(path: str, module: ir.Module, text: str, verify_each: bool) -> None:
    """Saves a module with the pipeline to run on it, in the form that ``--run-reproducer`` reads, mlir-opt's too."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\0A")
    resource = f'mlir_reproducer: {{\n      pipeline: "{escaped}",\n      disable_threading: true,\n      verify_each: '
    resource += f"{str(verify_each).lower()}\n    }}"
    content = f"{module.operation.get_asm()}\n{{-#\n  external_resources: {{\n    {resource}\n  }}\n#-}}\n"
    with replacing(path) as file:
        file.write(content.encode())


def reproducer_pipeline(text: bytes) -> str:
    """The pipeline in a reproducer. Raises RelaxError when there is none."""
    match = _PIPELINE.search(text)
    if not match:
        raise RelaxError("expected a crash reproducer with a 'mlir_reproducer' resource, got a plain module")
    return re.sub(r"\\(0A|.)", lambda m: "\n" if m[1] == "0A" else m[1], match[1].decode(errors="replace"))


def _is_ours(name: str) -> bool:
    from ..dialect.passes.registry import is_registered

    _register_lowering()
    return is_registered(name)


@functools.cache
def _context() -> ir.Context:
    """One for all questions about names; it takes 10 ms to make."""
    from ..dialect.bindings import ir

    return ir.Context()


@functools.cache
def _refusal(element: str) -> str | None:
    """Why MLIR cannot run this pipeline element on a module, None when it can."""
    from ..dialect.bindings import passmanager

    with _context():
        try:
            passmanager.PassManager("builtin.module").add(element)
        except ValueError as error:
            return str(error)
    return None


def _element(name: str, values: str) -> str:
    text = f"{name}{{{values}}}" if values else name
    if _is_ours(name):
        return text
    restricted = _RESTRICTED.search(_refusal(text) or "")
    return f"{restricted[1]}({text})" if restricted else text


def _register_lowering() -> None:
    """Makes the lowering's passes known; its modules are imported when a pass of theirs runs."""
    from ..lowering.passes import register_passes

    register_passes()
