"""``from_torch``: an ExportedProgram as a relax module, weights as arguments; ``save_weights``: those weights as a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..dialect.errors import RelaxError
from ..dialect.relax import new_context
from ..module import Module

if TYPE_CHECKING:
    from torch.export import ExportedProgram

__all__ = ["from_torch", "save_weights"]


def from_torch(exported_program: ExportedProgram) -> Module:
    """Imports what ``torch.export.export(model.eval(), ...)`` returns.

    The module has one function ``main``. Its arguments are the model's inputs under their Python names, then buffers that the
    model changes (they come back as additional results), then the weights it reads, under their fully qualified names, tied
    ones once. ``relax.kind`` tells them apart. Dimensions exported with ``torch.export.Dim`` are symbolic, under the Dim's
    name where torch still knows it; their ranges are in ``relax.symbol_ranges``. Every op has the line of the user's Python.

    An operator without a relax form becomes a private function ``@aten_<operator>_<number>`` that torch-mlir lowered to linalg.
    Such a module compiles; :func:`relaxir.evaluate` refuses it, as it knows relax ops only.

    Nothing is read from the weights: a program exported on the ``meta`` device works as well.

    Raises:
        RelaxError: torch is not installed; it is no ExportedProgram; an input or output is no tensor; operators have
            neither a relax form nor a lowering in torch-mlir (one error for all of them, with count, source lines and module
            paths); a tensor holds complex numbers.
    """
    torch_program, torch_graph = _torch_side(exported_program)
    from .torch_report import UnsupportedError
    from .torch_to_relax import convert_module

    names = torch_program.symbol_names(exported_program)
    first: UnsupportedError | None = None
    also: frozenset[str] = frozenset()
    plain = torch_graph.is_plain(exported_program)
    while True:  # each round decomposes more operators than the last
        prepared = exported_program if plain else torch_graph.decomposed(exported_program, also)
        program = torch_program.read_program(prepared)
        _check_stored(program, torch_program.stored_tensors(exported_program))
        graph = torch_graph.import_graph(prepared, program, names, new_context())
        try:
            return Module(convert_module(graph))
        except UnsupportedError as error:
            first = first or error
            more = torch_graph.can_decompose(error.report.operators) - also
            if not more:
                raise first.where_also(error) from None
            also |= more
            plain = False


def _check_stored(program: Any, stored: Any) -> None:
    """A weight that a decomposition made up would be in no file."""
    made = [a.name for a in program.arguments if a.kind == "constant" and a.name not in stored]
    if made:
        raise RelaxError(f"expected weights of the exported program only, got '{made[0]}' from a decomposition")


def save_weights(exported_program: ExportedProgram, path: str | os.PathLike[str]) -> None:
    """Writes the model's weights as a safetensors file: parameters, persistent buffers, and the other buffers and constants
    that it reads, under their fully qualified names, tied ones once, one after the other.

    Raises:
        RelaxError: torch is not installed; it is no ExportedProgram; a weight is on the ``meta`` device; the file cannot be
            written.
    """  # fmt: skip
    torch_program, _ = _torch_side(exported_program)
    from .torch_weights import write_tensors

    write_tensors(torch_program.stored_tensors(exported_program), path)


def _torch_side(exported_program: Any) -> tuple[Any, Any]:
    """The modules that import torch, once it is clear that there is something for them to do."""
    try:
        import torch.export
    except ImportError:
        raise RelaxError("expected torch to be installed; pip install relaxir[torch]") from None
    if not isinstance(exported_program, torch.export.ExportedProgram):
        raise RelaxError(
            f"expected a torch.export.ExportedProgram, got {type(exported_program).__name__}; "
            "call torch.export.export(model, example_inputs) first"
        )
    from . import torch_graph, torch_program

    return torch_program, torch_graph
