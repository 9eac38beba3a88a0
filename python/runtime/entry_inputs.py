"""What calls of an entry have in common, wherever it runs: inputs in order and checked, and what their shapes determine."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dialect.errors import RelaxError
from ..lowering.manifest_specs import EntrySpec, StateSpec
from ..weights.arrays import Array, dtype_text, to_numpy
from .calls import int64_array
from .shapes import Shape, ShapeSolver
from .state import HOST, State

__all__ = ["CallPlan", "EntryInputs"]

# Shape combinations kept solved: a call with one symbol takes 46 us when it solves and 29 us when it looks up (busy 2 cores).
_SHAPES_KEPT = 1024


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What a set of input shapes determines.

    Attributes:
        symbols: the symbols' values, a C array.
        pointer: its address.
        values: the same by name.
        outputs: dtype, shape and bytes of each output.
        read: position and bytes of each input that has any.
    """

    symbols: Any
    pointer: ctypes.c_void_p
    values: Mapping[str, int]
    outputs: tuple[tuple[np.dtype[Any], Shape, int], ...]
    read: tuple[tuple[int, int], ...]


class EntryInputs:
    """The inputs of one entry.

    Attributes:
        spec: the entry.
    """

    def __init__(self, spec: EntrySpec):
        """Raises RelaxError when the inputs' shapes cannot determine a symbol."""
        self.spec = spec
        self._what = f"entry '{spec.name}'"
        self._served: Mapping[str, StateSpec] | None = None
        self._names = [s.name for s in spec.inputs]
        self._positional = spec.positional
        #: How many inputs are in order as they come, where none has a name; -1 where some have to have one.
        self._direct = len(self._names) if self._positional == len(self._names) else -1
        self._inputs = [(i, s.dtype, s.dtype.alignment) for i, s in zip(spec.input_positions, spec.inputs, strict=True)]
        # Of the specification, not of the entry: one that holds itself keeps its weights until Python collects such.
        self._plan = functools.lru_cache(_SHAPES_KEPT)(functools.partial(_planned, spec, ShapeSolver(spec)))

    def _expect(self, state: State, place: str = HOST) -> None:
        """Raises RelaxError where a state is not what the entry updates, in that memory; one kind is looked at once."""
        state.expect(self.spec.state, place)
        self._served = state.specs

    def _checked(self, position: int, value: object) -> Array:
        spec = self.spec.inputs[position]
        array = to_numpy(value, f"input '{spec.name}'")
        if array.dtype != spec.dtype:
            raise RelaxError(f"input '{spec.name}': expected dtype {dtype_text(spec.dtype)}, got {dtype_text(array.dtype)}")
        return array

    def _arranged(self, inputs: tuple[object, ...], named: Mapping[str, object]) -> tuple[object, ...]:
        """Positional and named inputs in the entry's order."""
        names = self._names
        if len(inputs) > self._positional and len(inputs) <= len(names):
            name = names[self._positional]
            raise RelaxError(f"{self._what}: expected input '{name}' by name, as the program was exported, got it by position")
        if len(inputs) + len(named) == len(names):
            try:
                return (*inputs, *[named[n] for n in names[len(inputs) :]])
            except KeyError:
                pass
        expected = f"{len(names)} input{'' if len(names) == 1 else 's'} ({', '.join(names)})"
        unknown = [n for n in named if n not in names]
        if unknown:
            raise RelaxError(f"{self._what}: expected {expected}, got one named '{unknown[0]}'")
        if len(inputs) > len(names):
            raise RelaxError(f"{self._what}: expected {expected}, got {len(inputs)}")
        twice = [n for n in names[: len(inputs)] if n in named]
        if twice:
            raise RelaxError(f"{self._what}: expected input '{twice[0]}' once, got it by position and by name")
        rest = names[len(inputs) :]
        missing = [n for n in rest if n not in named]
        if missing:
            raise RelaxError(f"{self._what}: expected {expected}, got none for '{missing[0]}'")
        return (*inputs, *(named[n] for n in rest))


def _planned(spec: EntrySpec, solver: ShapeSolver, shapes: tuple[Shape, ...]) -> CallPlan:
    solved = solver.solve(shapes)
    values = {s.name: v for s, v in zip(spec.symbols, solved.symbols, strict=True)}
    outputs = tuple((o.dtype, s, math.prod(s) * o.dtype.itemsize) for o, s in zip(spec.outputs, solved.outputs, strict=True))
    symbols = int64_array(solved.symbols)
    sizes = (
        (i, math.prod(s) * each.dtype.itemsize) for i, each, s in zip(spec.input_positions, spec.inputs, shapes, strict=True)
    )
    read = tuple((i, nbytes) for i, nbytes in sizes if nbytes)
    return CallPlan(symbols, ctypes.c_void_p(ctypes.addressof(symbols)), values, outputs, read)
