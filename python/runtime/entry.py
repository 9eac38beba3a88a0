"""A compiled function with its weights in place: arrays in, arrays of the same kind out.

Everything that calls have in common is made before the first one, because a call should cost no more than a few microseconds:
what the weights' addresses are, how each input must look, and, for shapes that came before, how each output will.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from ..dialect.errors import RelaxError
from ..lowering.manifest_specs import EntrySpec
from ..weights.arrays import ALIGNMENT, Array, ArraySpec, address, aligned_block, is_torch, to_torch
from .calls import RefusedError, as_argument, finish, pointer_array
from .entry_inputs import CallPlan, EntryInputs
from .library import EntryFunction
from .outputs import MemoryRanges, arranged_outputs, memory_range, output_address, trimmed, writable_address
from .scratch import ScratchPool
from .shapes import Shape
from .state import State
from .threads import told
from .torch_tensors import TorchTensors, torch_tensors

__all__ = ["BoundEntry"]

# Bytes of results that are taken out of one piece, and of that piece, which lives as long as any of them.
_SMALL, _SLAB = 1 << 10, 1 << 13
_BYTES = np.dtype(np.uint8)

# Looked up once: a call takes each of them for every tensor.
_ndarray, _addressof, _from_buffer = np.ndarray, ctypes.addressof, ctypes.c_char.from_buffer


@dataclass(slots=True)
class _Frame:
    """The pointers of one call, the weights' among them; calls that follow it use it again.

    Attributes:
        tensors: a C array.
        pointer: its address.
        state: the number of the state whose addresses are in it.
        held: where that state is.
    """

    tensors: Any
    pointer: ctypes.c_void_p = field(init=False)
    state: int = -1
    held: MemoryRanges = field(init=False)
    _slab: Array = field(init=False)
    _start: int = 0
    _used: int = _SLAB + 1  # no piece yet, for a result of no bytes either

    def __post_init__(self) -> None:
        self.pointer = ctypes.c_void_p(ctypes.addressof(self.tensors))

    def block(self, dtype: np.dtype[Any], shape: Shape, nbytes: int) -> tuple[Array, int]:
        """Memory for a result, and where it is. Small ones come out of one piece, which takes a third of the time."""
        if nbytes > _SMALL:
            return aligned_block(dtype, shape, nbytes)
        used = self._used
        if used + nbytes > _SLAB:
            self._slab, self._start = aligned_block(_BYTES, (_SLAB,), _SLAB)
            used = 0
        self._used = used + -(-nbytes // ALIGNMENT) * ALIGNMENT
        return _ndarray(shape, dtype, cast(Any, self._slab), used), self._start + used


class BoundEntry(EntryInputs):
    """Calls one entry. Thread-safe: calls share nothing but read-only data, pools of buffers and a state's lock."""

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
        super().__init__(spec)
        self._function = function
        self._team = function.library.team
        self._scratch = scratch
        self._weights = [as_argument(w, f"weight '{s.name}'") for s, w in zip(spec.weights, weights, strict=True)]
        first_weight = len(spec.inputs) + len(spec.state)
        self._first_output = first_weight + len(weights)
        template = [0] * first_weight + [address(w) for w in self._weights] + [0] * len(spec.outputs)
        self._template = pointer_array(template)
        self._frames: list[_Frame] = []
        self._torch: TorchTensors | None = None
        self._torch_inputs: list[tuple[int, Any, int]] = []
        self._torch_outputs: list[Any] = []
        self._plain_outputs: set[int] = set()

    def call(self, inputs: tuple[object, ...], named: Mapping[str, object], state: State | None, out: object) -> Any:
        """Runs the entry.

        Args:
            inputs: NumPy arrays, torch tensors, or anything with ``__dlpack__`` or ``__array_interface__``, in order.
                Contiguous ones are passed as they are, others are copied.
            named: the same by name.
            state: what an entry with state updates.
            out: where to put results, see :meth:`Executable.__call__`.

        Returns:
            The output, or a tuple when there is not exactly one: torch tensors when an input is one, else NumPy arrays.

        Raises:
            RelaxError: an input is missing, an input or output has another dtype or shape, or a run-time check fails.
        """
        if state is not None and state.specs is not self._served:
            self._expect(state)
        if named or len(inputs) != self._direct:
            inputs = self._arranged(inputs, named)
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = _Frame(type(self._template)(*self._template))
        shapes = self._numpy_shapes(inputs, frame.tensors)
        torch = shapes is None
        if shapes is None:
            shapes = self._torch_shapes(inputs, frame.tensors)
        if shapes is None:
            _copies, shapes = self._any_shapes(inputs, frame.tensors)  # copies live until the call is done
            torch = any(is_torch(value) for value in inputs)
        plan = self._plan(shapes)
        results = self._results(frame, plan, torch) if out is None else self._results_in(out, frame, plan, torch, state)
        if self.spec.state:
            self._invoke_with_state(frame, plan, state)
        else:
            self._invoke(frame, plan)
        self._frames.append(frame)
        results = trimmed(self.spec, results)
        return results[0] if len(results) == 1 else tuple(results)

    # -- inputs ----------------------------------------------------------------------------------------------------

    def _numpy_shapes(self, inputs: tuple[object, ...], tensors: Any) -> tuple[Shape, ...] | None:
        """Enters the inputs' addresses if all are what most callers give: arrays of the dtype, contiguous and aligned."""
        shapes: list[Shape] = []
        for i, (position, dtype, alignment) in enumerate(self._inputs):
            value = inputs[i]
            if type(value) is not _ndarray or (value.dtype is not dtype and value.dtype != dtype):
                return None
            try:
                where = _addressof(_from_buffer(cast(Any, value)))  # refuses what is not contiguous
            except (TypeError, ValueError, BufferError):  # nor writable, is empty, or has a dtype that buffers do not know
                return None
            if where % alignment:
                return None
            tensors[position] = where
            shapes.append(value.shape)
        return tuple(shapes)

    def _torch_shapes(self, inputs: tuple[object, ...], tensors: Any) -> tuple[Shape, ...] | None:
        """The same for torch."""
        torch = self._torch or self._found_torch()
        if torch is None:
            return None
        shapes: list[Shape] = []
        for i, (position, dtype, alignment) in enumerate(self._torch_inputs):
            tensor = cast(Any, inputs[i])
            if type(tensor) is not torch.type or tensor.dtype is not dtype:
                return None
            if tensor.layout is not torch.strided or not tensor.is_cpu:
                return None
            try:
                if not tensor.is_contiguous() or tensor.is_neg():
                    return None
                where, shape = tensor.data_ptr(), tensor.shape
            except RuntimeError:  # has no memory, as within transformations of functions, or several shapes
                return None
            if where == 0 or where % alignment:
                return None
            tensors[position] = where
            shapes.append(shape)
        return tuple(shapes)

    def _found_torch(self) -> TorchTensors | None:
        """What is known of torch once a caller may hold tensors of it."""
        torch = torch_tensors()
        if torch is not None:
            self._torch_inputs = [(i, torch.dtype(dtype), alignment) for i, dtype, alignment in self._inputs]
            self._torch_outputs = [torch.dtype(o.dtype) for o in self.spec.outputs]
            outputs = enumerate(self.spec.outputs, self._first_output)
            self._plain_outputs = {i for i, o in outputs if o.dtype.isbuiltin == 1 and torch.dtype(o.dtype) is not None}
            self._torch = torch
        return torch

    def _any_shapes(self, inputs: tuple[object, ...], tensors: Any) -> tuple[list[Array], tuple[Shape, ...]]:
        """The same for everything else, with the arrays, which may be copies."""
        arrays = [self._checked(i, value) for i, value in enumerate(inputs)]
        self._plan(tuple([a.shape for a in arrays]))  # a wrong size is an error before it takes memory
        arrays = [as_argument(a, f"input '{s.name}'") for s, a in zip(self.spec.inputs, arrays, strict=True)]
        for array, (position, _, _) in zip(arrays, self._inputs, strict=True):
            tensors[position] = address(array)
        return arrays, tuple([a.shape for a in arrays])

    # -- results ---------------------------------------------------------------------------------------------------

    def _results(self, frame: _Frame, plan: CallPlan, torch: bool) -> list[Any]:
        """New ones."""
        results: list[Any] = []
        for position, (dtype, shape, nbytes) in enumerate(plan.outputs, self._first_output):
            array, frame.tensors[position] = frame.block(dtype, shape, nbytes)
            results.append(array)
        return [self._as_torch(i, a) for i, a in enumerate(results, self._first_output)] if torch else results

    def _results_in(self, out: object, frame: _Frame, plan: CallPlan, torch: bool, state: State | None) -> list[Any]:
        """What the caller gave, after checking it, and new ones where it gave none."""
        results: list[Any] = []
        one = type(out) is _ndarray and len(plan.outputs) == 1
        for i, value in enumerate((out,) if one else arranged_outputs(self.spec, out, self._what)):
            dtype, shape, nbytes = plan.outputs[i]
            position = self._first_output + i
            if value is None:
                array, frame.tensors[position] = frame.block(dtype, shape, nbytes)
                results.append(self._as_torch(position, array) if torch else array)
                continue
            spec = self.spec.outputs[i]
            start = self._plain_address(value, dtype, shape, position) or output_address(spec, value, ArraySpec(dtype, shape))
            shared = self._sharing(start, start + nbytes, i, frame.tensors, plan, state)
            if shared is not None:
                raise RelaxError(f"output '{spec.name}': expected memory of its own, got some that {shared} has")
            frame.tensors[position] = start
            results.append(value)
        return results

    def _plain_address(self, value: object, dtype: np.dtype[Any], shape: Shape, position: int) -> int | None:
        """Where a result may be written to, if it looks like what most callers give; None for everything else."""
        if type(value) is _ndarray:
            return writable_address(value, dtype, shape)
        torch = self._torch or self._found_torch()
        if torch is None or type(value) is not torch.type:
            return None
        return torch.writable_address(value, self._torch_outputs[position - self._first_output], shape, dtype.alignment)

    def _sharing(self, start: int, end: int, output: int, tensors: Any, plan: CallPlan, state: State | None) -> str | None:
        """What of what a call reads or writes before has part of a result's memory, if anything."""
        if start == end:
            return None
        for position, nbytes in plan.read:
            if start < tensors[position] + nbytes and tensors[position] < end:
                return f"input '{self.spec.inputs[self.spec.input_positions.index(position)].name}'"
        for spec in self.spec.state:
            other = state.address(spec.name) if state is not None else end
            if start < other + spec.array.nbytes and other < end:
                return f"state '{spec.name}'"
        for i in range(output):
            other, nbytes = tensors[self._first_output + i], plan.outputs[i][2]
            if nbytes and start < other + nbytes and other < end:
                return f"output '{self.spec.outputs[i].name}'"
        return self._weight_memory.overlap(start, end)

    @functools.cached_property
    def _weight_memory(self) -> MemoryRanges:
        return MemoryRanges(
            memory_range(a, f"weight '{w.name}'") for w, a in zip(self.spec.weights, self._weights, strict=True)
        )

    def _as_torch(self, position: int, array: Array) -> Any:
        if position in self._plain_outputs:
            return cast(TorchTensors, self._torch).from_numpy(array)
        return to_torch(array, f"output '{self.spec.outputs[position - self._first_output].name}'")

    # -- the call --------------------------------------------------------------------------------------------------

    def _invoke_with_state(self, frame: _Frame, plan: CallPlan, state: State | None) -> None:
        if state is None:
            raise RelaxError(f"{self._what}: expected a state, got none")
        with state.lock:
            state.check()
            if frame.state != state.number:
                for spec in self.spec.state:
                    frame.tensors[spec.argument] = state.address(spec.name)
                frame.state, frame.held = (
                    state.number,
                    MemoryRanges(memory_range(state[s.name], s.name) for s in self.spec.state),
                )
            _copies = self._apart(frame, plan)  # live until the call is done
            try:
                self._invoke(frame, plan)
            except RefusedError:
                raise
            except RelaxError as error:
                state.fail(str(error))
                raise

    def _apart(self, frame: _Frame, plan: CallPlan) -> list[Array]:
        """Copies, which the frame then names, of inputs that are part of the state's memory, which code writes."""
        copies: list[Array] = []
        for position, nbytes in plan.read:
            start = frame.tensors[position]
            if frame.held.overlap(start, start + nbytes) is not None:
                copy, frame.tensors[position] = aligned_block(_BYTES, (nbytes,), nbytes)
                ctypes.memmove(frame.tensors[position], start, nbytes)
                copies.append(copy)
        return copies

    def _invoke(self, frame: _Frame, plan: CallPlan) -> None:
        if self._team.count != told.count:
            self._team.gather()
        scratch, function = self._scratch.take(), self._function
        try:
            status = function(frame.pointer, plan.pointer, scratch.pointer, scratch.extent)
            if status:
                checks, values = self.spec.checks, plan.values
                finish(status, function, frame.pointer, plan.pointer, scratch, self._what, checks, values)
        finally:
            self._scratch.give(scratch)
