"""A GPU that computes nothing: it notes what is launched, and runs one block of each kernel on zeros to count its instructions.

Host code and kernels are those that ship. Weights of any size take no memory: all of the device's is one page of zeros, which
nothing is written to. So what data decide (loops until something is found) is not seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from relaxir.lowering.cuda import emulator
from relaxir.lowering.cuda.emulator.access import Access
from relaxir.lowering.cuda.emulator.arrays import SHIFT
from relaxir.lowering.cuda.emulator.core import Core, Kernel, Options
from relaxir.lowering.cuda.emulator.driver import Library
from relaxir.lowering.cuda.emulator.machine import Loaded, Machine
from relaxir.lowering.cuda.emulator.memory import GLOBAL, WRITTEN, Bytes, DeviceMemory

__all__ = ["CopyWork", "LaunchWork", "recording"]

# Bytes that memory moves at once.
_SECTOR = 32
_PAGE = 4096
_OPTIONS = Options(races=False, global_races=False, initialised=False)
_F32 = ("add", "sub", "mul", "fma")


@dataclass(frozen=True)
class LaunchWork:
    """A launch, and what a block of it did.

    Attributes:
        kernel: its name.
        blocks, threads, shared: how many blocks, threads of one, and bytes of dynamic shared memory of one.
        instructions: of PTX, that the warps of a block executed; 0 where none was run.
        written: how many instructions of PTX the kernel has.
        f32_operations: of threads.
        touched: bytes of device memory that a block read or wrote, each once.
    """

    kernel: str
    blocks: int
    threads: int
    shared: int
    instructions: int = 0
    written: int = 0
    f32_operations: int = 0
    touched: int = 0


@dataclass(frozen=True)
class CopyWork:
    """A copy within the device's memory, or zeros that are written there: so many bytes of memory are read and written."""

    bytes: int


@contextmanager
def recording(apart: Collection[str] = ()) -> Generator[list[LaunchWork | CopyWork]]:
    """While this lasts, devices that are called emulated are such GPUs; gives what their calls launch, in order.

    Args:
        apart: the names of kernels that are not run.
    """
    found = list[LaunchWork | CopyWork]()

    def library(arch: str, checks: bool) -> Library:
        del checks
        return _Recorder(arch, found, apart)

    with mock.patch.object(emulator, "library", library):
        yield found


class _Recorder(Library):
    """The driver: calls that copy do nothing."""

    def __init__(self, arch: str, found: list[LaunchWork | CopyWork], apart: Collection[str]):
        super().__init__(arch, _OPTIONS, _PAGE)
        self._found = found
        self.machine = _OneBlock(arch, found, apart)

    def _cuMemcpyHtoDAsync_v2(self, target: int, source: int, size: int, stream: int | None) -> None:  # noqa: N802
        pass

    def _cuMemcpyDtoHAsync_v2(self, target: int, source: int, size: int, stream: int | None) -> None:  # noqa: N802
        pass

    def _cuMemcpyDtoDAsync_v2(self, target: int, source: int, size: int, stream: int | None) -> None:  # noqa: N802
        self._found.append(CopyWork(2 * size))

    def _cuMemsetD8Async(self, target: int, value: int, size: int, stream: int | None) -> None:  # noqa: N802
        self._found.append(CopyWork(size))


class _Zeros(DeviceMemory):
    """Memory of any size whose bytes are all the same page."""

    def __init__(self) -> None:
        super().__init__(_PAGE)
        self.shadow[:] = WRITTEN
        self._next = GLOBAL + _PAGE

    def allocate(self, size: int) -> int:
        address, self._next = self._next, self._next + -(-max(size, 1) // _PAGE) * _PAGE
        return address

    def free(self, address: int) -> None:
        pass

    def write(self, address: int, data: Any) -> None:
        pass


class _Touching(Access):
    """Notes which bytes of device memory threads touch; all of them are zeros, and stay so."""

    def __init__(self, *units: Any):
        super().__init__(*units)
        self._sectors = list[Any]()

    @property
    def bytes(self) -> int:
        """Of sectors, each once."""
        return len(np.unique(np.concatenate(self._sectors))) * _SECTOR if self._sectors else 0

    def check(self, memory: Bytes, offset: Any, size: int, space: str, what: str, s: Any, at_: int) -> Any:
        if memory is not self.core.memory:
            return super().check(memory, offset, size, space, what, s, at_)
        self._sectors.append(np.unique(np.asarray(offset) // _SECTOR))
        return (offset % _PAGE) >> SHIFT[size]

    def put(self, memory: Bytes, *rest: Any) -> None:
        if memory is not self.core.memory:
            super().put(memory, *rest)


class _OneBlock(Machine):
    """Runs the first block of a launch."""

    accesses = _Touching

    def __init__(self, arch: str, found: list[LaunchWork | CopyWork], apart: Collection[str]):
        super().__init__(arch, _OPTIONS, _PAGE)
        self.memory = _Zeros()
        self._found, self._apart = found, apart
        self._known: dict[tuple[Any, ...], LaunchWork] = {}

    def launch(
        self, loaded: Loaded, kernel: Kernel, grid: Sequence[int], block: Sequence[int], params: Any, shared: int = 0
    ) -> None:
        whole = int(np.prod(grid)), int(np.prod(block)), shared
        if kernel.name in self._apart:
            self._found.append(LaunchWork(kernel.name, *whole))
            return
        numbers = tuple(v for v in np.frombuffer(params.tobytes().ljust(-(-len(params) // 8) * 8, b"\0"), "u8") if v < GLOBAL)
        key = (kernel.name, tuple(grid), tuple(block), shared, numbers)
        if key not in self._known:
            self._known[key] = self._ran(loaded, kernel, grid, block, params, shared)
        self._found.append(self._known[key])

    def _ran(
        self, loaded: Loaded, kernel: Kernel, grid: Sequence[int], block: Sequence[int], params: Any, shared: int
    ) -> LaunchWork:
        core = Core(kernel, self.memory, self.options, params, loaded.symbols)
        x, y, z = (int(n) for n in (*grid, 1, 1)[:3])
        a, b, c = (int(n) for n in (*block, 1, 1)[:3])
        core.place((x, y, z), (a, b, c), range(1), shared, 1)
        counted = Counter[int]()
        units = self.units(core)
        access = units[2]
        assert isinstance(access, _Touching)

        def make(*units: Any) -> list[Any]:
            return [_counting(number, run, core, counted) for number, run in enumerate(kernel.code.make(*units))]

        with np.errstate(all="ignore"):
            core.run(make, units)
        return _work(kernel, (x * y * z, a * b * c, shared), counted, access.bytes)


def _counting(number: int, run: Any, core: Core, counted: Counter[int]) -> Any:
    """A basic block of a kernel that counts the warps which execute it."""

    def counting(lanes: Any) -> Any:
        counted[number] += len(core.rows(lanes))
        return run(lanes)

    return counting


def _work(kernel: Kernel, whole: tuple[int, int, int], counted: Counter[int], touched: int) -> LaunchWork:
    code, instructions, f32 = kernel.code, 0, 0
    for number, warps in counted.items():
        start, size = code.starts[number], code.sizes[number]
        instructions += warps * size
        f32 += 32 * warps * sum(_is_f32(kernel.function.code[i]) for i in range(start, start + size))
    return LaunchWork(kernel.name, *whole, instructions, len(kernel.function.code), f32, touched)


def _is_f32(instruction: Any) -> bool:
    return instruction.name in _F32 and "f32" in instruction.modifiers
