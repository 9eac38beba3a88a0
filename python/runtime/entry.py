"""A compiled function with its weights in place: arrays in, arrays of the same kind out."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..dialect.errors import RelaxError
from ..weights.arrays import Array, address, aligned_block, dtype_text, is_torch, to_numpy, to_torch
from .calls import as_argument, int64_array, invoke, pointer_array
from .library import EntryFunction
from .manifest import EntrySpec
from .scratch import ScratchPool
from .shapes import Shape, ShapeSolver
from .state import State

__all__ = ["BoundEntry"]

# Shape combinations kept solved: a call with one symbol takes 46 us when it solves and 29 us when it looks up (busy 2 cores).
_SHAPES_KEPT = 1024


@dataclass(frozen=True)
class _Plan:
    """What a set of input shapes determines: symbols as a C array and by name, dtypes and shapes of the outputs."""

    symbols: Any
    values: Mapping[str, int]
    outputs: tuple[tuple[np.dtype[Any], Shape], ...]


class BoundEntry:
    """Calls one entry. Thread-safe: calls share nothing but read-only data, a pool of scratch buffers and a state's lock."""

    def __init__(self, spec: EntrySpec, function: EntryFunction, weights: Sequence[Array], scratch: ScratchPool):
        """Prepares what all calls have in common.

        Args:
            spec: the entry.
            function: its compiled code.
            weights: contiguous arrays in the order of the entry's weights; kept alive.
            scratch: where arenas come from.

        Raises:
            RelaxError: the inputs' shapes cannot determine a symbol.
        """
        self.spec = spec
        self._function = function
        self._scratch = scratch
        self._what = f"entry '{spec.name}'"
        self._weights = [as_argument(w) for w in weights]
        first_weight = len(spec.inputs) + len(spec.state)
        self._first_output = first_weight + len(weights)
        self._positions = spec.input_positions
        template = pointer_array([0] * first_weight + [address(w) for w in self._weights] + [0] * len(spec.outputs))
        self._pointers: Any = type(template)
        self._template = bytes(template)
        self._dtypes = [s.dtype for s in spec.inputs]
        self._solver = ShapeSolver(spec)
        self._plan = functools.lru_cache(_SHAPES_KEPT)(self._planned)

    def __call__(self, *inputs: object, state: State | None = None, **named: object) -> Any:
        """Runs the entry.

        Args:
            state: what an entry with state updates.
            inputs: NumPy arrays, torch tensors, or anything with ``__dlpack__`` or ``__array_interface__``, in order.
                Contiguous ones are passed as they are, others are copied.
            named: the same by name.

        Returns:
            The output, or a tuple when there is not exactly one: torch tensors when an input is one, else NumPy arrays.

        Raises:
            RelaxError: an input is missing, has another dtype or shape, or a run-time check fails.
        """
        spec = self.spec
        if named or len(inputs) != len(spec.inputs):
            inputs = self._arranged(inputs, named)
        # What most callers give, contiguous and aligned arrays of the dtype, is let through here.
        usual = True
        for value, dtype in zip(inputs, self._dtypes, strict=True):
            if type(value) is not np.ndarray or value.dtype != dtype or not value.flags.carray:
                usual = False
        arrays = cast(Any, inputs) if usual else [self._checked(i, value) for i, value in enumerate(inputs)]
        plan = self._plan(tuple([a.shape for a in arrays]))
        outputs: list[Any] = []
        pointers = self._pointers.from_buffer_copy(self._template)
        for i, array in zip(self._positions, arrays, strict=True):
            pointers[i] = address(array)
        for i, (dtype, shape) in enumerate(plan.outputs, self._first_output):
            array, pointers[i] = aligned_block(dtype, shape)
            outputs.append(array)
        if spec.state:
            self._invoke_with_state(pointers, plan, state)
        else:
            self._invoke(pointers, plan)
        if not usual and any(is_torch(value) for value in inputs):
            outputs = [to_torch(a, f"output '{o.name}'") for o, a in zip(spec.outputs, outputs, strict=True)]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _invoke_with_state(self, pointers: Any, plan: _Plan, state: State | None) -> None:
        if state is None:
            raise RelaxError(f"{self._what}: expected a state, got none")
        with state.lock:
            state.check()
            for spec in self.spec.state:
                pointers[spec.argument] = state.address(spec.name)
            try:
                self._invoke(pointers, plan)
            except RelaxError as error:
                state.fail(str(error))
                raise

    def _invoke(self, pointers: Any, plan: _Plan) -> None:
        scratch = self._scratch.take()
        try:
            invoke(self._function, pointers, plan.symbols, scratch, self._what, self.spec.checks, plan.values)
        finally:
            self._scratch.give(scratch)

    def _checked(self, position: int, value: object) -> Array:
        spec = self.spec.inputs[position]
        array = value if type(value) is np.ndarray else to_numpy(value, f"input '{spec.name}'")
        if array.dtype != spec.dtype:
            raise RelaxError(f"input '{spec.name}': expected dtype {dtype_text(spec.dtype)}, got {dtype_text(array.dtype)}")
        return as_argument(array)

    def _planned(self, shapes: tuple[Shape, ...]) -> _Plan:
        solved = self._solver.solve(shapes)
        values = {s.name: v for s, v in zip(self.spec.symbols, solved.symbols, strict=True)}
        outputs = tuple((o.dtype, s) for o, s in zip(self.spec.outputs, solved.outputs, strict=True))
        return _Plan(int64_array(solved.symbols), values, outputs)

    def _arranged(self, inputs: tuple[object, ...], named: Mapping[str, object]) -> tuple[object, ...]:
        """Positional and named inputs in the entry's order."""
        names = [s.name for s in self.spec.inputs]
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
