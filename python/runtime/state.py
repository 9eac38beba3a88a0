"""Tensors that calls update in place, a cache of keys and values for example: one :class:`State` for each sequence."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

import numpy as np

from ..dialect.checks import expect
from ..dialect.errors import RelaxError, UnknownNameError
from ..lowering.manifest_specs import StateSpec
from ..weights.arrays import Array, ArraySpec, address, aligned_empty, to_numpy
from .outputs import memory_range, writable_array

__all__ = ["HOST", "State", "fill", "first_value"]

#: The memory that code for processors updates.
HOST = "host"


_numbers = itertools.count()


class State(Mapping[str, Array]):
    """Arrays by name, made with their first values when they are first needed.

    ``state["keys"]`` is the memory that calls write to; ``state["keys"] = array`` copies into it. One call at a time: further
    calls with the same state wait, calls with other states run beside it. What a call takes as an input must not share memory
    with what it updates: hand it a copy.

    Attributes:
        specs: what there is, by name.
        lock: held while a call uses the state.
        number: no other state has had it, so that what is known of this one can be kept without keeping it alive.
        place: whose memory the tensors are in.
    """

    place: ClassVar[str] = HOST

    def __init__(self, specs: Mapping[str, StateSpec], given: Mapping[str, object] | None = None):
        """Makes the state of an executable.

        Args:
            specs: what there is, by name.
            given: memory to use, by name: arrays of the right shape and dtype (NumPy, torch, DLPack), which calls then update.

        Raises:
            RelaxError: a given array has no such name, shape or dtype, cannot be written in place, or shares memory with
                another.
        """
        self.number = next(_numbers)
        self.specs = specs
        self._arrays: dict[str, Array] = {}
        self._addresses: dict[str, int] = {}
        self._broken: str | None = None
        self.lock, self._making = threading.Lock(), threading.Lock()
        if given is not None:
            expect(given, Mapping, "state as a mapping from names to arrays")
        for name, value in (given or {}).items():
            self._adopt(name, value)
        self._check_apart()

    def __getitem__(self, name: str) -> Array:
        self._spec(name)
        return self._array(name)

    def __setitem__(self, name: str, value: object) -> None:
        array = self._fitting(name, value)
        np.copyto(self._array(name), array)

    def __iter__(self) -> Iterator[str]:
        return iter(self.specs)

    def __len__(self) -> int:
        return len(self.specs)

    def __contains__(self, name: object) -> bool:
        return name in self.specs

    def reset(self) -> None:
        """Gives every tensor its first value again."""
        with self.lock:
            for name, array in list(self._arrays.items()):
                fill(array, self.specs[name])
            self._broken = None

    def copy(self) -> State:
        """Another state with the same contents, to go on from here in two ways."""
        with self.lock:
            self.check()
            other = State(self.specs)
            for name, array in list(self._arrays.items()):
                np.copyto(other[name], array)
            return other

    def __copy__(self) -> State:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, object]) -> State:
        return self.copy()

    def __reduce__(self) -> tuple[object, ...]:
        """What ``pickle`` keeps: the contents."""
        with self.lock:
            self.check()
            return State, (dict(self.specs), {name: np.array(array) for name, array in self._arrays.items()})

    def expect(self, wanted: Iterable[StateSpec], place: str = HOST) -> None:
        """Raises RelaxError where this is not the state of code that updates such tensors, in that memory."""
        if self.place != place:
            raise RelaxError(f"expected a state in the memory of the {place}, got one of the {self.place}")
        for spec in wanted:
            found = self.specs.get(spec.name)
            if found is None:
                names = ", ".join(self.specs) or "nothing"
                raise RelaxError(f"expected a state with '{spec.name}', got one with {names}, of another executable")
            if found.array != spec.array:
                raise RelaxError(f"state '{spec.name}': expected {spec.array}, got {found.array}, of another executable")

    def address(self, name: str) -> int:
        """Where a tensor of the state lies."""
        known = self._addresses.get(name)
        if known is None:
            self._array(name)
            known = self._addresses[name]
        return known

    def check(self) -> None:
        """Raises RelaxError when a failed call left the state half updated."""
        if self._broken is not None:
            raise RelaxError(
                f"expected a whole state, got one that a failed call left half updated: call reset ({self._broken})"
            )

    def fail(self, reason: str) -> None:
        """Notes that a call failed while it updated the state."""
        self._broken = reason

    def mend(self) -> None:
        """Says that what a failed call wrote does not count: as it lies behind what does, in a cache for example."""
        self._broken = None

    @property
    def is_broken(self) -> bool:
        """Whether a failed call left it half updated."""
        return self._broken is not None

    def __repr__(self) -> str:
        return f"<relaxir.State: {', '.join(f'{n}: {s.array}' for n, s in self.specs.items())}>"

    def _spec(self, name: str) -> StateSpec:
        found = self.specs.get(name) if isinstance(name, str) else None
        if found is None:
            raise UnknownNameError(f"expected state out of {', '.join(self.specs) or '(none)'}, got '{name}'")
        return found

    def _array(self, name: str) -> Array:
        found = self._arrays.get(name)
        return self._made(name) if found is None else found

    def _made(self, name: str) -> Array:
        """One array, whichever thread needs it first."""
        with self._making:
            found = self._arrays.get(name)
            if found is None:
                found = first_value(self.specs[name])
                self._keep(name, found)
            return found

    def _keep(self, name: str, array: Array) -> None:
        self._addresses[name] = address(array)  # first: who finds the array finds where it is
        self._arrays[name] = array

    def _adopt(self, name: str, value: object) -> None:
        """Uses memory that the caller gave."""
        array = writable_array(value, f"state '{name}'")
        self._keep(name, self._fitting(name, array))

    def _check_apart(self) -> None:
        """Raises RelaxError when two tensors share memory, which a call updates for one after the other."""
        ranges = sorted(memory_range(array, name) for name, array in self._arrays.items() if array.nbytes)
        for (_, last, one), (first, _, other) in itertools.pairwise(ranges):
            if first < last:
                raise RelaxError(f"state '{other}': expected memory of its own, got some that state '{one}' has")

    def _fitting(self, name: str, value: object) -> Array:
        spec = self._spec(name)
        array = to_numpy(value, f"state '{name}'")
        if ArraySpec.of(array) != spec.array:
            raise RelaxError(f"state '{name}': expected {spec.array}, got {ArraySpec.of(array)}")
        return array


def first_value(spec: StateSpec) -> Array:
    """The first value of a state, in new memory."""
    found = aligned_empty(spec.array.dtype, spec.array.shape)
    fill(found, spec)
    return found


def fill(array: Array, spec: StateSpec) -> None:
    """Gives an array the first value of a state."""
    if not array.size:
        return
    first = np.frombuffer(spec.first, spec.array.dtype)
    array[...] = first.reshape(array.shape) if first.size == array.size else first[0]
