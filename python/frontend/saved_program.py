"""An exported program from the file that torch.export.save wrote."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..dialect.errors import RelaxError
from ..weights.files import KIND_BYTES, open_regular, os_errors, other_kind, path_text
from .torch_warnings import without_warnings

if TYPE_CHECKING:
    from torch.export import ExportedProgram

__all__ = ["load_exported_program"]


def load_exported_program(path: str | os.PathLike[str]) -> ExportedProgram:
    """Reads what ``torch.export.save`` wrote.

    Raises:
        RelaxError: torch is not installed, or the file is missing or something else.
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
    try:
        with without_warnings():
            return torch.export.load(name)
    except Exception as error:  # torch's reader fails in as many ways as there are damaged files
        reason = other_kind(begin, is_archive=True) or f"{type(error).__name__}: {error}".splitlines()[0]
        raise RelaxError(f"'{name}': expected a program saved by torch.export.save, got {reason}") from error
