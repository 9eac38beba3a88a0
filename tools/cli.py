"""``relaxir``: import a model, compile it, prepare its weights, run it; a mistake is one line on stderr and exit code 1, or 2
where the command line itself is wrong.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..dialect.errors import RelaxError
from ..dialect.printable import printable
from ..dialect.reports.report import plural
from ..lowering.relax_pipeline import NARROW
from .cli_named import NamedValues, add_dims, add_inputs
from .cli_numbers import seed
from .cli_output import add_output_options, plain_warnings, set_up_logging, tell
from .cli_paths import Read, Replaced, Written, refuse_lost
from .cli_target import add_target
from .models import is_artifact, load_module
from .sizes import byte_count, count
from .standard_streams import flushed, open_standard_streams

__all__ = ["main", "run"]

#: What only some commands need: what is deployed may lack it.
_INSTALLED_APART = {
    "torch_mlir": "torch-mlir",
    "llvmlite": "llvmlite",
    "rich": "rich",
    "torch": "torch",
    "transformers": "transformers",
    "onnx": "onnx",
}


def main() -> None:
    """Entry point of the console script."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `relaxir info ... | head` ends quietly
    open_standard_streams()
    sys.exit(flushed(run(sys.argv[1:])))


def run(argv: Sequence[str]) -> int:
    """Does what the arguments say. Returns the exit code: 0, 1 after a mistake, 2 after one of the command line, 130 after an
    interrupt.
    """
    try:
        arguments = _parser().parse_args(argv)
        set_up_logging(arguments)
        refuse_lost(arguments)
        with plain_warnings():
            code = arguments.command(arguments)
        sys.stdout.flush()
    except (RelaxError, OSError) as error:
        return _failed(f"error: {error}", str(error), 2 if isinstance(error, _UsageError) else 1)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _INSTALLED_APART:
            raise
        return _failed(f"error: {_missing(error)}", str(error), 1)
    except MemoryError:
        return _failed("error: out of memory", "out of memory", 1)
    except KeyboardInterrupt:
        return _failed("interrupted", "interrupted", 130)
    return code or 0


def _failed(line: str, reason: str, code: int) -> int:
    """Says what went wrong, and ends the other processes of ``mpiexec``, if this one has spoken to them."""
    print(printable(line, lines=True).replace("\n", "\n  "), file=sys.stderr)
    collectives = sys.modules.get(f"{(__package__ or '').rpartition('.')[0]}.runtime.collectives")
    if collectives is not None:
        collectives.end_all_ranks(reason)
    return code


def _missing(error: ModuleNotFoundError) -> str:
    package = _INSTALLED_APART[(error.name or "").split(".")[0]]
    return f"this command needs the package {package}, which is not installed: pip install {package}"


class _UsageError(RelaxError):
    """The command line cannot be read."""


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line in one line."""

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message} (see '{self.prog} --help')")


def _parser() -> argparse.ArgumentParser:
    from .cli_bench import add_bench
    from .cli_compare import add_compare
    from .cli_generate import add_generate
    from .cli_import import add_import
    from .cli_plan import add_plan
    from .cli_profile import add_profile
    from .cli_reduce import add_reduce
    from .cli_tune import add_tune
    from .cli_view import add_view

    parser = _Parser(prog="relaxir", description="Compile a model once, prepare its weights once, run on prepared weights.")
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add_import(commands)
    _add_compile(commands)
    _add_info(commands)
    _add_prepare(commands)
    _add_verify(commands)
    add_plan(commands)
    add_tune(commands)
    add_view(commands)
    add_profile(commands)
    add_bench(commands)
    add_compare(commands)
    add_reduce(commands)
    _add_run(commands)
    add_generate(commands)
    for command in dict.fromkeys(commands.choices.values()):  # a command with two names is there twice
        add_output_options(command)
    return parser


def _add_compile(commands: Any) -> None:
    from .cli_import import add_import_options

    command = commands.add_parser("compile", help="MLIR, a PyTorch program or an ONNX model to an executable artifact")
    command.add_argument("model", type=Read, metavar="MODEL", help="a .mlir, .pt2 or .onnx file")
    _add_output(command, "MODEL.relax", required=False, kind=Replaced)  # --print-pipeline writes nothing
    add_target(command, "what to compile for (default: %(default)s, this machine)", default="cpu")
    command.add_argument("--pipeline", metavar="PASSES", help="relax passes to run instead of the default ones")
    command.add_argument("--weights", choices=NARROW, help="dtype that weights of products are stored in")
    command.add_argument("--activations", choices=["int8"], help="of products with int8 and int4 weights (default: floats)")
    command.add_argument("--convolutions", choices=["direct"], help="3x3 ones in f32 without Winograd's filtering")
    command.add_argument(
        "--checkpoint", type=Read, metavar="WEIGHTS", help="a quantized checkpoint, whose weights stay as narrow as there"
    )
    command.add_argument("--rename", action="append", default=[], metavar="REGEX=TEXT", help="as for prepare, of --checkpoint")
    command.add_argument("--tp", type=int, default=1, metavar="N", help="processes that share each layer, under mpiexec -n N")
    command.add_argument("--checked", action="store_true", help="check every access of memory when it runs, for finding faults")
    command.add_argument("--c-prefix", metavar="NAME", help="how C names begin, for programs with several artifacts: NAME_main")
    command.add_argument("--plan-table", metavar="FOLDER", help="plans of kernels for GPUs, which relaxir tune has measured")
    command.add_argument(
        "--dump", type=Written, metavar="FOLDER", help="write the module after each pass, LLVM IR and assembly there"
    )
    add_import_options(command)
    _add_externs(command)
    command.add_argument("--print-pipeline", action="store_true", help="print the passes, in order, and compile nothing")
    command.set_defaults(command=_compile, refuse=command.error)


def _add_info(commands: Any) -> None:
    command = commands.add_parser("info", help="what an artifact computes, takes and prepares, or a module has")
    command.add_argument("model", metavar="MODEL", help="MODEL.relax or MODEL.mlir; - for a module from standard input")
    command.set_defaults(command=_info)


def _add_prepare(commands: Any) -> None:
    command = commands.add_parser("prepare", help="raw weights to prepared weights, streamed and resumable")
    command.add_argument("artifact", type=Read, metavar="MODEL.relax")
    command.add_argument("weights", type=Read, metavar="WEIGHTS", help="safetensors file, or Hugging Face directory or index")
    _add_output(command, "FILE.safetensors")
    command.add_argument("--jobs", type=count, default=1, metavar="N", help="threads; memory grows with each")
    command.add_argument(
        "--rename", action="append", default=[], metavar="REGEX=TEXT", help="what the model calls what WEIGHTS calls otherwise"
    )
    command.add_argument("--cast", action="store_true", help="round weights to the model's dtypes")
    command.add_argument("--only", nargs="+", metavar="NAME", help="prepare again what depends on these weights, in FILE")
    command.add_argument("--rank", type=int, metavar="R", help="which of several processes this is (default: as launched)")
    command.add_argument("--world", type=int, metavar="N", help="how many processes prepare, each its own files")
    command.add_argument("--shard-size", type=byte_count, metavar="5GB", help="the most bytes in a file")
    command.add_argument("--memory-limit", type=byte_count, metavar="4GiB", help="bytes at once: fewer threads, then pieces")
    command.add_argument(
        "--format", choices=["safetensors", "gguf"], help="write weights for other programs instead, quantized as the model is"
    )
    _add_externs(command)
    command.set_defaults(command=_prepare, refuse=command.error)


def _add_verify(commands: Any) -> None:
    command = commands.add_parser("verify", help="prepared weights against their checksums, and against raw weights")
    command.add_argument("artifact", type=Read, metavar="MODEL.relax")
    command.add_argument("prepared", metavar="FILE.safetensors", help="what prepare wrote")
    command.add_argument("--against", metavar="WEIGHTS", help="raw weights to prepare again and compare with")
    command.add_argument("--jobs", type=count, default=1, metavar="N", help="threads; memory grows with each")
    command.add_argument("--rename", action="append", default=[], metavar="REGEX=TEXT", help="as for prepare")
    command.add_argument("--cast", action="store_true", help="as for prepare")
    _add_externs(command)
    command.set_defaults(command=_verify)


def _add_run(commands: Any) -> None:
    command = commands.add_parser("run", help="call an entry of an artifact")
    command.add_argument("artifact", type=Read, metavar="MODEL.relax")
    command.add_argument("--weights", type=Read, metavar="FILE.safetensors", help="what prepare wrote")
    command.add_argument("--entry", metavar="NAME", help="which entry, when there are several and none is 'main'")
    add_inputs(command)
    command.add_argument("--random", type=seed, nargs="?", const=0, metavar="SEED", help="fill the other inputs at random")
    command.add_argument("--device", help="where it runs: cpu; code for GPUs: cuda:0, another number, emulated")
    add_dims(command, "size for --random")
    _add_externs(command)
    _add_output(command, "FILE.npz")
    command.set_defaults(command=_run)


def _add_externs(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--extern",
        action=NamedValues,
        metavar="FUNCTION=LIBRARY",
        dest="externs",
        help="the library of a C function that the model calls, and permission to call it",
    )


def _externs(arguments: argparse.Namespace) -> dict[str, str] | None:
    return arguments.externs or None


def _add_output(
    command: argparse.ArgumentParser, metavar: str, required: bool = True, kind: type[Written] = Written
) -> None:  # fmt: skip
    command.add_argument("-o", "--output", required=required, metavar=metavar, type=kind)


def _pipeline(arguments: argparse.Namespace) -> str:
    """All passes of a compilation, as ``relax-opt --pass-pipeline`` takes them."""
    from ..lowering.backend import backend_of
    from ..lowering.relax_pipeline import completed_pipeline
    from ..mesh import Mesh
    from ..runtime.environment import plan_table_directory

    backend, folder = backend_of(arguments.target), arguments.plan_table or plan_table_directory()
    compiler = backend.compiler_for(arguments.target, {**backend.make_runtime().here(), "plan_table": folder})
    given = arguments.pipeline
    choices = arguments.weights, arguments.activations, arguments.convolutions
    relax = completed_pipeline(given) if given else compiler.relax_pipeline(*choices)
    return f"builtin.module({Mesh(arguments.tp).passes}{relax},{compiler.pipeline(arguments.checked)})"


def _compile(arguments: argparse.Namespace) -> None:
    from .. import Mesh, compile
    from .cli_import import module_to_compile
    from .cli_info import info_data, info_lines

    if arguments.print_pipeline:
        passes = _pipeline(arguments)
        tell(arguments, passes, {"pipeline": passes}, asked=True)
        return
    output: str | None = arguments.output
    if output is None:
        refuse: Callable[[str], NoReturn] = arguments.refuse
        refuse("the following arguments are required: -o/--output")
    started = time.perf_counter()
    module = module_to_compile(arguments)
    executable = compile(
        module,
        arguments.target,
        arguments.pipeline,
        weights=arguments.weights,
        activations=arguments.activations,
        convolutions=arguments.convolutions,
        checked=arguments.checked,
        c_prefix=arguments.c_prefix,
        dump=arguments.dump,
        plan_table=arguments.plan_table,
        checkpoint=arguments.checkpoint,
        rename=arguments.rename or None,
        mesh=Mesh(arguments.tp),
        externs=_externs(arguments),
    )
    executable.save(output)
    seconds = time.perf_counter() - started
    lines = [f"compiled {arguments.model} to {output} in {seconds:.2f} s", *info_lines(executable.manifest)]
    tell(arguments, lines, {"output": output, "seconds": seconds, **info_data(executable.manifest)})


def _info(arguments: argparse.Namespace) -> None:
    from ..runtime.artifact import read_manifest
    from .cli_info import info_data, info_lines, module_data, module_lines

    if not is_artifact(arguments.model):
        module = load_module(arguments.model)
        tell(arguments, module_lines(module), module_data(module), asked=True)
        return
    manifest = read_manifest(arguments.model)
    tell(arguments, info_lines(manifest), info_data(manifest), asked=True)


def _prepare(arguments: argparse.Namespace) -> None:
    from .. import load
    from .cli_progress import progress_hook

    rank, world = _rank(arguments)
    executable = load(arguments.artifact, externs=_externs(arguments))
    with progress_hook("prepare", arguments.quiet) as hook:
        report = executable.prepare(
            arguments.weights,
            arguments.output,
            arguments.jobs,
            hook,
            rename=arguments.rename,
            cast=arguments.cast,
            only=arguments.only,
            rank=rank,
            world=world,
            shard_size=arguments.shard_size,
            memory_limit=arguments.memory_limit,
            format=arguments.format,
        )
    tell(arguments, str(report), dataclasses.asdict(report))


def _rank(arguments: argparse.Namespace) -> tuple[int, int]:
    """As it was said, else as a launcher says it (torchrun, mpiexec, srun)."""
    from ..runtime.ranks import environment_rank

    if arguments.rank is None and arguments.world is None:
        return (0, 1) if arguments.only else environment_rank(os.environ)
    if arguments.rank is None or arguments.world is None:
        refuse: Callable[[str], NoReturn] = arguments.refuse
        refuse("expected --rank and --world together, got one of them")
    return arguments.rank, arguments.world


def _verify(arguments: argparse.Namespace) -> None:
    from .. import load
    from .cli_progress import progress_hook

    executable, against = load(arguments.artifact, externs=_externs(arguments)), arguments.against
    with progress_hook("verify", arguments.quiet) as hook:
        verified = executable.verify(
            arguments.prepared, against, arguments.jobs, hook, rename=arguments.rename, cast=arguments.cast
        )
    text = f"verified {plural(verified, 'weight')} of {arguments.prepared}" + ("" if against is None else f" against {against}")
    tell(arguments, [text], {"verified": verified, "prepared": arguments.prepared, "against": against})


def _run(arguments: argparse.Namespace) -> None:
    from .. import load
    from .cli_io import write_npz
    from .cli_run import call_entry

    _check_folder(arguments.output)
    executable = load(arguments.artifact, arguments.device, externs=_externs(arguments))
    outputs = call_entry(executable, arguments)
    if executable.rank:  # all ranks have the same results
        return
    write_npz(arguments.output, outputs)
    lines = [*(f"{name}: {list(array.shape)} {array.dtype}" for name, array in outputs.items()), f"wrote {arguments.output}"]
    told = [{"name": name, "shape": array.shape, "dtype": str(array.dtype)} for name, array in outputs.items()]
    tell(arguments, lines, {"output": arguments.output, "outputs": told})


def _check_folder(path: str) -> None:
    """Nobody wants to hear of a mistyped folder after the work."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise RelaxError(f"cannot write '{path}': expected an existing folder, got '{folder}'")


def _version() -> str:
    from .. import __version__

    return f"relaxir {__version__}"


if __name__ == "__main__":
    main()
