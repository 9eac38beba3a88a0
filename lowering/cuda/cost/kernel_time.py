"""How long a kernel takes that does so much: bytes, instructions, operations of tensor cores, by what limits it.

What is assumed, of all GPUs alike:

- Memory gives 0.9 of its bandwidth (an H200 copies at 4.3 of 4.8 TB/s), and only as much as is asked for at once: bytes in
  flight, divided by a latency of 0.7 us.
- What is read again comes out of the second-level cache, 32 bytes per cycle and multiprocessor.
- A multiprocessor starts four instructions of warps in a cycle, and as many f32 operations as it has lanes.
- The blocks of a launch take equally long, and come in waves; a last wave that is not full takes as long as a full one.
- Memory, cache, instructions and tensor cores are busy at the same time: the one that has most to do decides. To start takes
  2 us, of which a CUDA graph saves some.

Bank conflicts, divergence, clocks that sink under load, and what other kernels left in the cache are not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..cuda_target import Architecture
from .occupancy import occupancy

__all__ = [
    "BANDWIDTH_SHARE",
    "L2_BYTES_PER_CYCLE",
    "LATENCY",
    "START",
    "KernelWork",
    "LaunchShape",
    "Prediction",
    "kernel_time",
    "waves_of",
]

BANDWIDTH_SHARE = 0.9
#: Seconds from a load to its value, out of memory.
LATENCY = 0.7e-6
#: Seconds from one kernel's end to the next one's first instruction.
START = 2e-6
L2_BYTES_PER_CYCLE = 32
_ISSUES_PER_CYCLE = 4


@dataclass(frozen=True)
class KernelWork:
    """What a kernel does, all blocks together.

    Attributes:
        bytes: read from memory and written to it, each once.
        cached_bytes: read again out of the second-level cache.
        instructions: that warps execute.
        f32_operations: of the f32 lanes, one for each thread: additions, products, fused ones.
        tensor: floating-point or integer operations of tensor cores, by the kind of factors.
    """

    bytes: float
    cached_bytes: float = 0
    instructions: float = 0
    f32_operations: float = 0
    tensor: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class LaunchShape:
    """How a kernel is launched.

    Attributes:
        blocks: how many.
        threads: of a block.
        registers: of a thread.
        shared: bytes of a block.
        bytes_in_flight: of loads that a thread waits for at once.
    """

    blocks: int
    threads: int
    registers: int = 32
    shared: int = 0
    bytes_in_flight: int = 16


@dataclass(frozen=True)
class Prediction:
    """How long a kernel is predicted to take on the part of an architecture.

    Attributes:
        seconds: from start to end.
        limit: seconds of what cannot be avoided, at the part's full rates: its bytes, once, or its operations.
        bound: what takes longest: ``"memory"``, ``"cache"``, ``"instructions"``, ``"f32"``, ``"tensor"``, ``"shared memory"``,
            ``"latency"`` or ``"start"``.
    """

    seconds: float
    limit: float
    bound: str

    @property
    def share(self) -> float:
        """Of the limit, 1 at best."""
        return self.limit / self.seconds


def kernel_time(architecture: Architecture, work: KernelWork, launch: LaunchShape) -> Prediction:
    """How long a kernel takes. Raises RelaxError when not one of its blocks fits a multiprocessor."""
    a, part = architecture, architecture.part
    resident = occupancy(a, launch.threads, launch.registers, launch.shared).blocks
    at_once = min(launch.blocks, resident * part.sm_count)
    unbalanced = waves_of(launch.blocks, resident, part.sm_count) * resident * part.sm_count / launch.blocks
    asked = at_once * launch.threads * launch.bytes_in_flight / LATENCY
    cycles = part.sm_count * part.clock / max(1.0, min(unbalanced, part.sm_count * resident))
    busy = {
        "memory": work.bytes / min(BANDWIDTH_SHARE * part.bandwidth, asked),
        "cache": work.cached_bytes / (L2_BYTES_PER_CYCLE * cycles),
        "instructions": work.instructions / (_ISSUES_PER_CYCLE * cycles),
        "f32": work.f32_operations / (a.f32_lanes * cycles),
        "tensor": sum(amount / a.tensor[kind] for kind, amount in work.tensor.items()) / cycles,
    }
    bound = max(busy, key=busy.__getitem__)
    overhead = START + LATENCY
    return Prediction(busy[bound] + overhead, _limit(a, work), bound if busy[bound] > overhead else "start")


def waves_of(blocks: int, resident: int, sm_count: int) -> int:
    """How often all multiprocessors are filled with blocks, the last time perhaps not all of them."""
    return -(-blocks // (resident * sm_count))


def _limit(architecture: Architecture, work: KernelWork) -> float:
    part = architecture.part
    rate = part.sm_count * part.clock
    tensor = sum(amount / architecture.tensor[kind] for kind, amount in work.tensor.items()) / rate
    return max(work.bytes / part.bandwidth, work.f32_operations / (architecture.f32_lanes * rate), tensor)
