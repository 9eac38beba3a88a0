"""The device: memory, modules, launches."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .access import Access, GlobalOrder
from .arrays import Array, product, u1
from .barriers import Barriers, Clusters
from .bulk import Bulk
from .clocks import Clocks
from .copies import Copies
from .core import RESERVED, Core, Kernel, Options, Statistics
from .findings import Finding, PtxError
from .forms import Target
from .matrices import Matrices
from .mbarrier import Mbarriers
from .memory import DeviceMemory
from .program import Program, program
from .tma import Tma
from .warp import Warp
from .wgmma import Products

__all__ = ["Loaded", "Machine"]

#: Shared memory that a block may have, by target.
_SHARED = {75: 65536, 80: 166912, 86: 101376, 87: 166912, 89: 101376, 90: 232448, 100: 232448}
_GRID = (2**31 - 1, 65535, 65535)


@dataclass
class Loaded:
    """A program on a device: its variables have addresses."""

    program: Program
    symbols: Mapping[str, int]


class Machine:
    """An emulated processor.

    Args:
        arch: what it is, like ``sm_90a``; newer code is refused.
        options: what is looked for; None is nothing but what a processor traps: accesses outside of memory.
        memory: bytes of device memory; what is not touched costs nothing.

    Attributes:
        accesses: what threads read and write memory by.
    """

    accesses: ClassVar[type[Access]] = Access

    def __init__(self, arch: str = "sm_90a", options: Options | None = None, memory: int = 2 << 30):
        self.target = Target.named(arch)
        self.options = options or Options(races=False, global_races=False, initialised=False)
        self.memory, self.order = DeviceMemory(memory), GlobalOrder()
        self.statistics = Statistics()

    @property
    def shared_limit(self) -> int:
        """Bytes of shared memory that a block may have."""
        return _SHARED[max(number for number in _SHARED if number <= max(self.target.number, 75))]

    # ------------------------------------------------------------------------------------------------------------ programs
    def load(self, text: str) -> Loaded:
        """Loads a PTX text. Raises PtxError for what is none, is not known, or is for a newer target."""
        found = program(text)
        if not self.target.runs(found.target):
            raise PtxError(f"expected code for {self.target} or older, got {found.target}")
        return Loaded(found, {v.name: self._variable(v.size, v.data) for v in found.globals})

    def _variable(self, size: int, data: bytes) -> int:
        address = self.memory.allocate(size)
        self.memory.write(address, np.frombuffer(data.ljust(size, b"\0"), u1))
        return address

    def unload(self, loaded: Loaded) -> None:
        """Gives the variables back."""
        for address in loaded.symbols.values():
            self.memory.free(address)

    def kernel(self, loaded: Loaded, name: str) -> Kernel:
        """A kernel of a program. Raises PtxError, and Finding for registers that nothing writes."""
        return loaded.program.kernel(name, self.options.initialised)

    # ------------------------------------------------------------------------------------------------------------ arrays
    def upload(self, array: Array) -> int:
        """The address of a copy in device memory."""
        address = self.memory.allocate(array.nbytes)
        self.memory.write(address, np.ascontiguousarray(array).reshape(-1).view(u1))
        return address

    def download(self, address: int, shape: Sequence[int] | int, kind: Any) -> Array:
        """A copy of an array in device memory."""
        number = int(np.prod(shape)) * np.dtype(kind).itemsize
        return self.memory.read(address, number).view(kind).reshape(shape)

    # ------------------------------------------------------------------------------------------------------------ launches
    def run(
        self, loaded: Loaded, name: str, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], shared: int = 0
    ) -> None:
        """Runs a kernel to its end.

        Args:
            loaded: the program.
            name: of the kernel.
            grid: blocks, up to three numbers.
            block: threads of a block, up to three numbers.
            args: integers, floats, NumPy scalars, or bytes (tensor maps, structures).
            shared: bytes of dynamic shared memory.

        Raises:
            Finding: what the kernel did wrong, or that it cannot be launched so.
        """
        kernel = self.kernel(loaded, name)
        self.launch(loaded, kernel, grid, block, self.packed(kernel, args), shared)

    def packed(self, kernel: Kernel, args: Sequence[Any]) -> Array:
        """Arguments as the bytes that a kernel reads. Raises Finding when they are not what it has."""
        params = kernel.function.params
        if len(args) != len(params):
            raise Finding("launch", f"expected {len(params)} arguments, got {len(args)}", kernel.name)
        buffer = np.zeros(max(kernel.function.param_bytes, 1), u1)
        for param, value in zip(params, args, strict=True):
            data = _bytes(value, param.size)
            if len(data) != param.size:
                raise Finding("launch", f"expected {param.size} bytes for '{param.name}', got {len(data)}", kernel.name)
            buffer[param.offset : param.offset + param.size] = np.frombuffer(data, u1)
        return buffer

    def launch(
        self, loaded: Loaded, kernel: Kernel, grid: Sequence[int], block: Sequence[int], params: Array, shared: int = 0
    ) -> None:
        """Runs a kernel with packed parameters. Raises Finding."""
        whole_grid, whole_block = _three(grid), _three(block)
        cluster = product(kernel.function.limits.get("cluster", [1]))
        self.check(kernel, whole_grid, whole_block, shared)
        blocks = product(whole_grid)
        per_block = -(-product(whole_block) // 32) * 32
        bytes_ = max(kernel.static_end - RESERVED + shared, 1)
        number = max(1, min(self.options.lanes // per_block, self.options.shared_bytes // bytes_))
        number = max(cluster, number // cluster * cluster)
        self.order.start(blocks, self.memory.top)
        with np.errstate(all="ignore"):
            for first in range(0, blocks, number):
                core = Core(kernel, self.memory, self.options, params, loaded.symbols)
                core.place(whole_grid, whole_block, range(first, min(first + number, blocks)), shared, cluster)
                try:
                    core.run(kernel.code.make, self.units(core))
                finally:
                    core.forget_units()
                self.statistics.instructions += core.steps
                self.statistics.lane_instructions += core.lane_steps
        self.statistics.launches += 1

    def units(self, core: Core) -> tuple[Any, ...]:
        """What generated code calls, in the order of :data:`codegen.UNITS`."""
        clocks = Clocks(core)
        access = self.accesses(core, clocks, self.order)
        barriers = Mbarriers(core, clocks)
        bulk = Bulk(core, clocks, access, barriers)
        matrices, products = Matrices(core, clocks, access), Products(core, clocks)
        block_wide = Warp(core, clocks), Barriers(core, clocks), Clusters(core, clocks)
        copies = Copies(core, clocks, access, barriers), bulk, Tma(core, bulk)
        return (core, clocks, access, *block_wide, barriers, *copies, matrices, products)

    def check(self, kernel: Kernel, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int) -> None:
        """Raises Finding for a launch that the device or the kernel does not permit."""
        limits, threads = kernel.function.limits, product(block)
        if not all(1 <= size <= most for size, most in zip(grid, _GRID, strict=True)):
            raise Finding("launch", f"expected a grid of 1 to {_GRID}, got {grid}", kernel.name)
        if not 1 <= threads <= 1024 or block[2] > 64:
            raise Finding("launch", f"expected 1 to 1024 threads, got {block}", kernel.name)
        if "reqntid" in limits and tuple(limits["reqntid"]) != block:
            raise Finding("launch", f"expected blocks of {tuple(limits['reqntid'])}, got {block}", kernel.name)
        if "maxntid" in limits and threads > product(limits["maxntid"]):
            raise Finding("launch", f"expected at most {product(limits['maxntid'])} threads, got {block}", kernel.name)
        if any(g % c for g, c in zip(grid, limits.get("cluster", [1, 1, 1]), strict=True)):
            raise Finding("launch", f"expected a grid in clusters of {limits['cluster']}, got {grid}", kernel.name)
        total = kernel.static_end - RESERVED + shared
        if total > self.shared_limit:
            raise Finding("launch", f"expected at most {self.shared_limit} bytes of shared memory, got {total}", kernel.name)


def _three(sizes: Sequence[int]) -> tuple[int, int, int]:
    x, y, z, *_ = [*sizes, 1, 1]
    return int(x), int(y), int(z)


def _bytes(value: Any, size: int) -> bytes:
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, np.generic | np.ndarray):
        return value.tobytes()
    if isinstance(value, float):
        return struct.pack("<d" if size == 8 else "<f", value)
    return int(value).to_bytes(size, "little", signed=int(value) < 0)
