"""The results of an entry by name: as its reference semantics has them, and as compiled code computes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dialect.bindings import ir
from ..dialect.functions import find_function
from ..dialect.weights import result_leaf_names
from .meaning import run_entry

if TYPE_CHECKING:
    from ..runtime.executable import Executable

__all__ = ["compiled_results", "reference_results"]

Array = np.ndarray[Any, Any]


def reference_results(module: ir.Operation, entry: str, inputs: Sequence[Array], raw: Mapping[str, Array]) -> dict[str, Array]:
    """What an entry of a module returns for inputs, state among them, and raw weights. Raises RelaxError as evaluation does."""
    names = [n for own in result_leaf_names(find_function(module, entry)) for n in own]
    results = run_entry(module, entry, inputs, raw)
    return dict(zip(names or [f"output{i}" for i in range(len(results))], results, strict=True))


def compiled_results(executable: Executable, entry: str, inputs: Sequence[Array]) -> dict[str, Array]:
    """What an entry of an executable with its weights returns for the same inputs; of state the values after the call.

    Raises:
        RelaxError: as the call does.
    """
    spec = executable.entries[entry]
    places = {s.argument: s.name for s in spec.state}
    state = executable.new_state({name: inputs[place].copy() for place, name in places.items()}) if places else None
    given, named = spec.call_of([x for i, x in enumerate(inputs) if i not in places])
    results = executable(*given, entry=entry, state=state, **named)
    values = results if isinstance(results, tuple) else (results,)
    found = {s.name: v for s, v in zip(spec.results, values, strict=True)}
    return found | ({n: np.asarray(state[n]) for n in places.values()} if state is not None else {})
