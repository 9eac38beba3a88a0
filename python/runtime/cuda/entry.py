"""An entry whose tensors are on a device: inputs are copied there, or are there already, and so are results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...dialect.array_spec import aligned
from ...dialect.errors import RelaxError
from ...lowering.manifest_specs import EntrySpec
from ...weights.arrays import Array, ArraySpec, address, aligned_empty, array_at, dtype_text, is_torch, to_torch
from ..calls import RefusedError, as_argument, failure, pointer_array
from ..entry_inputs import CallPlan, EntryInputs
from ..outputs import arranged_outputs, output_address, trimmed
from ..state import State
from .arrays import DeviceArray, DeviceTensor, device_tensor, is_on_device, to_device_torch, torch_stream
from .code import CudaLibrary, LoadedCode
from .deferred import CheckedCall
from .device import Device, DeviceBuffer
from .graphs import Graphs
from .memory import Block
from .state import DeviceState

__all__ = ["DeviceEntry", "HeldWeight"]

# What a status that tells of a failed call of the driver is at least, as a positive number, and less than twice that.
_FAILED = 1 << 48
# What one is at least, and less than twice that, that tells of a check that a kernel made.
_FOUND = 1 << 49
# What one is at least, and less than twice that, that tells of an access of the host's outside of its buffer, in checked code.
_HOST_FAULT = 1 << 50
# What the number of a kernel's check is at least that is such an access of a kernel's (lowering/cuda/check_device_accesses).
_FAULT = 1 << 40


@dataclass(frozen=True)
class HeldWeight:
    """A prepared weight where entries read it: in the device's memory, the host's, or both."""

    there: DeviceBuffer | None
    array: Array | None

    def address(self, on_host: bool) -> int:
        """Of its first element."""
        if on_host:
            assert self.array is not None
            return address(self.array)
        assert self.there is not None
        return self.there.address


@dataclass(frozen=True)
class _Tensor:
    """An input or a result of one call: on the device, an array that is copied there or from there, or one that stays."""

    there: DeviceTensor | DeviceArray | None
    array: Array | None
    stays: bool = False

    @property
    def copied(self) -> Array | None:
        """The array, where it is copied."""
        return None if self.stays else self.array

    @property
    def nbytes(self) -> int:
        """Bytes that it needs of the call's memory on the device."""
        return 0 if self.copied is None else aligned(self.copied.nbytes)


class DeviceEntry(EntryInputs):
    """Calls one entry. Thread-safe: calls follow one another on the device's stream, and have memory of their own."""

    def __init__(self, spec: EntrySpec, library: CudaLibrary, weights: Sequence[HeldWeight]):
        """Prepares what all calls have in common; the device is asked for by the first one.

        Args:
            spec: the entry.
            library: its code.
            weights: in the order of the entry's weights; kept alive.

        Raises:
            RelaxError: the inputs' shapes cannot determine a symbol.
        """
        super().__init__(spec)
        self._library, self._team = library, library.team
        self._first_weight = len(spec.inputs) + len(spec.state)
        self._host = library.spec.host.get(spec.symbol, frozenset[int]())
        self._kept = list(weights)
        self._weights = [w.address(i in self._host) for i, w in enumerate(weights, self._first_weight)]
        self._first_output = self._first_weight + len(weights)

    @functools.cached_property
    def _function(self) -> Any:
        return self._library.entry(self.spec.symbol)

    @functools.cached_property
    def _graphs(self) -> Graphs | None:
        """None for an entry that does more than launch."""
        return Graphs(self._device) if self.spec.symbol in self._library.spec.graphs else None

    @property
    def _code(self) -> LoadedCode:
        return self._library.loaded

    @property
    def _device(self) -> Device:
        return self._library.loaded.device

    def call(self, inputs: tuple[object, ...], named: Mapping[str, object], state: State | None, out: object) -> Any:
        """Runs the entry; see :meth:`relaxir.runtime.entry.BoundEntry.call`.

        Inputs that are on the device are read where they are; then results are left there, too, and the call may return before
        they are computed: what reads them on another stream has to wait for the device's. Then, a check of values that fails
        is raised by what waits for the call: a copy of a result or of its state to the host, and :meth:`Executable.wait`; and
        by the next call of the executable that finds it done.
        """
        if state is not None and state.specs is not self._served:
            self._expect(state, DeviceState.place)
        if named or len(inputs) != self._direct:
            inputs = self._arranged(inputs, named)
        with self._device.current():
            return self._called(inputs, state, out)

    def _called(self, inputs: tuple[object, ...], state: State | None, out: object) -> Any:
        stream = self._stream(inputs)
        read = [self._read(i, value, stream) for i, value in enumerate(inputs)]
        plan = self._plan(tuple([_shape(t) for t in read]))
        read = [self._contiguous(i, t) for i, t in enumerate(read)]
        stay = any(t.there is not None for t in read)
        given = [None] * len(plan.outputs) if out is None else arranged_outputs(self.spec, out, self._what)
        written = [self._written(i, value, plan, stay, stream) for i, value in enumerate(given)]
        call = self._run(read, written, plan, state, stream)
        for tensor, value in zip(written, given, strict=True):
            for array in (tensor.there, value):
                if isinstance(array, DeviceArray):
                    array.computed(stream, call)
        torch = any(is_torch(value) for value in inputs)
        results = [self._result(i, t, torch) if v is None else v for i, (t, v) in enumerate(zip(written, given, strict=True))]
        results = trimmed(self.spec, results)
        return results[0] if len(results) == 1 else tuple(results)

    # -- tensors ---------------------------------------------------------------------------------------------------

    def _stream(self, inputs: Sequence[object]) -> int:
        """The caller's, by :attr:`Executable.stream`; torch's current one where an input is a tensor of torch's there."""
        if self._library.stream is not None:
            return self._library.stream
        return torch_stream(inputs, self._device)

    def _read(self, position: int, value: object, stream: int) -> _Tensor:
        stays = self._inputs[position][0] in self._host
        if not is_on_device(value):
            return _Tensor(None, self._checked(position, value), stays)
        spec = self.spec.inputs[position]
        if stays:
            raise RelaxError(f"input '{spec.name}': expected an array in the host's memory, got one on '{self._device.name}'")
        there = device_tensor(value, f"input '{spec.name}'", self._device, stream)
        if there.spec.dtype != spec.dtype:
            got = dtype_text(there.spec.dtype)
            raise RelaxError(f"input '{spec.name}': expected dtype {dtype_text(spec.dtype)}, got {got}")
        return _Tensor(there, None)

    def _contiguous(self, position: int, tensor: _Tensor) -> _Tensor:
        if tensor.array is None:
            return tensor
        return replace(tensor, array=as_argument(tensor.array, f"input '{self.spec.inputs[position].name}'"))

    def _written(self, position: int, value: object, plan: CallPlan, stay: bool, stream: int) -> _Tensor:
        """Where a result goes: what the caller gave, new memory of the device, or of the host."""
        dtype, shape, nbytes = plan.outputs[position]
        spec = self.spec.outputs[position]
        stays = self._first_output + position in self._host
        if value is None and stay and not stays:
            return _Tensor(DeviceArray(self._code.results.allocate(nbytes, stream), dtype, shape, stream), None)
        if value is None:
            return _Tensor(None, aligned_empty(dtype, shape), stays)
        expected = ArraySpec(dtype, shape)
        if not is_on_device(value):
            return _Tensor(None, array_at(output_address(spec, value, expected), dtype, shape), stays)
        if stays:
            raise RelaxError(f"output '{spec.name}': expected memory of the host, got some of '{self._device.name}'")
        there = device_tensor(value, f"output '{spec.name}'", self._device, stream)
        if there.spec != expected:
            raise RelaxError(f"output '{spec.name}': expected {expected}, got {there.spec}")
        return _Tensor(there, None)

    def _result(self, position: int, tensor: _Tensor, torch: bool) -> Any:
        what = f"output '{self.spec.outputs[position].name}'"
        if tensor.array is not None:
            return to_torch(tensor.array, what) if torch else tensor.array
        return to_device_torch(tensor.there, what) if torch else tensor.there

    # -- the call --------------------------------------------------------------------------------------------------

    def _run(
        self, read: Sequence[_Tensor], written: Sequence[_Tensor], plan: CallPlan, state: State | None, stream: int
    ) -> CheckedCall | None:  # fmt: skip
        device, block, arena = self._device, self._code.blocks.take(), self._code.blocks.take()
        try:
            for memory in (block, arena):
                memory.claim(stream)
            block.grow(sum(t.nbytes for t in (*read, *written)))
            sources, targets = self._places(read, written, block)
            with device.turn:
                self._code.checks.expect_success()
                for tensor, place in zip(read, sources, strict=True):
                    if tensor.copied is not None:
                        device.upload(tensor.copied, place, stream)
                call = self._invoke_with_state(self._frame(sources, targets), plan, arena, state, stream)
                try:
                    for tensor, place in zip(written, targets, strict=True):
                        if tensor.copied is not None:
                            device.download(place, tensor.copied, stream)
                    if any(t.array is not None for t in (*read, *written)):
                        device.wait(stream)
                finally:  # what a check has found comes first: results are then not what they should be
                    if any(t.array is not None for t in (*read, *written)):
                        self._expect_success(call)
            return call
        except RelaxError:
            device.abandon(stream)
            raise
        finally:
            self._code.blocks.give(arena)  # the next call gets both for what they were: graphs know addresses
            self._code.blocks.give(block)

    def _places(self, read: Sequence[_Tensor], written: Sequence[_Tensor], block: Block) -> tuple[list[int], list[int]]:
        """Where inputs and results are: copies of those of the host one after another in the call's memory."""
        found, start = list[int](), block.address
        for tensor in (*read, *written):
            if tensor.there is not None:
                found.append(tensor.there.address)
            else:
                found.append(address(tensor.array) if tensor.stays and tensor.array is not None else start)
            start += tensor.nbytes
        return found[: len(read)], found[len(read) :]

    def _frame(self, sources: Sequence[int], targets: Sequence[int]) -> Any:
        """The addresses of all tensors, in the order of the ABI, but for the state's."""
        first = [0] * self._first_weight
        for (position, _, _), place in zip(self._inputs, sources, strict=True):
            first[position] = place
        return pointer_array([*first, *self._weights, *targets])

    def _expect_success(self, call: CheckedCall | None) -> None:
        """Raises what has failed of a call that has been waited for, or else of calls before."""
        if call is not None:
            call.expect_success()
        self._code.checks.expect_success()

    def _invoke_with_state(
        self, tensors: Any, plan: CallPlan, arena: Block, state: State | None, stream: int
    ) -> CheckedCall | None:  # fmt: skip
        if not self.spec.state:
            return self._invoke(tensors, plan, arena, stream, None)
        if state is None:
            raise RelaxError(f"{self._what}: expected a state, got none")
        with state.lock:
            state.check()
            for spec in self.spec.state:
                tensors[spec.argument] = state.address(spec.name)
            if isinstance(state, DeviceState):
                state.used_on(stream)
            try:
                return self._invoke(tensors, plan, arena, stream, state)
            except RefusedError:
                raise
            except RelaxError as error:
                state.fail(str(error))
                raise

    def _invoke(
        self, tensors: Any, plan: CallPlan, arena: Block, stream: int, state: State | None
    ) -> CheckedCall | None:  # fmt: skip
        self._team.gather()
        table = self._code.table(stream)

        def launch() -> int:
            with self._device.driver.inside():
                return self._function(tensors, plan.pointer, arena.pointer, arena.extent, table)

        status = self._launched(launch, tensors, plan, arena, stream)
        if status > 0:
            arena.grow(status)
            status = self._launched(launch, tensors, plan, arena, stream)
        if status:
            self._code.allocations.give_back()
        if _FAILED <= -status - 1 < 2 * _FAILED:
            raise RelaxError(f"{self._what}: {self._code.launch_error(-status - 1)}")
        if status:
            self._code.checks.clear(stream)  # what it has found is no other call's
        if _FOUND <= -status - 1 < 2 * _FOUND:
            status += _FOUND
        if status:
            raise self._failure(status, plan)
        if self.spec.symbol not in self._library.spec.checks:
            return None
        return self._began(plan, stream, state)

    def _failure(self, status: int, plan: CallPlan) -> RelaxError:
        """The error that a negative status stands for, or the number of a check that a kernel made."""
        number = -status - 1
        if _HOST_FAULT <= number < 2 * _HOST_FAULT:
            return self._fault(number - _HOST_FAULT, self._library.accesses)
        if _FAULT <= number < 2 * _FAULT:
            return self._fault(number - _FAULT, self._library.spec.accesses)
        return failure(status, self._what, self.spec.checks, plan.values)

    def _fault(self, site: int, places: Sequence[str]) -> RelaxError:
        place = places[site] if site < len(places) else f"access {site}"
        return RelaxError(f"{self._what}: {place}: expected an access inside of its buffer, got one outside")

    def _launched(self, launch: Callable[[], int], tensors: Any, plan: CallPlan, arena: Block, stream: int) -> int:
        """The status of launching all kernels, one by one or as a graph."""
        if self._graphs is None or not stream or self._code.times is not None:
            return launch()
        key = (bytes(tensors), bytes(plan.symbols), arena.address, arena.size, stream)
        return self._graphs.run(key, stream, launch)

    def _began(self, plan: CallPlan, stream: int, state: State | None) -> CheckedCall:
        """The call, as one whose checks may still fail; then its state is broken."""

        def error(number: int) -> RelaxError:
            found = self._failure(-number - 1, plan)
            if state is not None:
                state.fail(str(found))
            return found

        call = self._code.checks.begun(stream, error)
        if isinstance(state, DeviceState):
            state.updated(call)
        return call


def _shape(tensor: _Tensor) -> tuple[int, ...]:
    if tensor.array is not None:
        return tensor.array.shape
    assert isinstance(tensor.there, DeviceTensor)
    return tuple(tensor.there.spec.shape)
