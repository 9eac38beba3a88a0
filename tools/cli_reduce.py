"""``relaxir reduce``: a module that fails, made small by what it fails with."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..dialect.errors import RelaxError
from ..weights.files import read_stream, replacing
from .cli_numbers import seconds, tolerance
from .cli_output import tell
from .cli_paths import Read, Written
from .cli_target import add_target

if TYPE_CHECKING:
    from ..debugging import Progress

__all__ = ["add_reduce"]

#: Seconds between two lines about progress.
_EVERY = 5.0


def add_reduce(commands: Any) -> None:
    """Adds the command to ``relaxir``'s."""
    command = commands.add_parser(
        "reduce",
        help="a module that fails, made small",
        description="Takes parts of a module away while it stays interesting.",
    )
    command.add_argument("model", type=Read, metavar="MODEL.mlir", help="the module, or any text; - is standard input")
    command.add_argument("-o", "--output", type=Written, required=True, metavar="SMALL.mlir", help="the file to write")
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("--test", metavar="COMMAND", help="interesting: exit code 0 for a file, which is {} or comes last")
    which.add_argument("--error", metavar="TEXT", help="interesting: an error with TEXT in it, which may be empty")
    which.add_argument("--dies", action="store_true", help="interesting: the process dies, or takes longer than --seconds")
    which.add_argument("--differs", action="store_true", help="interesting: results are not those of the reference semantics")
    command.add_argument("--pipeline", metavar="PASSES", help="what is run on the module (default: it is compiled)")
    add_target(command, "what it is compiled for (default: cpu)")
    command.add_argument(
        "--tolerance", type=tolerance, metavar="X", help="for --differs: error relative to the largest element"
    )
    command.add_argument("--seconds", type=seconds, default=60.0, metavar="S", help="for one candidate (default: %(default)g)")
    command.set_defaults(command=_reduce, refuse=command.error)


def _reduce(arguments: argparse.Namespace) -> None:
    from ..debugging import reduced

    predicate = _predicate(arguments)
    text = read_stream("/dev/stdin" if arguments.model == "-" else arguments.model).decode(errors="surrogateescape")
    if not predicate(text):
        raise RelaxError(f"'{arguments.model}': expected {_wanted(arguments)}, got none")
    small = reduced(text, predicate, told=_silent if arguments.quiet else _telling())
    with replacing(arguments.output) as file:
        file.write(small.encode(errors="surrogateescape"))
    told = f"reduced {arguments.model} from {len(text)} to {len(small)} characters: {arguments.output}"
    tell(arguments, [told], {"output": arguments.output, "characters_before": len(text), "characters": len(small)})


def _wanted(arguments: argparse.Namespace) -> str:
    """What makes a module interesting, in words."""
    if arguments.test is not None:
        return f"exit code 0 of '{arguments.test}'"
    if arguments.error is not None:
        return f"an error with '{arguments.error}' in it" if arguments.error else "an error"
    return "a process that dies" if arguments.dies else "results that differ from the reference semantics"


def _predicate(arguments: argparse.Namespace) -> Callable[[str], bool]:
    from ..debugging import command, dies, differs, fails

    if arguments.test is not None and (arguments.pipeline or arguments.target):
        arguments.refuse("--test runs the command alone: expected no --pipeline and no --target")
    if arguments.pipeline and arguments.target:
        arguments.refuse("expected --pipeline or --target, got both")
    if arguments.tolerance is not None and not arguments.differs:
        arguments.refuse("expected --tolerance with --differs")
    if arguments.pipeline:
        _check_pipeline(arguments)
    pipeline, target, seconds = arguments.pipeline, arguments.target or "cpu", arguments.seconds
    if arguments.test is not None:
        return command(arguments.test, seconds)
    if arguments.error is not None:
        return fails(arguments.error, pipeline, target, seconds)
    if arguments.dies:
        return dies(pipeline, target, seconds)
    return differs(pipeline, target, arguments.tolerance, seconds=seconds)


def _check_pipeline(arguments: argparse.Namespace) -> None:
    """A pipeline that there is not fails for any module, and none would be left of it."""
    from ..dialect.context import new_context
    from ..dialect.passes.manager import build

    try:
        build(arguments.pipeline, new_context())
    except RelaxError as error:
        arguments.refuse(f"argument --pipeline: {error}")


def _silent(progress: Progress) -> None:
    """Tells nothing."""


def _telling() -> Callable[[Progress], object]:
    """Tells of progress on stderr, now and then."""
    last = time.monotonic()

    def tell(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last > _EVERY:
            last = time.monotonic()
            print(progress, file=sys.stderr, flush=True)

    return tell
