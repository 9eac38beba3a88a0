"""``relaxir profile``: where the time of an artifact's calls goes, kernel by kernel."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..dialect.errors import RelaxError

__all__ = ["add_profile"]


def add_profile(commands: Any) -> None:
    """Adds the command to ``relaxir``'s."""
    command = commands.add_parser(
        "profile",
        help="where the time of calls goes, kernel by kernel",
        description="Times a copy of the code with a clock around each kernel, beside what the machine can do; "
        "the artifact's own code has no clocks.",
    )
    command.add_argument("artifact", metavar="MODEL.relax", help="compiled for the CPU of this machine")
    command.add_argument("--weights", metavar="FILE.safetensors", help="what prepare wrote")
    command.add_argument("--entry", metavar="NAME", help="which entry, when there are several and none is 'main'")
    command.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", dest="inputs")
    command.add_argument("--random", type=int, nargs="?", const=0, metavar="SEED", help="fill the other inputs at random")
    command.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE", dest="dims", help="size for --random")
    command.add_argument("--seconds", type=float, default=1.0, metavar="S", help="how long to call (default: %(default)g)")
    command.add_argument("--json", action="store_true", help="tell it as JSON")
    command.add_argument("--trace", metavar="TRACE.json", help="write one call as a trace, which ui.perfetto.dev opens")
    command.set_defaults(command=_profile)


def _profile(arguments: argparse.Namespace) -> None:
    from .. import load
    from ..profiling import profile
    from ..weights.files import replacing
    from .cli_run import entry_named, inputs_of

    executable = load(arguments.artifact)
    entry = entry_named(executable, arguments.entry)
    if entry.weights and arguments.weights is None:
        raise RelaxError(f"expected --weights: entry '{entry.name}' has {len(entry.weights)} weights")
    found = profile(
        executable,
        inputs_of(entry, arguments),
        arguments.weights,
        entry=entry.name,
        seconds=arguments.seconds,
    )
    if arguments.trace is not None:
        with replacing(arguments.trace) as file:
            file.write(json.dumps(found.trace()).encode())
    print(json.dumps(found.as_json(), indent=1) if arguments.json else found)
