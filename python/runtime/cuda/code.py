"""Compiled code with kernels: the host's functions; on a device, the kernels' module and the table that entries are given."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
from collections.abc import Callable, Generator, Iterable
from typing import Any, cast

from ...dialect.errors import RelaxError
from ...lowering.json_reader import Reader
from ...lowering.manifest_specs import EntrySpec
from ..library import Library, TimedLaunch
from .allocations import Allocations
from .deferred import DeferredChecks
from .device import Device, DeviceBuffer
from .device_speed import DeviceSpeed, measured_speed
from .launch_times import LAUNCH, LaunchTimes
from .memory import BlockPool
from .results import ResultPool

__all__ = ["CUDA_SYMBOLS", "CudaLibrary", "CudaSpec", "KernelSpec", "LoadedCode"]

PTX, PTX_BYTES = "relaxir_cuda_ptx", "relaxir_cuda_ptx_bytes"

CUBIN, CUBIN_BYTES = "relaxir_cuda_cubin", "relaxir_cuda_cubin_bytes"

#: The C symbols of the kernels' text and machine code, and of their lengths.
CUDA_SYMBOLS = (PTX, PTX_BYTES, CUBIN, CUBIN_BYTES)

# The fields of the table after stream and functions, in the order of lowering/cuda/driver_calls, then constants and status.
_CALLS = (
    "cuLaunchKernel", "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize",
    "cuMemsetD8Async", "cuMemAllocAsync", "cuMemFreeAsync", "cuTensorMapEncodeTiled",
)  # fmt: skip

# Which field launches, behind the stream and the kernels.
_LAUNCH_FIELD = 2 + _CALLS.index(LAUNCH)

# Of dynamic shared memory, a kernel has so much without asking (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES asks).
_UNASKED, _DYNAMIC_SHARED = 48 << 10, 8

_ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
)  # fmt: skip


class KernelSpec:
    """A kernel of the manifest.

    Attributes:
        name: its name in the PTX.
        threads: of a block in each direction.
        shared_bytes: dynamic shared memory of a block.
    """

    def __init__(self, reader: Reader):
        self.name = reader.text("name")
        self.threads = tuple(reader.items("threads"))
        self.shared_bytes = reader.size("shared_bytes")

    @property
    def memory_text(self) -> str:
        """What it takes of shared memory, for readers."""
        return f", {self.shared_bytes} bytes of shared memory" if self.shared_bytes else ""

    @staticmethod
    def read(reader: Reader) -> KernelSpec:
        return KernelSpec(reader)


class CudaSpec:
    """The manifest's part of this backend.

    Attributes:
        target: as the user wrote it, ``cuda:sm_80``.
        kernels: by number.
        constants: symbol and bytes, by number.
        graphs: the symbols of entries that only launch, so that their launches can be recorded.
        checks: those of entries some of whose kernels check values.
        accesses: of checked code, the accesses of kernels, by number.
        host: by symbol of an entry, which of its tensors, arguments and then results, the host's memory has.
    """

    def __init__(self, content: object, where: str = "manifest.cuda"):
        reader = Reader(cast("dict[str, Any]", content if isinstance(content, dict) else {}), where)
        self.target = reader.text("target")
        self.kernels = tuple(reader.records("kernels", KernelSpec.read))
        self.graphs, self.checks = frozenset(reader.texts("graphs")), frozenset(reader.texts("checks"))
        self.accesses = reader.texts("accesses")
        self.host = dict(reader.records("host", lambda r: (r.identifier("symbol"), frozenset(r.items("tensors")))))
        self.constants = tuple(reader.records("constants", lambda r: (r.identifier("symbol"), r.size("bytes"))))

    @property
    def architecture(self) -> str:
        """``sm_90a``."""
        return self.target.partition(":")[2].partition("+")[0]

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability that the code is for."""
        digits = re.sub(r"\D", "", self.architecture)
        return int(digits[:-1]), int(digits[-1])


class CudaLibrary(Library):
    """The functions of an executable with kernels.

    Attributes:
        spec: the manifest's part.
        placed: the names of weights that entries read in the host's memory, and of those that they read in the device's.
        host_state: the names of state that the host's memory has.
    """

    def __init__(
        self, host: Library, spec: CudaSpec, entries: Iterable[EntrySpec], device: Callable[[str], Device]
    ):  # fmt: skip
        """Makes the functions of an executable.

        Args:
            host: the host's part.
            spec: what the manifest says.
            entries: what it has.
            device: gives the device for an architecture, when it is needed.
        """
        super().__init__(host.addresses, host, host.name, host.team)
        self.spec, self._device = spec, device
        every = list(entries)
        self.placed = _weight_places(spec, every)
        self.host_state = frozenset(s.name for e in every for s in e.state if s.argument in spec.host.get(e.symbol, ()))
        self._stream: int | None = None

    @property
    def stream(self) -> int | None:
        return self._stream

    @stream.setter
    def stream(self, stream: int | None) -> None:
        if stream is not None and (type(stream) is not int or stream < 0):
            raise RelaxError(f"expected a CUDA stream's number or None, got {stream!r}")
        self._stream = stream

    @property
    def device(self) -> str:
        return self.loaded.device.description

    @contextlib.contextmanager
    def launches(self) -> Generator[list[TimedLaunch]]:
        """Launches of the block, when it is left."""
        found = list[TimedLaunch]()
        with self.loaded.timing() as times:
            yield found
            found += times.launches()

    def speed(self) -> DeviceSpeed:
        """What the device can do, measured now. Raises RelaxError when there is none, or too little memory to measure in."""
        return measured_speed(self.loaded.device)

    def wait(self) -> None:
        """Waits for calls that only began. Raises RelaxError when a check of values failed in one."""
        if "loaded" in vars(self):
            self.loaded.wait()

    @functools.cached_property
    def loaded(self) -> LoadedCode:
        """The kernels on the device. Raises RelaxError when there is none that runs them."""
        device = self._device(self.spec.architecture)
        with device.current():
            return LoadedCode(self, device)

    def entry(self, symbol: str) -> Any:
        """An entry, which takes the table as well; it releases Python's lock while it runs."""
        function = _ENTRY(self._address(symbol))
        function.library = self  # type: ignore[attr-defined]
        return function

    def ptx(self) -> bytes:
        """The kernels' text, with the 0 that ends it."""
        return self._sized(PTX, PTX_BYTES)

    def cubin(self) -> bytes:
        """The kernels' machine code; empty when there was no assembler."""
        return self._sized(CUBIN, CUBIN_BYTES)

    def _sized(self, symbol: str, size: str) -> bytes:
        return self.constant(symbol, int.from_bytes(self.constant(size, 8), "little"))


def _weight_places(spec: CudaSpec, entries: Iterable[EntrySpec]) -> tuple[frozenset[str], frozenset[str]]:
    here, there = set[str](), set[str]()
    for entry in entries:
        host, first = spec.host.get(entry.symbol, ()), len(entry.inputs) + len(entry.state)
        for position, weight in enumerate(entry.weights, first):
            (here if position in host else there).add(weight.name)
    return frozenset(here), frozenset(there)


class LoadedCode:
    """Kernels and constants on a device.

    Attributes:
        device: where they are.
        spec: what they are.
        blocks: memory that calls work in.
        results: memory for results that stay there.
        checks: what kernels have found that check values.
        allocations: memory that host code has allocated and not freed.
        times: what times launches now, or None.
    """

    def __init__(self, library: CudaLibrary, device: Device):
        """Loads the kernels. Raises RelaxError when the device is older than the code, or the driver refuses it."""
        # It does not keep the library, which keeps it: weights would stay on the device until Python collects such.
        self.device, self.spec = device, library.spec
        self._check(library.name)
        driver = device.driver
        self._functions = (ctypes.c_void_p * max(1, len(self.spec.kernels)))()
        if self.spec.kernels:
            self._module = self._module_of(library)
        for number, kernel in enumerate(self.spec.kernels):
            self._functions[number] = self._function(kernel)
        self._constants = (ctypes.c_uint64 * max(1, len(self.spec.constants)))()
        self._buffers: list[DeviceBuffer] = []
        for number, (symbol, nbytes) in enumerate(self.spec.constants):
            self._constants[number] = self._constant(library.constant(symbol, nbytes))
        device.wait()
        self.blocks, self.checks, self.results = BlockPool(device), DeferredChecks(device), ResultPool(device)
        self.allocations = Allocations(device)
        self._calls = [self.allocations.functions.get(name) or driver.address(name) for name in _CALLS]
        self._tables: dict[int, Any] = {}
        self.times: LaunchTimes | None = None

    def _check(self, name: str) -> None:
        wanted, got = self.spec.capability, self.device.capability
        only = self.spec.architecture.endswith("a")  # code for such is for that capability alone
        if (got != wanted) if only else (got < wanted):
            expected = f"compute capability {'.'.join(map(str, wanted))}{'' if only else ' or newer'}"
            raise RelaxError(f"{name}: expected a GPU of {expected} for code for '{self.spec.target}', "
                             f"got {self.device.description}")  # fmt: skip

    def _module_of(self, library: CudaLibrary) -> int:
        """The kernels' machine code, where it is for this very kind of GPU, else their text, which the driver translates.

        A driver that is older than the assembler may refuse the one and take the other.
        """
        is_for_this = not self.device.is_emulated and self.device.capability == self.spec.capability
        cubin = library.cubin() if is_for_this else b""
        if cubin:
            with contextlib.suppress(RelaxError):
                return self._loaded(cubin)
        return self._loaded(library.ptx())

    def _loaded(self, image: bytes) -> int:
        return self.device.driver.made("cuModuleLoadData", ctypes.cast(ctypes.c_char_p(image), ctypes.c_void_p).value)

    def _function(self, kernel: KernelSpec) -> int:
        driver = self.device.driver
        try:
            function = driver.made("cuModuleGetFunction", self._module, kernel.name.encode())
            if kernel.shared_bytes > _UNASKED:
                driver.call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, kernel.shared_bytes)
        except RelaxError as error:
            raise RelaxError(f"kernel '{kernel.name}': {error}") from None
        return function

    def _constant(self, content: bytes) -> int:
        buffer = self.device.allocate(len(content))
        self._buffers.append(buffer)
        place = ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p).value
        self.device.driver.call("cuMemcpyHtoDAsync_v2", buffer.address, place, len(content), self.device.stream)
        self.device.wait()  # before the bytes go
        return buffer.address

    def table(self, stream: int) -> ctypes.c_void_p:
        """The table for calls on a stream; alive as long as this is."""
        known = self._tables.get(stream)
        if known is None:
            functions, constants = ctypes.addressof(self._functions), ctypes.addressof(self._constants)
            calls = self._calls if self.times is None else [self.times.address, *self._calls[1:]]
            fields = (stream, functions, *calls, constants, self.checks.word(stream))
            known = self._tables[stream] = (ctypes.c_void_p * len(fields))(*fields)
        return ctypes.c_void_p(ctypes.addressof(known))

    @contextlib.contextmanager
    def timing(self) -> Generator[LaunchTimes]:
        """Times launches while this lasts. Raises RelaxError where something else times them."""
        self.device.use()
        names = {self._functions[number] or 0: kernel.name for number, kernel in enumerate(self.spec.kernels)}
        times = LaunchTimes(self.device, names)
        with self.device.turn:
            if self.times is not None:
                raise RelaxError("expected one that times launches, got another one meanwhile")
            self._time_by(times)
        try:
            yield times
        finally:
            with self.device.turn:
                self._time_by(None)
            times.free()

    def _time_by(self, times: LaunchTimes | None) -> None:
        self.times = times
        for table in self._tables.values():
            table[_LAUNCH_FIELD] = self._calls[0] if times is None else times.address

    def wait(self) -> None:
        """Waits for all calls. Raises RelaxError when a check of values failed in one that only began."""
        with self.device.current(), self.device.turn:
            for stream in self._tables:
                self.device.wait(stream)
            self.checks.expect_success()

    def launch_error(self, number: int) -> str:
        """What a failed call of the driver was, by the number of an entry's status (lowering/cuda/driver_calls)."""
        kernel, result = number >> 32 & 0xFFFF, number & 0xFFFFFFFF
        what = f"kernel '{self.spec.kernels[kernel].name}'" if kernel < len(self.spec.kernels) else "device memory"
        return f"{what}: {self.device.driver.error_text(result)}"
