"""``relaxir tune``: measures plans of kernels on a GPU, and keeps the fastest in a folder that ``relaxir compile`` reads."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..dialect.errors import RelaxError
from ..dialect.printable import printable
from ..dialect.reports.report import aligned
from ..lowering.relax_pipeline import NARROW
from .cli_named import add_dims, add_inputs
from .cli_numbers import seed
from .cli_output import tell
from .cli_paths import Read, Written
from .cli_target import add_target
from .models import load_module

if TYPE_CHECKING:
    from ..runtime.executable import Executable
    from ..tuning import TunedPlan

__all__ = ["add_tune"]


def add_tune(commands: Any) -> None:
    """Adds the command to those of ``relaxir``."""
    command = commands.add_parser("tune", help="measure plans of kernels on a GPU, for relaxir compile --plan-table")
    command.add_argument("model", type=Read, metavar="MODEL.mlir")
    command.add_argument(
        "-o", "--output", type=Written, required=True, metavar="FOLDER", help="where tables are, one for an architecture"
    )
    add_target(command, "what to compile for: the GPU that is measured", required=True, metavar="cuda:sm_90a")
    command.add_argument("--device", help="cuda:0 (default), another number; emulated: counts instructions, not times")
    command.add_argument("--weights", choices=NARROW, help="as for compile; their numbers are random")
    command.add_argument("--activations", choices=["int8"], help="as for compile")
    command.add_argument("--candidates", type=int, default=12, metavar="N", help="plans of a product at most (default: 12)")
    command.add_argument("--entry", metavar="NAME", help="which entry, when there are several and none is 'main'")
    add_inputs(command)
    command.add_argument("--random", type=seed, default=0, metavar="SEED", help="of the other inputs (default: %(default)s)")
    add_dims(command, "size of random inputs")
    command.set_defaults(command=_tune)


def _tune(arguments: argparse.Namespace) -> None:
    from ..tuning import tune
    from .cli_run import entry_named, inputs_of

    def inputs(executable: Executable) -> tuple[str, Sequence[object]]:
        entry = entry_named(executable, arguments.entry)
        made = inputs_of(entry, arguments)
        return entry.name, [made[s.name] for s in entry.inputs]

    if arguments.candidates < 1:
        raise RelaxError(f"expected --candidates from 1 on, got {arguments.candidates}")
    if arguments.device == "emulated" and not arguments.quiet:
        print(
            "the emulator counts instructions of threads, a picosecond each: what is fastest there need not be on a GPU",
            file=sys.stderr,
        )
    found = tune(
        load_module(arguments.model),
        arguments.target,
        inputs,
        arguments.output,
        device=arguments.device,
        weights=arguments.weights,
        activations=arguments.activations,
        candidates=arguments.candidates,
        told=_silent if arguments.quiet or arguments.json else _told,
    )
    lines = [*_lines(found), f"wrote the plans to {arguments.output}"]
    tell(arguments, lines, {"output": arguments.output, "plans": [dataclasses.asdict(plan) for plan in found]})


def _told(line: str) -> None:
    print(printable(line))


def _silent(line: str) -> None:
    """Tells nothing."""


def _lines(found: Sequence[TunedPlan]) -> list[str]:
    """For each the key; time, time over that of the plan without a table, and the plan; each plan that failed, and why."""
    texts = aligned(
        [[_time(t), f"{t.seconds / t.chosen_seconds:.2f}", t.best, f"({t.measured} plans)"] for t in found], right=[0]
    )
    return [line for t, text in zip(found, texts, strict=True) for line in (t.key, f"  {text}", *_failures(t))]


def _failures(tuned: TunedPlan) -> list[str]:
    return [f"  failed: {f.plan}: {f.reason}" for f in tuned.failed]


def _time(tuned: TunedPlan) -> str:
    return f"{tuned.seconds * 1e6:.1f} us"
