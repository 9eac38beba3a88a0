"""Textual pass pipelines in, runnable pass managers out: our Python passes by name among MLIR's own, in one pass manager.

Syntax is MLIR's: ``builtin.module(relax-lift-transform-params{shared=true},canonicalize,func.func(cse,relax-canonicalize))``;
the outer ``builtin.module(...)`` may be left out. MLIR cannot register a Python pass by name, so the text is taken apart
here: C++ passes go to MLIR as text, ours as callables, and timing, IR printing and verification see all of them.

Every error is a :class:`RelaxError`: of the text when the pipeline is built, a :class:`DiagnosticError` when it runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ..bindings import ir, passmanager
from ..errors import DiagnosticError, RelaxError, from_mlir_error
from ..op import verifying_once
from ..reports import report
from .base import MODULE, Pass
from .options import parse_options
from .pipeline_text import Element, parse_pipeline
from .registry import is_registered, register, registered, registered_pass, suggestion

if TYPE_CHECKING:
    from ..analysis.work import Work

__all__ = [
    "Observer",
    "Pipeline",
    "build",
    "observing",
    "register",
    "registered",
    "run",
    "run_in_place",
    "verifying_at_end",
    "verifying_before_upstream",
]

#: Takes the text of an element of a pipeline, and the op after it.
Observer = Callable[[str, ir.Operation], None]
#: Of a pass by its name, what to print around it: arguments of ``enable_ir_printing``, or None.
Prints = Callable[[str], Mapping[str, Any] | None]

_PACKAGE = __name__.partition(".")[0]
_VERIFIES: ContextVar[str] = ContextVar("relaxir_verifies", default="each")
_OBSERVER: ContextVar[Observer | None] = ContextVar("relaxir_observer", default=None)


@contextmanager
def observing(observer: Observer) -> Generator[None]:
    """While it lasts, pipelines that are built call a function after each of their outermost elements.

    For what wants to see every step: dumps, and clocks. It must not change the op.
    """
    token = _OBSERVER.set(observer)
    try:
        yield
    finally:
        _OBSERVER.reset(token)


@contextmanager
def verifying_at_end() -> Generator[None]:
    """While it lasts, pipelines verify what they have made, and not what each of their passes has.

    For passes that are known to leave valid IR: those that :func:`relaxir.compile` runs take half of the time so, 0.35 instead
    of 0.65 s for 32 layers of Llama and 0.08 instead of 0.21 s for BERT-base (Zen 4).
    """
    with _verifying("end"):
        yield


@contextmanager
def verifying_before_upstream() -> Generator[None]:
    """While it lasts, pipelines that are built verify what passes of ours leave, once before MLIR's own passes take it.

    These crash on invalid IR. Verifying after each pass took as long as the passes do: 0.65 of 4.1 s, for 32 layers of Llama.
    """
    with _verifying("before upstream"):
        yield


@contextmanager
def _verifying(when: str) -> Generator[None]:
    token = _VERIFIES.set(when)
    try:
        yield
    finally:
        _VERIFIES.reset(token)


class Pipeline(passmanager.PassManager):
    """MLIR's pass manager for one anchor op, which also runs our passes.

    Attributes:
        anchor: the op it runs on.
        failures: RelaxErrors raised by passes during a run, in order.
    """

    def __init__(self, anchor: str = MODULE):
        super().__init__(anchor)
        self.anchor = anchor
        self.failures: list[RelaxError] = []
        self._nested: list[Pipeline] = []
        self._printing: list[Pipeline] = []
        self._keeps_work, self._is_verified = True, False

    def add_pass(self, pass_: Pass) -> None:
        """Appends one of our passes. Raises RelaxError when it does not run on this anchor."""
        if pass_.anchor not in ("any", self.anchor):
            raise RelaxError(f"expected pass '{pass_.name}' directly under {pass_.anchor}, got it under {self.anchor}")
        _load_dialects(ir.Context.current, pass_)
        self._keeps_work = self._keeps_work and pass_.keeps_work
        self._add_python(pass_.run, pass_.name)

    def add_text(self, text: str) -> None:
        """Appends an element that MLIR knows. Raises ValueError when it does not."""
        if _VERIFIES.get() == "before upstream" and not self._is_verified:
            self._add_python(lambda op: _verify(op), "verify")
            self._is_verified = True
        self.add(text)

    def add_observer(self, observer: Observer, text: str) -> None:
        """Appends a function that is told what the element before has left."""
        is_verified = self._is_verified
        self._add_python(lambda op: observer(text, op), "observe")
        self._is_verified = is_verified

    def add_nested(self, nested: Pipeline) -> None:
        """Appends a pipeline that runs on each direct child op of its anchor."""
        self._nested.append(nested)

        def run_children(op: ir.Operation) -> None:
            for child in _children(op, nested.anchor):
                nested.run(child)

        self._add_python(run_children, str(nested))

    def add_printing(self, printing: Pipeline, text: str) -> None:
        """Appends a pipeline that runs on the same op, and prints the IR by itself."""
        self._printing.append(printing)
        self._add_python(printing.run, text)

    def run(self, operation: ir.Operation | ir.OpView | ir.Module) -> None:
        """Runs on an op in place. Raises DiagnosticError when a pass fails or leaves invalid IR."""
        self.failures.clear()
        told = self.anchor == MODULE and self._keeps_work and report.is_collecting()
        before = _run_time_work(operation.operation) if told else {}
        when = _VERIFIES.get()
        if when != "each":
            self.enable_verifier(False)
        try:
            with verifying_once():
                super().run(operation.operation)
                if when == "end":
                    operation.operation.verify()
        except ir.MLIRError as error:
            # Tracebacks have frames that have this pass manager, and Python sees no cycle that goes through MLIR.
            failures = self.failures.copy()
            self.failures.clear()
            raise _diagnostic(error, failures) from (failures[0] if failures else None)
        if told:
            _tell_work(before, operation.operation)

    def enable_ir_printing(self, *args: Any, **kwargs: Any) -> None:
        for pipeline in (super(), *self._nested):
            pipeline.enable_ir_printing(*args, **kwargs)

    def enable_verifier(self, enable: bool) -> None:
        for pipeline in (super(), *self._nested, *self._printing):
            pipeline.enable_verifier(enable)

    def _add_python(self, body: Callable[[ir.Operation], None], name: str) -> None:
        """Appends a function; its RelaxError becomes an MLIR diagnostic and a failed pass, and instrumentation ends well."""
        failures = self.failures  # not self: MLIR prints timings when the pass manager dies, which a cycle would keep alive

        def run(op: ir.Operation, handle: Any) -> None:
            try:
                with op.context, ir.Location.unknown():
                    body(op)
            except RelaxError as error:
                failures.append(error)
                _emit(op.context, error)
                handle.signal_pass_failure()

        self._is_verified = False
        self.add(run, name=name, argument=name)


def build(text: str, context: ir.Context | None = None, prints: Prints | None = None) -> Pipeline:
    """Builds the pipeline that the text describes.

    Args:
        text: the passes.
        context: by default the current one.
        prints: of a pass by name, what ``enable_ir_printing`` takes to print the IR around it; None for one without.

    Raises:
        RelaxError: unknown pass or option, bad option value, unbalanced brackets, a pass under the wrong op.
    """
    with context or ir.Context.current:
        elements = parse_pipeline(text)
        outer = elements[0] if len(elements) == 1 and elements[0].nested is not None else None
        if outer is not None and outer.name in (MODULE, "any"):
            return _filled(Pipeline(outer.name), outer.nested or [], _OBSERVER.get(), prints)
        return _filled(Pipeline(), elements, _OBSERVER.get(), prints)


def run_in_place(op: ir.Operation | ir.Module, text: str) -> None:
    """Runs a pipeline on a module itself. After an error the module is in an undefined state; :func:`run` has no such case."""
    operation = op.operation
    build(text, operation.context).run(operation)


def run(op: ir.Operation | ir.Module, text: str) -> ir.Operation:
    """Runs a pipeline on a copy of a module and returns the copy; the input never changes.

    Raises:
        RelaxError: the text is wrong, or (as DiagnosticError) a pass failed.
    """
    operation = op.operation
    pipeline = build(text, operation.context)
    clone = operation.clone(ip=False).operation
    pipeline.run(clone)
    return clone


def _run_time_work(module: ir.Operation) -> dict[str, Work]:
    from ..analysis.work import run_time_work  # here: only a report needs what it imports

    with module.context:
        return run_time_work(module)


def _tell_work(before: Mapping[str, Work], module: ir.Operation) -> None:
    from ..analysis.work import tell_work

    with module.context:
        tell_work(before, module)


def _filled(
    pipeline: Pipeline, elements: list[Element], observer: Observer | None = None, prints: Prints | None = None
) -> Pipeline:  # fmt: skip
    for element in elements:
        if prints is not None and _is_printed(element, prints):
            _append_printing(pipeline, element, prints)
        else:
            _append(pipeline, element)
        if observer is not None:
            pipeline.add_observer(observer, element.text)
    return pipeline


def _is_printed(element: Element, prints: Prints) -> bool:
    if element.nested is None:
        return prints(element.name) is not None
    return any(_is_printed(e, prints) for e in element.nested)


def _append_printing(pipeline: Pipeline, element: Element, prints: Prints) -> None:
    """An element in pipelines of its own, as MLIR prints around all passes of one or around none."""
    if element.nested is not None:
        pipeline.add_nested(_filled(Pipeline(element.name), element.nested, prints=prints))
        return
    printing = Pipeline(pipeline.anchor)
    _append(printing, element)
    printing.enable_ir_printing(**(prints(element.name) or {}))
    pipeline.add_printing(printing, element.text)


def _append(pipeline: Pipeline, element: Element) -> None:
    if element.nested is None:
        found = registered_pass(element.name)
        if found is not None:
            pipeline.add_pass(parse_options(found, element.options))
            return
    elif not _is_op(element.name) and element.name != "any":
        raise RelaxError(f"expected an op to nest passes under, got '{element.name}'")
    elif _has_python_pass(element):
        pipeline.add_nested(_filled(Pipeline(element.name), element.nested))
        return
    _append_text(pipeline, element)


def _load_dialects(context: ir.Context, pass_: Pass) -> None:
    """Loads the dialects whose ops a pass makes; of another package's, which need not say so, all that there are, in 3 ms.

    When a pipeline is built, as conversions of MLIR are set up for what is there before it runs.
    """
    if type(pass_).__module__.partition(".")[0] != _PACKAGE:
        context.load_all_available_dialects()
    for dialect in pass_.dialects:
        context.get_dialect_descriptor(dialect)


def _is_op(name: str) -> bool:
    """Whether there is an op of this name, in a dialect that is loaded or can be."""
    with suppress(ValueError):
        ir.Context.current.get_dialect_descriptor(name.partition(".")[0])
    return ir.Context.current.is_registered_operation(name)


def _has_python_pass(element: Element) -> bool:
    if element.nested is None:
        return is_registered(element.name)
    return any(_has_python_pass(e) for e in element.nested)


def _append_text(pipeline: Pipeline, element: Element) -> None:
    """Hands an element without Python passes to MLIR; its complaint is reworded where ours is clearer."""
    try:
        pipeline.add_text(element.text)
    except ValueError as error:
        raise RelaxError(_reworded(element, str(error))) from None


def _reworded(element: Element, complaint: str) -> str:
    unknown = re.search(r"'([^']*)' does not refer to a registered pass", complaint)
    if unknown:
        return f"expected the name of a pass, got '{unknown[1]}'{suggestion(unknown[1])}"
    option = re.search(r"no such option (\S+)", complaint)
    if option:
        return f"pass '{element.name}' has no option named '{option[1]}'"
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    return f"expected a valid pass or pipeline, got '{element.text}': {lines[0] if lines else 'refused by MLIR'}"


def _verify(op: ir.Operation) -> None:
    op.verify()


def _children(op: ir.Operation, anchor: str) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for child in list(block.operations):
                if anchor in ("any", child.operation.name):
                    yield child.operation


_FILE_LOCATION = re.compile(r"(.+):(\d+):(\d+)(?: to .*)?")


def _emit(context: ir.Context, error: RelaxError) -> None:
    """Reports an error as MLIR diagnostics, so that handlers (``--verify-diagnostics``) see it at its place."""
    if isinstance(error, DiagnosticError):
        for severity, where, text in error.diagnostics:
            _location(context, where).emit_error(text if severity == "error" else f"{severity}: {text}")
        return
    _location(context, error.location or "").emit_error(str(error.args[0]))


def _location(context: ir.Context, text: str) -> ir.Location:
    place = _FILE_LOCATION.fullmatch(text)
    if place:
        return ir.Location.file(place[1], int(place[2]), int(place[3]), context=context)
    return ir.Location.name(text, context=context) if text else ir.Location.unknown(context=context)


def _diagnostic(error: ir.MLIRError, failures: list[RelaxError]) -> DiagnosticError:
    """Where a handler took the diagnostics, the exception carries none: then our own record speaks."""
    if error.error_diagnostics or not failures:
        return from_mlir_error(error)
    return DiagnosticError([("error", f.location or "", str(f.args[0])) for f in failures])
