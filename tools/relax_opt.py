"""``relax-opt``: MLIR text in, the module after the passes asked for out, with ``mlir-opt``'s flags and diagnostics."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from ..dialect.errors import RelaxError
from ..weights.files import read_stream, remove_output, replacing
from . import pipelines
from .diagnostics import Printer, Sink, SourceText, diagnostics_to, of_error
from .options import Options, help_text, parse, plugin_names
from .pass_plugins import load_plugins
from .standard_streams import flushed, open_standard_streams
from .verify_diagnostics import DiagnosticVerifier

if TYPE_CHECKING:
    from ..debugging.semantics import SemanticsCheck
    from ..dialect.bindings import ir
    from ..dialect.passes.manager import Pipeline

__all__ = ["main", "run"]


def main() -> None:
    """Entry point of the console script."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `relax-opt ... | head` ends quietly
    open_standard_streams()
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    except OSError as error:  # of standard output: files' are RelaxErrors
        print(f"relax-opt: error: {error}", file=sys.stderr)
        code = 1
    code = flushed(code, "relax-opt: ")
    sys.stderr.flush()
    os._exit(code)  # tearing down the interpreter and MLIR takes 20 ms and changes nothing


def run(argv: Sequence[str]) -> int:
    """Does what the arguments say and returns the exit code: 0, or 1 after any error."""
    try:
        load_plugins(plugin_names(argv))  # before: their passes are flags
        options = parse(argv, pipelines.is_pass)
        if _inform(options):
            return 0
        return _process_file(options)
    except RelaxError as error:
        print(f"relax-opt: error: {error}", file=sys.stderr)
        return 1


def _inform(options: Options) -> bool:
    """Answers the flags that need no input."""
    if options.help:
        print(help_text())
    elif options.version:
        print(_version())
    elif options.list_passes:
        print("\n".join(f"  --{name:<44} {about}".rstrip() for name, about in pipelines.passes()))
    elif options.show_dialects:
        print(f"Available Dialects: {', '.join(_dialects())}")
    elif options.export_irdl:
        print(_irdl())
    else:
        return False
    return True


def _process_file(options: Options) -> int:
    from ..dialect.context import new_context
    from ..dialect.reports.report import collecting

    sources = _pieces(_read(options.input), options.split_input_file)
    text = pipelines.reproducer_pipeline(sources[0].text) if options.run_reproducer else pipelines.pipeline_text(options)
    context = new_context()
    context.allow_unregistered_dialects = options.allow_unregistered_dialect
    with context:
        check = _semantics(options)
        pipeline = pipelines.build(text, options, context, check) if text is not None else None
        if pipeline and options.dump_pass_pipeline:
            print(text, file=sys.stderr)  # what MLIR prints of passes in Python is without their options
        with collecting() as report:
            results = [_process(source, Job(context, pipeline, text or "", options, check)) for source in sources]
    failed = any(failed for _, failed in results)
    if not failed or options.output == "-":
        _write(options.output, _joined([output for output, _ in results if output is not None], options))
    if check:
        sys.stdout.flush()
        print(check, file=sys.stderr)
    if options.relax_report and not failed:
        sys.stdout.flush()
        print(json.dumps(report.as_json(), indent=2) if options.relax_report == "json" else report, file=sys.stderr)
    return int(failed)


def _joined(outputs: Sequence[str | bytes], options: Options) -> bytes:
    """Pieces with markers between them. Raises RelaxError for several of bytecode, which has no such thing."""
    if options.emit_bytecode and len(outputs) > 1:
        raise RelaxError(f"expected one module to write as bytecode, got {len(outputs)}")
    separator = f"\n{options.output_split_marker}\n".encode()
    return separator.join(output if isinstance(output, bytes) else output.encode() for output in outputs)


def _semantics(options: Options) -> SemanticsCheck | None:
    if not options.verify_semantics:
        return None
    from ..debugging.semantics import SemanticsCheck

    return SemanticsCheck(options.verify_semantics)


@dataclass(frozen=True)
class Job:
    """What is done with each piece of the input: the pipeline, as built and as text, in one context (each takes 20 ms).

    The pipeline tells ``check`` of each of its passes.
    """

    context: ir.Context
    pipeline: Pipeline | None
    text: str
    options: Options
    check: SemanticsCheck | None = None


def _process(source: SourceText, work: Job) -> tuple[str | bytes | None, bool]:
    """Runs one piece; returns its output, None after an error, and whether it counts as failed."""
    printer = Printer(source)
    if not work.options.verify_diagnostics:
        output = _output(source, work, printer)
        return output, printer.errors > 0
    verifier = DiagnosticVerifier(source, printer, work.options.verify_diagnostics == "only-expected")
    output = _output(source, work, verifier)
    verifier.finish()
    return output, printer.errors > 0


def _output(source: SourceText, work: Job, sink: Sink) -> str | bytes | None:
    """The printed result; None when something failed, which ``sink`` then knows about."""
    from ..dialect.parser import parse_module

    with diagnostics_to(sink, work.context, source.name):
        try:
            trusted = work.options.accept_bytecode
            module = parse_module(b"\n" * source.skipped + source.text, source.name, bytecode=trusted)
            if work.options.no_implicit_module:
                _check_top(source)
            if work.options.verify_roundtrip:
                _check_roundtrip(module, source.name)
            if work.pipeline:
                if work.check:
                    work.check.start(module.operation)
                _run(work.pipeline, module, work.text, work.options)
            return _printed(module, work.options)
        except RelaxError as error:
            for diagnostic in of_error(error):
                sink(diagnostic)
    return None


def _check_top(source: SourceText) -> None:
    """Raises RelaxError where the text is not one module, written out: that is what passes run on."""
    from ..dialect.bindings import ir
    from ..dialect.errors import from_mlir_error

    try:
        top = ir.Operation.parse(source.text.decode())
    except ir.MLIRError as error:
        raise from_mlir_error(error) from None
    if top.operation.name != "builtin.module":
        raise RelaxError(f"expected a module at the top of the input, got '{top.operation.name}'", source.name)


def _run(pipeline: Pipeline, module: ir.Module, text: str, options: Options) -> None:
    from ..dialect.conventions import check_module

    saved = options.mlir_pass_pipeline_crash_reproducer
    if saved:  # before the run: a crash in C++ leaves no time for it
        pipelines.write_reproducer(saved, module, text, options.verify_each)
    try:
        pipeline.run(module)
        if options.verify_each:
            check_module(module)
    except Exception as error:  # a bug in a pass, too: that is what reproducers are for
        if saved:
            error.add_note(f"reproducer generated at '{saved}'")
        raise
    if saved:
        remove_output(saved)


def _check_roundtrip(module: ir.Module, name: str) -> None:
    """Raises RelaxError when printing and parsing, as text or as bytecode, gives another module."""
    from ..dialect.bindings import ir
    from ..dialect.context import new_context
    from ..dialect.errors import from_mlir_error

    want = module.operation.get_asm(enable_debug_info=True)
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    for form, content in (("text", want), ("bytecode", bytecode.getvalue())):
        # In a context of its own: names of resources are those of a context, which gives the second of a name another one.
        with new_context():
            try:
                again = ir.Module.parse(content)
            except ir.MLIRError as error:
                raise from_mlir_error(error) from None
            found = again.operation.get_asm(enable_debug_info=True)
        if found != want:
            pairs = zip_longest(want.splitlines(), found.splitlines(), fillvalue="the end")
            first = next(f"'{b.strip()}' for '{a.strip()}'" for a, b in pairs if a != b)
            raise RelaxError(f"expected the same module back from its {form}, got {first}", name)


def _printed(module: ir.Module, options: Options) -> str | bytes:
    if options.emit_bytecode:
        buffer = io.BytesIO()
        module.operation.write_bytecode(buffer)
        return buffer.getvalue()
    if options.emit == "script":
        from ..script import script

        return script(module).rstrip("\n") + "\n"
    text = module.operation.get_asm(
        large_elements_limit=options.mlir_elide_elementsattrs_if_larger,
        large_resource_limit=options.mlir_elide_resource_strings_if_larger,
        enable_debug_info=options.mlir_print_debuginfo or options.mlir_pretty_debuginfo,
        pretty_debug_info=options.mlir_pretty_debuginfo,
        print_generic_op_form=options.mlir_print_op_generic,
        use_local_scope=options.mlir_print_local_scope,
        use_name_loc_as_prefix=options.mlir_use_nameloc_as_prefix,
        assume_verified=options.verify_each,
    )
    return text.rstrip("\n") + "\n"


def _read(path: str) -> SourceText:
    if path == "-":
        return SourceText("<stdin>", sys.stdin.buffer.read())
    return SourceText(path, read_stream(path, "open input file"))


def _write(path: str, content: bytes) -> None:
    if path != "-":
        with replacing(path, "open output file") as file:
            file.write(content)
        return
    if sys.stdout.isatty() and not _is_text(content):
        raise RelaxError("expected a file or a pipe for bytecode, got a terminal: -o FILE")
    if _is_text(content):
        sys.stdout.write(content.decode())
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)


def _is_text(content: bytes) -> bool:
    """Not bytecode, by what that begins with."""
    return not content.startswith(b"ML\xefR")


def _pieces(source: SourceText, marker: str) -> list[SourceText]:
    """The input cut at lines that hold nothing but the marker; the whole input when there is no marker."""
    if not marker:
        return [source]
    pieces: list[SourceText] = []
    skipped = 0
    for text in re.split(rb"(?m)^[ \t]*" + re.escape(marker.encode()) + rb"[ \t\r]*$", source.text):
        pieces.append(SourceText(source.name, text, skipped))
        skipped += text.count(b"\n")
    return pieces


def _version() -> str:
    from importlib.metadata import version

    return f"relax-opt (relaxir) {version('relaxir')}, torch-mlir {version('torch-mlir')}"


def _dialects() -> list[str]:
    """MLIR tells the names only to one who asks for an unknown dialect."""
    from ..dialect.bindings import ir
    from ..dialect.relax import NAMESPACE

    with ir.Context():
        try:
            ir.Module.parse("unknown_dialect.op")
        except ir.MLIRError as error:
            note = error.error_diagnostics[0].notes[0].message
            return sorted([*re.split(r",\s*", note.removeprefix("Available dialects: ").split(" ;")[0]), NAMESPACE])
    return [NAMESPACE]


def _irdl() -> str:
    from ..dialect.context import definitions

    return definitions()
