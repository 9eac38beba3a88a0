"""``relaxir import``: PyTorch programs and ONNX models to MLIR; and the same for ``compile``, which takes them, too."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..dialect.errors import RelaxError
from ..dialect.reports.report import plural
from .cli_named import NamedValues
from .cli_output import tell
from .cli_paths import NamedRead, Written
from .models import load_module

if TYPE_CHECKING:
    from ..module import Module

__all__ = ["add_import", "add_import_options", "module_to_compile"]


def add_import(commands: Any) -> None:
    """The command."""
    command = commands.add_parser("import", help="PyTorch programs (torch.export.save), or an ONNX model, to MLIR")
    command.add_argument(
        "models",
        type=NamedRead,
        nargs="+",
        metavar="[NAME=]MODEL",
        help=".pt2 files, several of one model with their functions' names; or an .onnx file",
    )
    command.add_argument("-o", "--output", required=True, metavar="MODEL.mlir", type=Written)
    command.add_argument("--weights", type=Written, metavar="FILE.safetensors", help="also write the weights")
    add_import_options(command)
    command.set_defaults(command=_import, refuse=command.error)


def add_import_options(command: argparse.ArgumentParser) -> None:
    """``--dim`` and ``--cache-length``: what an import takes."""
    command.add_argument(
        "--dim",
        action=NamedValues,
        metavar="NAME=INPUT.AXIS",
        dest="dims",
        help="a dimension's name; of an .onnx file NAME=SIZE, or what it is in terms of others",
    )
    command.add_argument(
        "--cache-length", type=int, metavar="N", help="caches of an .onnx file as state with room for N tokens"
    )


def module_to_compile(arguments: argparse.Namespace) -> Module:
    """The module of a file, imported where it is a program or a model. Raises RelaxError."""
    path: str = arguments.model
    if path.endswith(".onnx"):
        return _of_onnx(path, arguments)
    if path.endswith(".pt2"):
        return _of_torch({"main": path}, arguments)[0]
    refuse: Callable[[str], NoReturn] = arguments.refuse
    if arguments.dims or arguments.cache_length is not None:
        refuse(f"{'--dim' if arguments.dims else '--cache-length'}: of a .pt2 or .onnx file that is imported, got '{path}'")
    return load_module(path)


def _of_onnx(path: str, arguments: argparse.Namespace) -> Module:
    from .. import from_onnx

    sizes = {name: int(size) if size.isdecimal() else size for name, size in arguments.dims.items()}
    return from_onnx(path, dims=sizes, cache_length=arguments.cache_length)


def _of_torch(files: Mapping[str, str], arguments: argparse.Namespace) -> tuple[Module, Mapping[str, Any]]:
    """The module of programs by their functions' names, and the programs."""
    if arguments.cache_length is not None:
        refuse: Callable[[str], NoReturn] = arguments.refuse
        refuse("--cache-length: of a PyTorch program, buffers that it changes are state")
    from .. import from_torch
    from ..frontend.saved_program import load_exported_program

    other = next((path for path in files.values() if not path.endswith(".pt2")), None)
    if other is not None:
        what = "a .pt2 file (torch.export.save) or an .onnx file" if len(files) == 1 else ".pt2 files (torch.export.save)"
        raise RelaxError(f"expected {what}, got '{other}'")
    programs = {name: load_exported_program(path) for name, path in files.items()}
    return from_torch(programs, dims=arguments.dims), programs


def _named_files(given: Sequence[NamedRead]) -> dict[str, str]:
    """Files by the name of their function; one alone is ``main``."""
    found: dict[str, str] = {}
    for one in given:
        if one.name is None and len(given) > 1:
            raise RelaxError(f"expected a name for each of several programs, as prefill={one}, got '{one}'")
        name = "main" if one.name is None else one.name
        if name in found:
            raise RelaxError(f"expected distinct names of programs, got '{name}' twice")
        found[name] = one.path
    return found


def _import(arguments: argparse.Namespace) -> None:
    """The weights of an .onnx file stay where they are: ``prepare`` reads these."""
    models: list[NamedRead] = arguments.models
    if len(models) == 1 and models[0].endswith(".onnx"):
        if arguments.weights is not None:
            refuse: Callable[[str], NoReturn] = arguments.refuse
            refuse("--weights: prepare reads the weights of an .onnx file from the file itself")
        _tell_imported(_of_onnx(models[0], arguments), arguments)
        return
    module, programs = _of_torch(_named_files(models), arguments)
    if arguments.weights is not None:
        from .. import save_weights

        save_weights(programs, arguments.weights)
    _tell_imported(module, arguments)


def _tell_imported(module: Any, arguments: argparse.Namespace) -> None:
    from .cli_info import signature_data

    module.save(arguments.output)
    lines = [f"imported {', '.join(arguments.models)} to {arguments.output}"]
    public = [s for s in module.functions.values() if not s.private]
    for signature in public:
        weights = plural(len(signature.weights), "weight") if signature.weights else "no weights"
        inputs = ", ".join(f"{s.name}: {s}" for s in signature.inputs) or "no inputs"
        lines.append(f"  @{signature.name}: {inputs}; {weights}")
    if arguments.weights is not None:
        lines.append(f"wrote the weights to {arguments.weights}")
    data = {"output": arguments.output, "weights": arguments.weights, "functions": [signature_data(s) for s in public]}
    tell(arguments, lines, data)
