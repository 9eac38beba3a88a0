"""``relaxir bench``: how long calls of a model take, beside the same model in torch and ONNX Runtime."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dialect.errors import RelaxError
from .cli_named import add_dims, add_inputs
from .cli_numbers import seconds, seed
from .cli_output import tell
from .cli_paths import Read
from .models import is_artifact, load_module
from .sizes import count

if TYPE_CHECKING:
    from ..runtime.executable import Executable

__all__ = ["add_bench"]

_FRAMEWORKS = (".pt2", ".onnx")


def add_bench(commands: Any) -> None:
    """Adds the command to ``relaxir``'s."""
    command = commands.add_parser(
        "bench",
        help="how long calls take, and in torch and ONNX Runtime",
        description="Calls a model, and the same model in other programs, in alternating turns, all with as many threads.",
    )
    command.add_argument(
        "model", type=Read, metavar="MODEL", help="MODEL.relax, MODEL.mlir, MODEL.pt2 or MODEL.onnx; - is a module"
    )
    command.add_argument(
        "--peers", type=Read, nargs="+", default=[], metavar="FILE", help="the same model: .pt2 for torch, .onnx for ORT"
    )
    command.add_argument("--weights", type=Read, metavar="WEIGHTS", help="prepared or raw; .pt2 and .onnx have their own")
    command.add_argument("--entry", metavar="NAME", help="which entry, when there are several and none is 'main'")
    add_inputs(command)
    command.add_argument("--random", type=seed, default=0, metavar="SEED", help="of other inputs and weights (default: 0)")
    add_dims(command, "size of random inputs")
    command.add_argument("--threads", type=count, metavar="N", help="of each program (default: all cores)")
    command.add_argument("--seconds", type=seconds, default=3.0, metavar="S", help="for all together (default: %(default)g)")
    command.set_defaults(command=_bench, refuse=command.error)


def _bench(arguments: argparse.Namespace) -> None:
    from ..profiling.turns import framework_call, table_of, timed_in_turns
    from ..runtime.threads import default_threads
    from .cli_run import entry_named, inputs_of

    executable, weights = _executable(arguments)
    entry = entry_named(executable, arguments.entry)
    made = inputs_of(entry, arguments)
    if entry.weights:
        executable.bind(weights)
    threads = arguments.threads or default_threads()
    if executable.threads is not None or executable.manifest.target.openmp:
        executable.threads = threads
    inputs = [made[s.name] for s in entry.inputs]
    given, named = entry.call_of(inputs)
    state = executable.new_state() if entry.state else None

    def ours() -> list[Any]:
        found = executable(*given, entry=entry.name, state=state, **named)
        return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]

    peers = list(arguments.peers)
    if arguments.model.endswith(_FRAMEWORKS) and arguments.model not in peers:
        peers.insert(0, arguments.model)
    calls = {"relaxir": ours, **dict(framework_call(path, inputs, threads) for path in peers)}
    timed = timed_in_turns(calls, arguments.seconds)
    sizes = ", ".join(f"{s.name}: {list(made[s.name].shape)}" for s in entry.inputs)
    lines = [f"@{entry.name}({sizes}), {threads} threads"]
    if peers and entry.weights and arguments.weights is None and not arguments.model.endswith(_FRAMEWORKS):
        timed = [replace(t, error=None) for t in timed]
        lines.append("weights are random, so results are not compared with the peers': --weights gives the model's")
    lines += table_of(timed)
    tell(arguments, lines, {"entry": entry.name, "threads": threads, "runs": [t.as_json() for t in timed]}, asked=True)


def _executable(arguments: argparse.Namespace) -> tuple[Executable, Any]:
    """What is timed, and its prepared weights: a file, or prepared in memory; None where none are needed."""
    from .. import compile, load
    from .cli_profile import weights_for

    path: str = arguments.model
    if path.endswith(_FRAMEWORKS):
        if arguments.weights is not None:
            raise RelaxError(f"expected no --weights for '{path}', which has its own")
        return _imported(path)
    executable = load(path) if is_artifact(path) else compile(load_module(path))
    return executable, weights_for(executable, arguments)


def _imported(path: str) -> tuple[Executable, Any]:
    from .. import compile, from_onnx, from_torch, save_weights
    from ..frontend.saved_program import load_exported_program

    if path.endswith(".onnx"):
        executable = compile(from_onnx(path))
        return executable, executable.prepare(path)
    program = load_exported_program(path)
    executable = compile(from_torch(program))
    with tempfile.TemporaryDirectory(prefix="relaxir-bench-") as folder:
        file = f"{folder}/weights.safetensors"
        save_weights(program, file)
        return executable, executable.prepare(file)
