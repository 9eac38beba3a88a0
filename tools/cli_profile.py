"""``relaxir profile``: where the time of a model's calls goes, kernel by kernel."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING, Any

from ..dialect.errors import RelaxError
from ..dialect.reports.report import plural
from .cli_named import add_dims, add_inputs
from .cli_numbers import seconds, seed
from .cli_output import tell
from .cli_paths import Read, Written
from .cli_target import add_target
from .models import is_artifact, load_module

if TYPE_CHECKING:
    from ..profiling.compilation import CompilationProfile
    from ..runtime.executable import Executable

__all__ = ["add_profile", "weights_for"]


def add_profile(commands: Any) -> None:
    """Adds the command to ``relaxir``'s."""
    command = commands.add_parser(
        "profile",
        help="where the time of calls goes, kernel by kernel",
        description="Times a copy of the code with a clock around each kernel, beside what the machine can do; "
        "the artifact's own code has no clocks. Of code for a GPU, the driver times each launch.",
    )
    command.add_argument(
        "model", type=Read, metavar="MODEL", help="MODEL.relax, compiled for the CPU or GPU of this machine; MODEL.mlir; -"
    )
    add_target(command, "what to compile a MODEL.mlir for (default: %(default)s)", default="cpu")
    command.add_argument("--device", help="of code for GPUs: cuda:0 (default), another number; emulated: counts instructions")
    command.add_argument(
        "--weights", type=Read, metavar="WEIGHTS", help="prepared ones, or raw ones, which are prepared in memory"
    )
    command.add_argument("--entry", metavar="NAME", help="which entry, when there are several and none is 'main'")
    add_inputs(command)
    command.add_argument("--random", type=seed, nargs="?", const=0, metavar="SEED", help="other inputs and weights")
    add_dims(command, "size for --random")
    command.add_argument("--seconds", type=seconds, default=1.0, metavar="S", help="how long to call (default: %(default)g)")
    command.add_argument(
        "-o", "--output", type=Written, metavar="REPORT.html", help="write a page with roofline, memory and all tables"
    )
    command.add_argument(
        "--trace", type=Written, metavar="TRACE.json", help="write one call as a trace, which ui.perfetto.dev opens"
    )
    command.set_defaults(command=_profile)


def _profile(arguments: argparse.Namespace) -> None:
    from ..profiling import profile, report_page
    from ..weights.files import replacing
    from .cli_run import entry_named, inputs_of

    executable, compilation = _executable(arguments.model, arguments.target, arguments.device)
    entry = entry_named(executable, arguments.entry)
    found = profile(
        executable,
        inputs_of(entry, arguments),
        weights_for(executable, arguments),
        entry=entry.name,
        seconds=arguments.seconds,
        compilation=compilation,
    )
    if arguments.trace is not None:
        with replacing(arguments.trace) as file:
            file.write(json.dumps(found.trace()).encode())
    if arguments.output is not None:
        with replacing(arguments.output) as file:
            file.write(report_page(os.path.basename(os.path.normpath(arguments.model)), found).encode())
    tell(arguments, str(found), found.as_json(), asked=True)


def _executable(path: str, target: str, device: str | None) -> tuple[Executable, CompilationProfile | None]:
    """Of an artifact, or of a module, which is compiled by the clock."""
    from .. import compile, load
    from ..profiling.compilation import clocked_compilation

    if is_artifact(path):
        return load(path, device=device), None
    module = load_module(path)
    with clocked_compilation() as clock:
        executable = compile(module, target, device=device, cache=False)
    return executable, clock.profile()


def weights_for(executable: Executable, arguments: argparse.Namespace) -> object:
    """What ``bind`` takes: of a file that is prepared, its path; else what is prepared from it, or from random numbers.

    Raises:
        RelaxError: there are weights, and neither ``--weights`` nor ``--random``; or what is given is wrong.
    """
    from ..random_weights import random_raw_weights
    from ..runtime.sources import open_source

    count = len(executable.manifest.raw_weights)
    if not count:
        return None
    if arguments.weights is None and arguments.random is None:
        raise RelaxError(f"expected --weights or --random for {plural(count, 'weight')}")
    if arguments.weights is None:
        return executable.prepare(random_raw_weights(executable.manifest, arguments.random))
    if open_source(arguments.weights).fingerprint is not None:
        return arguments.weights
    return executable.prepare(arguments.weights)
