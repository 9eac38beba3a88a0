"""An exported program from the file that torch.export.save wrote, and to one that keeps the names of dimensions."""

from __future__ import annotations

import importlib
import os
import re
import zipfile
from contextlib import suppress
from typing import TYPE_CHECKING

from ..dialect.errors import RelaxError
from ..weights.files import KIND_BYTES, open_regular, os_errors, other_kind, path_text
from .torch_warnings import without_logs, without_warnings

if TYPE_CHECKING:
    from torch.export import ExportedProgram

__all__ = ["load_exported_program", "save_program"]

#: Namespaces of operators that a package registers only once this module of it is imported.
_HOMES = {"transformers": "transformers.integrations.moe"}

#: The graph in the archive: JSON, of which no more is looked at.
_GRAPH, _MOST = "/models/model.json", 1 << 28
_OPERATOR = re.compile(rb'"torch\.ops\.((\w+)\.\w+)')


def load_exported_program(path: str | os.PathLike[str]) -> ExportedProgram:
    """Reads what ``torch.export.save`` wrote.

    Raises:
        RelaxError: torch is not installed, the file is missing or something else, or nothing registered an operator.
    """
    name = path_text(path)
    if not name.endswith(".pt2"):
        raise RelaxError(f"expected a .pt2 file (torch.export.save), got '{name}'")
    with open_regular(name) as file, os_errors("read", name):
        begin = file.read(KIND_BYTES)
    try:
        import torch.export
    except ImportError:
        raise RelaxError("expected torch to be installed; pip install relaxir[torch]") from None
    operators = _operators(name)
    _import_homes({space for _, space in operators})
    try:
        with without_logs():  # of each reader that torch has tried: a traceback
            return torch.export.load(name)
    except Exception as error:  # torch's reader fails in as many ways as there are damaged files
        unknown = _unregistered(operators)
        if unknown:
            what = f"expected operators that are registered in this process, got {', '.join(unknown)}"
            raise RelaxError(f"'{name}': {what}: import the package that registers them first") from error
        reason = other_kind(begin, is_archive=True) or f"{type(error).__name__}: {error}".splitlines()[0]
        raise RelaxError(f"'{name}': expected a program saved by torch.export.save, got {reason}") from error


def save_program(program: ExportedProgram, path: str | os.PathLike[str]) -> None:
    """``torch.export.save``, with the names of ``torch.export.Dim`` beside the graph, where :func:`from_torch` finds them.

    PyTorch reads the file as any other; its own ``save`` loses the names, and ``--dim`` has to give them again.

    Raises:
        RelaxError: torch is not installed, it is no ExportedProgram, or the file cannot be written.
    """
    name = path_text(path)
    if not name.endswith(".pt2"):
        raise RelaxError(f"expected a name that ends in .pt2, got '{name}'")
    try:
        import torch.export
    except ImportError:
        raise RelaxError("expected torch to be installed; pip install relaxir[torch]") from None
    if not isinstance(program, torch.export.ExportedProgram):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RelaxError(f"expected a torch.export.ExportedProgram, got {type(program).__name__}")
    from .torch_program import kept_names

    with os_errors("write", name):
        file = open(name, "wb")  # noqa: SIM115  errors of torch are none of the system
    with file, kept_names(program), without_warnings():
        torch.export.save(program, file)


def _import_homes(spaces: set[str]) -> None:
    for space in sorted(spaces & _HOMES.keys()):
        with suppress(ImportError), without_logs():
            importlib.import_module(_HOMES[space])


def _unregistered(operators: set[tuple[str, str]]) -> list[str]:
    import torch

    return sorted(f"torch.ops.{n}" for n, space in operators if not hasattr(getattr(torch.ops, space), n.split(".")[1]))


def _operators(path: str) -> set[tuple[str, str]]:
    """``namespace.operator`` and the namespace of each operator; none of what is no such archive, which torch refuses."""
    try:
        with zipfile.ZipFile(path) as archive:
            graph = next((n for n in archive.namelist() if n.endswith(_GRAPH)), None)
            if graph is None:
                return set()
            with archive.open(graph) as file:
                text = file.read(_MOST)
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, ValueError):
        return set()
    return {(name.decode(), space.decode()) for name, space in _OPERATOR.findall(text)}
