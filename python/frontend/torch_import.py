"""``from_torch``: an ExportedProgram as a relax module, weights as arguments; ``save_weights``: those weights as a file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ..collector import collector_paused
from ..dialect.bindings import ir
from ..dialect.checks import expect
from ..dialect.constants import set_constants
from ..dialect.context import new_context
from ..dialect.errors import RelaxError, RelaxWarning, interruptible
from ..module import Module
from .saved_program import load_exported_program

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from .torch_stored import Stored

    #: What torch exported, or the path of the .pt2 file that has it.
    Program: TypeAlias = ExportedProgram | str | os.PathLike[str]

__all__ = ["from_torch", "save_weights"]

#: Frames from a warning in :func:`from_torch` to its caller: its own, and one of each decorator.
_CALLER = 4


@collector_paused()
@interruptible()
def from_torch(exported_program: Program | Mapping[str, Program], *, dims: Mapping[str, str] | None = None) -> Module:
    """Imports what ``torch.export.export(model.eval(), ...)`` returns, or a file of it (``torch.export.save``, ``.pt2``).

    The module has one function ``main``. Its arguments are the model's inputs under their Python names, then buffers that the
    model changes (they come back as additional results), then the weights it reads, under their fully qualified names, tied
    ones once. ``relax.kind`` tells them apart. Dimensions exported with ``torch.export.Dim`` are symbolic, under the Dim's
    name where torch still knows it, which it does not of a program that was saved: ``dims={"batch": "tokens.0"}`` gives names
    to dimensions of inputs. Their ranges are in ``relax.symbol_ranges``. Every op has the line of the user's Python.

    Buffers that the model changes are state (``relax.state``), with the value that they have now as the first one; an
    executable keeps them between calls. An input that the model changes comes back as an additional result, which a
    :class:`RelaxWarning` tells: what a call is given stays as it is.

    A mapping of programs, of one model in several uses, gives one module with a function for each, under the mapping's names.
    They share weights and state by name, or by memory where names differ; what one of them changes is state in all. A constant
    of one that another lacks goes by ``<function>/<name>``.

    An operator without a relax form becomes a private function ``@aten_<operator>_<number>`` that torch-mlir lowered to linalg,
    where that is known to agree with torch. Such a module compiles; :func:`relaxir.evaluate` refuses it, as it knows relax ops
    only.

    Of non-persistent buffers and constants, which no checkpoint holds, the module has the values (``relax.constants``): those
    of up to 1 MiB that are not on the ``meta`` device. Larger ones are weights like others, which :func:`save_weights` writes.

    Nothing else is read from the weights: a program exported on the ``meta`` device or under ``FakeTensorMode`` works as well,
    with weights tied where they are one tensor. State there starts from zero.

    What the model asserts of numbers (``torch._assert_async``) is checked when it runs. What it asserts of sizes is not:
    ``torch.export`` has assumed it, and the ranges of dimensions are checked.

    Raises:
        RelaxError: torch is not installed; it is no ExportedProgram; an input or output is no tensor; operators have
            neither a relax form nor a trusted lowering in torch-mlir (one error for all of them, with count, source lines,
            module paths and what to write instead); a tensor holds complex numbers; programs have different weights of one
            name; state shares a part of its memory with another tensor; dims names what is no dynamic dimension of an input.
    """
    programs = _named_programs(exported_program)
    if dims is not None:
        expect(dims, Mapping, "dims as a mapping, as {'batch': 'x.0'}")
    dims = dict(dims or {})
    from . import torch_graph, torch_program
    from .torch_stored import stored_together
    from .torch_to_relax import convert_modules
    from .torch_weights import known_values

    torch_program.check_dims(dims, programs.values())
    stored_together(programs)  # what cannot be imported is said before the seconds that decomposing takes
    prepared = {n: torch_graph.importable(p) for n, p in programs.items()}
    changed = list(dict.fromkeys(name for program in prepared.values() for name in torch_program.changed_inputs(program)))
    if changed:
        text = f"the model writes to '{changed[0]}': its new value is one more result, and what a call is given stays as it is"
        warnings.warn(text, RelaxWarning, stacklevel=_CALLER)
    stored = stored_together(programs, prepared)
    context = new_context()
    found = [_imported(program, prepared[name], name, stored, context, dims) for name, program in programs.items()]
    module = found[0][1] if len(found) == 1 else convert_modules([graph for graph, _ in found])
    with context, ir.Location.unknown():
        set_constants(module.operation, known_values(module.operation, stored.unsaved))
    return Module(module)


def _imported(
    exported: ExportedProgram, prepared: ExportedProgram, entry: str, stored: Stored, context: Any, dims: Mapping[str, str]
) -> tuple[Any, Any]:
    """The program as a module in the torch dialect, and that one in relax.

    Args:
        exported: the program.
        prepared: the same, decomposed where that is needed.
        entry: the function's name.
        stored: the weights and the state of all programs.
        context: where the modules are made.
        dims: names of dimensions, with their places.
    """
    from . import torch_graph, torch_program
    from .torch_guards import guards_of, note_guards
    from .torch_report import UnsupportedError
    from .torch_to_relax import convert_modules

    names = torch_program.symbol_names(exported, dims)
    first: UnsupportedError | None = None
    also: frozenset[str] = frozenset()
    while True:  # each round decomposes more operators than the last
        program = torch_program.read_program(prepared, stored, entry)
        _check_stored(program, stored.tensors)
        graph = torch_graph.import_graph(prepared, program, names, context, entry)
        note_guards(graph, guards_of(exported, prepared, [a.node for a in program.arguments], names))
        try:
            return graph, convert_modules([graph])
        except UnsupportedError as error:
            first = first or error
            more = torch_graph.can_decompose(error.report.operators) - also
            if not more:
                raise first.where_also(error) from None
            also |= more
            prepared = torch_graph.decomposed(exported, also)


def _check_stored(program: Any, stored: Any) -> None:
    """A weight that a decomposition made up would be in no file."""
    made = [a.name for a in program.arguments if a.kind == "constant" and a.name not in stored]
    if made:
        raise RelaxError(f"expected weights of the exported program only, got '{made[0]}' from a decomposition")


def save_weights(exported_program: Program | Mapping[str, Program], path: str | os.PathLike[str]) -> None:
    """Writes the model's weights as a safetensors file: parameters, persistent buffers, and the other buffers and constants
    that it reads, under their fully qualified names, tied ones once, one after the other. State is no weight. Several programs
    are as for :func:`from_torch`.

    Raises:
        RelaxError: torch is not installed; it is no ExportedProgram; a weight is on the ``meta`` device; programs have
            different weights of one name; the file cannot be written.
    """  # fmt: skip
    programs = _named_programs(exported_program)
    from .torch_stored import stored_together
    from .torch_weights import write_tensors

    write_tensors(stored_together(programs).tensors, path)


def _named_programs(given: Any) -> dict[str, ExportedProgram]:
    """The programs by the name of their function, once it is clear that there is something for torch to do."""
    try:
        import torch.export
    except ImportError:
        raise RelaxError("expected torch to be installed; pip install relaxir[torch]") from None
    programs: dict[Any, Any] = dict(cast("Mapping[Any, Any]", given)) if isinstance(given, Mapping) else {"main": given}
    for name, program in programs.items():
        if isinstance(program, str | os.PathLike):
            programs[name] = program = load_exported_program(cast("str | os.PathLike[str]", program))
        if not isinstance(program, torch.export.ExportedProgram):
            raise RelaxError(
                f"expected a torch.export.ExportedProgram, got {type(program).__name__}; "
                "call torch.export.export(model, example_inputs) first"
            )
        if not isinstance(name, str) or not name:
            raise RelaxError(f"expected names of functions for programs, got {name!r}")
    if not programs:
        raise RelaxError("expected at least one program, got none")
    from .torch_regions import without_regions
    from .torch_subclasses import unwrapped

    return {name: without_regions(unwrapped(program)) for name, program in programs.items()}
