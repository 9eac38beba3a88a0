"""The command line of ``relax-opt``: arguments in, typed :class:`Options` out. Flags and their spelling are ``mlir-opt``'s."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..dialect.errors import RelaxError
from ..dialect.passes.registry import reserve

__all__ = ["Options", "help_text", "parse", "plugin_names"]

SPLIT_MARKER = "// -----"


def _flag(default: Any, about: str, value: str = "", implied: Any = None) -> Any:
    """A field that is a flag: ``value`` names what follows ``=``, ``implied`` is what the bare flag means."""
    return field(default=default, metadata={"about": about, "value": value, "implied": implied})


@dataclass
class Options:
    """What ``relax-opt`` was asked to do; a field ``a_b`` is the flag ``--a-b``.

    Attributes:
        input: path, ``-`` for standard input.
        passes: passes given as flags, ``(name, options)``, in order.
    """

    input: str = "-"
    passes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    output: str = _flag("-", "where the result goes (short: -o); - is standard output", "file")
    pass_pipeline: str | None = _flag(None, "passes to run, e.g. 'builtin.module(canonicalize,func.func(cse))'", "pipeline")
    emit_bytecode: bool = _flag(False, "write bytecode, which mlir-opt reads; to a file or a pipe")
    accept_bytecode: bool = _flag(False, "read bytecode, too; of a source that you trust: MLIR does not harden its reader")
    load_pass_plugin: str = _flag("", "a Python module, or the file of one, whose passes to add", "module|file.py")
    no_implicit_module: bool = _flag(False, "take the one operation of the input as it is, without a module around")
    split_input_file: str = _flag("", "process each piece between marker lines on its own", "marker", SPLIT_MARKER)
    output_split_marker: str = _flag(SPLIT_MARKER, "marker between the pieces of the output", "marker")
    verify_diagnostics: str = _flag("", "compare diagnostics with expected-* comments", "all|only-expected", "all")
    verify_each: bool = _flag(True, "verify after each pass")
    verify_semantics: int = _flag(
        0, "compare what functions compute before and after each pass, on random inputs", "count", "1"
    )
    verify_roundtrip: bool = _flag(False, "check that text and bytecode give the same module back")
    allow_unregistered_dialect: bool = _flag(False, "accept operations of unknown dialects")
    run_reproducer: bool = _flag(False, "run the pipeline that a crash reproducer holds")
    list_passes: bool = _flag(False, "list the passes and exit")
    show_dialects: bool = _flag(False, "list the dialects and exit")
    export_irdl: bool = _flag(False, "print the dialect as IRDL, for 'mlir-opt --irdl-file=', and exit")
    dump_pass_pipeline: bool = _flag(False, "print the pipeline that is run")
    relax_report: str = _flag("", "tell on standard error what passes decided and why", "text|json", "text")
    emit: str = _flag("mlir", "form of the output; 'script' is for reading only", "mlir|script")
    mlir_print_ir_before_all: bool = _flag(False, "print the IR before each pass")
    mlir_print_ir_after_all: bool = _flag(False, "print the IR after each pass")
    mlir_print_ir_before: str = _flag("", "print the IR before these passes; may come several times", "pass,...")
    mlir_print_ir_after: str = _flag("", "print the IR after these passes; may come several times", "pass,...")
    mlir_print_ir_after_change: bool = _flag(False, "of the IR after each pass, print only what changed")
    mlir_print_ir_after_failure: bool = _flag(False, "of the IR after each pass, print only that of failed ones")
    mlir_print_ir_module_scope: bool = _flag(False, "print the whole module for a nested pass, too")
    mlir_print_ir_tree_dir: str | None = _flag(None, "print the IR to files in this folder", "folder")
    mlir_timing: bool = _flag(False, "report the time each pass took")
    mlir_pass_statistics: bool = _flag(False, "report the statistics of each pass")
    mlir_pass_pipeline_crash_reproducer: str | None = _flag(None, "where to save a failing pipeline with its input", "file")
    mlir_disable_threading: bool = _flag(True, "accepted for mlir-opt's sake: there are never threads")
    mlir_elide_elementsattrs_if_larger: int | None = _flag(None, "cut constants of more elements", "count")
    mlir_elide_resource_strings_if_larger: int | None = _flag(None, "cut resources of more characters", "count")
    mlir_print_debuginfo: bool = _flag(False, "print locations")
    mlir_pretty_debuginfo: bool = _flag(False, "print locations for reading, not for parsing")
    mlir_print_op_generic: bool = _flag(False, "print the generic form of operations")
    mlir_print_local_scope: bool = _flag(False, "print without aliases")
    mlir_use_nameloc_as_prefix: bool = _flag(False, "name values by their location's name")
    version: bool = _flag(False, "print the version and exit")
    help: bool = _flag(False, "print this and exit")

    @property
    def prints_ir(self) -> bool:
        """Whether passes print the IR they see."""
        return (
            self.mlir_print_ir_before_all
            or self.mlir_print_ir_after_all
            or self.mlir_print_ir_after_change
            or self.mlir_print_ir_after_failure
        )


_FLAGS = {f.name.replace("_", "-"): f for f in dataclasses.fields(Options) if f.metadata}
_SHORT = {"o": "output", "h": "help"}
reserve([*_FLAGS, *_SHORT], "which is a flag of relax-opt")
#: Flags whose values come together, where they are given several times.
_JOINED = ("mlir-print-ir-before", "mlir-print-ir-after", "load-pass-plugin")
_ATTRIBUTES = re.compile(r"^Attributes\b.*:\n", re.M)
_BOOLEANS = {"": True, "true": True, "1": True, "false": False, "0": False}
_CHOICES = {"verify-diagnostics": ("all", "only-expected"), "emit": ("mlir", "script"), "relax-report": ("text", "json")}


def plugin_names(argv: Sequence[str]) -> str:
    """The values of ``--load-pass-plugin``, with commas: what it loads is a flag to the other arguments."""
    names, rest = list[str](), iter(argv)
    for argument in rest:
        if argument == "--":
            break
        name, equals, value = argument.lstrip("-").partition("=")
        if argument.startswith("-") and name == "load-pass-plugin":
            names.append(value if equals else next(rest, ""))
    return ",".join(names)


def parse(argv: Sequence[str], is_pass: Callable[[str], bool]) -> Options:
    """Reads the arguments after the program's name.

    Args:
        argv: the arguments.
        is_pass: tells whether a name that is no flag is a pass.

    Raises:
        RelaxError: unknown flag, missing or ill-formed value, two inputs, passes given in two ways.
    """
    options = Options()
    inputs: list[str] = []
    rest = iter(argv)
    for argument in rest:
        if argument == "--":
            inputs += rest
        elif argument == "-" or not argument.startswith("-"):
            inputs.append(argument)
        else:
            _read_flag(options, argument, rest, is_pass)
    if len(inputs) > 1:
        raise RelaxError(f"expected one input, got '{inputs[0]}' and '{inputs[1]}'")
    if options.passes and options.pass_pipeline is not None:
        raise RelaxError("expected either --pass-pipeline or passes as flags, got both")
    options.input = inputs[0] if inputs else "-"
    return options


def _read_flag(options: Options, argument: str, rest: Iterator[str], is_pass: Callable[[str], bool]) -> None:
    name, equals, value = argument.lstrip("-").partition("=")
    name = _SHORT.get(name, name)
    if name in _FLAGS:
        _set(options, name, value if equals else None, rest)
    elif name and is_pass(name):
        options.passes.append((name, _unbraced(value)))
    else:
        raise RelaxError(f"unknown command line argument '{argument}'{_hint(name)}")


def _set(options: Options, name: str, value: str | None, rest: Iterator[str]) -> None:
    flag = _FLAGS[name]
    if flag.metadata["value"]:
        if value is None:
            value = flag.metadata["implied"] if flag.metadata["implied"] is not None else next(rest, None)
        if not value:
            raise RelaxError(f"expected a value for '--{name}': --{name}={flag.metadata['value']}")
        if value not in _CHOICES.get(name, (value,)):
            raise RelaxError(f"expected {' or '.join(_CHOICES[name])} for '--{name}', got '{value}'")
        if name in _JOINED and getattr(options, flag.name):
            value = f"{getattr(options, flag.name)},{value}"
        setattr(options, flag.name, _count(name, value) if "int" in str(flag.type) else value)
        return
    if (value or "").lower() not in _BOOLEANS:
        raise RelaxError(f"expected true or false for '--{name}', got '{value}'")
    setattr(options, flag.name, _BOOLEANS[(value or "").lower()])


def _count(name: str, value: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise RelaxError(f"expected a count of 0 or more for '--{name}', got '{value}'")
    return int(value)


def _unbraced(value: str) -> str:
    return value[1:-1] if value.startswith("{") and value.endswith("}") else value


def _hint(name: str) -> str:
    from ..dialect.passes.registry import suggestion

    close = difflib.get_close_matches(name, _FLAGS, 1)
    return f", did you mean '{close[0]}'" if close else suggestion(name) or ", see 'relax-opt --help'"


def help_text() -> str:
    """What ``--help`` prints."""
    lines = ["usage: relax-opt [flags] [file]", "", "Runs passes on a module of MLIR text.", "", "Flags:"]
    for name, flag in _FLAGS.items():
        value, optional = flag.metadata["value"], flag.metadata["implied"] is not None
        shown = (f"[=<{value}>]" if optional else f"=<{value}>") if value else ""
        lines.append(f"  --{name + shown:<52} {flag.metadata['about']}")
    lines.append(f"  --{'<pass>[=<options>]':<52} run a pass; several run in the order given")
    title = "Passes of relaxir; those of MLIR have the options that mlir-opt says, --list-passes has their names:"
    return "\n".join([*lines, "", title, *_passes()])


def _passes() -> Iterator[str]:
    """Each of our passes with its options, what they take, and their defaults."""
    from ..dialect.passes.options import options_of
    from ..dialect.passes.registry import listed
    from ..lowering.passes import register_passes

    register_passes()
    for name, pass_class in listed():
        if isinstance(pass_class, RelaxError):
            yield f"  --{name:<52} {pass_class}"
            continue
        yield f"  --{name:<52} {(pass_class.__doc__ or '').strip().splitlines()[0]}"
        about = _attribute_texts(pass_class)
        for option in options_of(pass_class):
            default = " (required)" if option.is_required else f" (default: {_default(option.default)})"
            yield f"      {f'{option.name}=<{option.expected}>':<50} {about.get(option.field, '')}{default}"


def _default(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else "none" if value in (None, "") else str(value)


def _attribute_texts(pass_class: type) -> dict[str, str]:
    """What the docstring of a class says of its attributes, by name."""
    found: dict[str, str] = {}
    names: list[str] = []
    texts = [_ATTRIBUTES.split(inspect.cleandoc(c.__doc__ or ""), 1)[-1] for c in reversed(pass_class.__mro__)]
    for line in "\n".join(texts).splitlines():
        head, colon, text = line.strip().partition(": ")
        if line.startswith("    ") and not line.startswith("     ") and colon:
            names = [n.strip() for n in head.split(",")]
            found |= dict.fromkeys(names, text)
        elif names and line.strip():
            found |= {n: f"{found[n]} {line.strip()}" for n in names}
    return found
