"""``relaxir.Module``: a module of relax functions as Python sees it, immutable but through the passes that return a new one."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from .dialect.bindings import ir
from .dialect.checks import expect_flag, expect_text
from .dialect.context import new_context
from .dialect.conventions import check_module
from .dialect.errors import RelaxError, from_mlir_error, interruptible, warn
from .dialect.functions import full_argument_names, functions, is_private, name_of, num_input, transform_for
from .dialect.parser import parse_module
from .dialect.reports.report import Report, collecting
from .dialect.struct_info import TensorInfo, is_tensor
from .dialect.symbolic import Expr
from .dialect.weight_layouts import WeightLayouts
from .dialect.weights import full_result_names
from .runtime.artifact import MANIFEST
from .weights.files import other_kind, path_text, read_stream, replacing

__all__ = ["Module", "Signature", "SignatureTensor"]


@dataclass(frozen=True)
class SignatureTensor:
    """A tensor that a function takes or returns.

    Attributes:
        name: its ``relax.name``, or ``input0`` / ``weight1`` / ``output0`` by position.
        shape: one int, symbolic expression or ``?`` per dimension; None when it is no ranked tensor.
        dtype: MLIR name of the element type, e.g. ``bf16``; the whole type when it is no ranked tensor.
    """

    name: str
    shape: tuple[int | str, ...] | None
    dtype: str

    def __str__(self) -> str:
        return self.dtype if self.shape is None else f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Signature:
    """What a function takes and returns.

    Attributes:
        name: the function's name.
        inputs: arguments given at each call.
        weights: arguments from ``relax.num_input`` on.
        outputs: the results.
        symbols: names of the symbolic dimensions in the arguments' shapes, sorted.
        private: whether only other functions of the module can call it.
        transform_for: the function whose weights it prepares, or None.
    """

    name: str
    inputs: tuple[SignatureTensor, ...]
    weights: tuple[SignatureTensor, ...]
    outputs: tuple[SignatureTensor, ...]
    symbols: tuple[str, ...]
    private: bool
    transform_for: str | None

    def __str__(self) -> str:
        inputs = [f"%{s.name}: {s}" for s in self.inputs]
        weights = ["*", *(f"%{s.name}: {s}" for s in self.weights)] if self.weights else []
        return f"@{self.name}({', '.join(inputs + weights)}) -> ({', '.join(map(str, self.outputs))})"


class Module:
    """A module in the relax dialect: functions over tensors with symbolic shapes.

    No method changes a module; :meth:`run` returns a new one. Modules that come from one another share an MLIR context,
    which is not thread-safe: use them from one thread at a time.

    Attributes:
        report: what the passes that made it from a parsed or built module told; ``str()`` of it is readable.
    """

    def __init__(self, module: ir.Module, report: Report | None = None):
        """Takes ownership of a module whose context has the dialect loaded."""
        self._module = module
        self.report = Report() if report is None else report

    @staticmethod
    def parse(text: str | bytes, source_name: str = "-") -> Module:
        """Reads MLIR text.

        Args:
            text: a module, or functions without one around them.
            source_name: the file name that locations and errors show.

        Raises:
            DiagnosticError: it does not parse or verify; with ``file:line:col``.
            RelaxError: it is bytecode, not UTF-8, or nested too deep.
        """
        expect_text(source_name, "the name of a source as text")
        return Module(parse_module(text, source_name, new_context()))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Module:
        """Reads a text file, or bytecode; see :meth:`parse`.

        Raises:
            RelaxError: as for :meth:`parse`; the file cannot be read, or is of another kind: a PyTorch program, an ONNX model,
                weights, an artifact.
        """
        name = path_text(path)
        if os.path.isfile(os.path.join(name, MANIFEST)):
            raise RelaxError(f"'{name}': expected a module, got an artifact: relaxir.load reads it")
        content = read_stream(name)
        kind = _other_kind(name, content)
        if kind is not None:
            raise RelaxError(f"'{name}': expected a module, got {kind}")
        return Module.parse(content, name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the text that :meth:`load` reads. Raises RelaxError when the file cannot be written."""
        with replacing(path) as file:
            file.write(str(self).encode())

    def __reduce__(self) -> tuple[object, ...]:
        """Copies and pickles are of the text, in a context of their own, and have no report."""
        return Module.parse, (str(self),)

    @property
    def ir(self) -> ir.Module:
        """The MLIR module itself. Changing it is at one's own risk."""
        return self._module

    @property
    def context(self) -> ir.Context:
        """The MLIR context the module lives in."""
        return self._module.context

    @property
    def functions(self) -> Mapping[str, Signature]:
        """Signatures by function name, in the module's order."""
        return {name_of(f): _signature(f) for f in functions(self._module)}

    @interruptible()
    def run(self, pipeline: str, *, verify_semantics: bool = False) -> Module:
        """A new module, made from this one by passes, e.g. ``"relax-lift-transform-params,canonicalize"``.

        What the passes tell is added to this module's report, in the new module.

        Args:
            pipeline: the passes.
            verify_semantics: whether what functions compute is compared before and after each pass, on random inputs
                (:mod:`relaxir.debugging.semantics`); a :class:`RelaxWarning` tells of what cannot be compared.

        Raises:
            RelaxError: the pipeline text is wrong, a pass refuses the module (then a DiagnosticError with the place), or
                changes its meaning by more than it states.
        """
        from .dialect.passes import manager
        from .lowering.passes import register_passes

        register_passes()
        expect_text(pipeline, "a pipeline as text")
        expect_flag(verify_semantics, "verify_semantics")
        run = _run_compared if verify_semantics else manager.run
        with self._active(), collecting() as told:
            return Module(_as_module(run(self._module.operation, pipeline)), self.report.extended(told))

    def rewritten(self, rewrite: Callable[[ir.Operation], None]) -> Module:
        """A copy that a function changed in place; what it told is added to the report."""
        with self._active(), collecting() as told:
            copy = self._module.operation.clone(ip=False).operation
            rewrite(copy)
            return Module(_as_module(copy), self.report.extended(told))

    def with_weight_layouts(self, layouts: WeightLayouts) -> Module:
        """A copy that says how a target's kernels want weights in memory, to the passes that rearrange them."""
        with self._active():
            copy = self._module.operation.clone(ip=False).operation
            layouts.write(copy)
            return Module(_as_module(copy), self.report)

    def verify(self) -> None:
        """Raises DiagnosticError when the module breaks a rule of MLIR, of an op or of our conventions."""
        with self._active():
            try:
                self._module.operation.verify()
            except ir.MLIRError as error:
                raise from_mlir_error(error) from None
            check_module(self._module)

    def show(self) -> None:
        """Prints the module in a form made for reading (:func:`relaxir.script.script`)."""
        from .script import script

        print(script(self.ir))

    @contextmanager
    def _active(self) -> Generator[None]:
        """Makes the context current: our verifiers run under it, also when MLIR prints."""
        with self.context, ir.Location.unknown():
            yield

    def __str__(self) -> str:
        with self._active():
            return str(self._module)

    def _repr_html_(self) -> str:
        """What notebooks show: the page of ``relaxir view``, in a frame of its own, as it has scripts."""
        from html import escape

        from .inspection.data import graph_data
        from .inspection.graph import graphs_of
        from .inspection.html import html_page

        page = html_page(graph_data(repr(self)[1:-1], graphs_of(self)))
        style = "width:100%;height:600px;border:1px solid #d0d7de"
        return f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts" style="{style}"></iframe>'

    def __repr__(self) -> str:
        return f"<relaxir.Module: {', '.join('@' + name for name in self.functions) or 'no functions'}>"


def _run_compared(operation: ir.Operation, pipeline: str) -> ir.Operation:
    from .debugging.semantics import SemanticsCheck
    from .dialect.passes import manager

    check = SemanticsCheck()
    check.start(operation)
    with manager.observing(check.after):
        result = manager.run(operation, pipeline)
    for reason in check.skipped:
        warn(f"not compared: {reason}")
    return result


def _as_module(operation: ir.Operation | ir.OpView) -> ir.Module:
    """A detached ``builtin.module`` operation as the bindings' module class: its functions move over."""
    op = operation.operation
    with op.context, op.location:
        module = ir.Module.create()
        for item in op.attributes:
            key = item if isinstance(item, str) else item.name
            module.operation.attributes[key] = op.attributes[key]
        end = ir.InsertionPoint(module.body)
        for child in list(op.regions[0].blocks[0].operations):
            child.detach_from_parent()
            end.insert(child)
    return module


def _signature(function: ir.OpView) -> Signature:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    arguments = _specs(full_argument_names(function), type_.inputs)
    outputs = _specs(full_result_names(function), type_.results)
    inputs = num_input(function)
    split = len(arguments) if inputs is None else inputs
    return Signature(
        name_of(function),
        arguments[:split],
        arguments[split:],
        outputs,
        _symbols(type_.inputs),
        is_private(function),
        transform_for(function),
    )


def _specs(names: list[str], types: list[ir.Type]) -> tuple[SignatureTensor, ...]:
    return tuple(_spec(name, type_) for name, type_ in zip(names, types, strict=True))


def _spec(name: str, type_: ir.Type) -> SignatureTensor:
    if not is_tensor(type_):
        return SignatureTensor(name, None, str(type_))
    info = TensorInfo.of(type_)
    shape = tuple("?" if d is None else str(d) if isinstance(d, Expr) else d for d in info.shape)
    return SignatureTensor(name, shape, str(info.dtype))


def _symbols(types: list[ir.Type]) -> tuple[str, ...]:
    dims = [d for t in types if is_tensor(t) for d in TensorInfo.of(t).shape if isinstance(d, Expr)]
    return tuple(sorted({name for d in dims for name in d.names}))


def _other_kind(name: str, content: bytes) -> str | None:
    """What a file is that holds no module, and what to do with it."""
    imported = f"import it first, relaxir import '{name}' -o MODEL.mlir"
    suffix = os.path.splitext(name)[1].lower()
    if suffix == ".pt2" and content.startswith(b"PK"):
        return f"a PyTorch program: {imported}"
    if suffix == ".onnx":
        return f"an ONNX model: {imported}"
    if content[8:9] == b"{" and int.from_bytes(content[:8], "little") < len(content):
        return "weights (safetensors)"
    return other_kind(content[:8])
