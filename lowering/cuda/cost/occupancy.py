"""How many blocks of a kernel a multiprocessor holds at once.

The rules are those of NVIDIA's occupancy calculator: registers are given to warps 256 at a time, warps four at a time, shared
memory 128 bytes at a time, of which each block loses 1 KiB to the system.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....dialect.errors import RelaxError
from ..cuda_target import Architecture

__all__ = ["Occupancy", "occupancy"]

WARP = 32
_REGISTER_UNIT, _WARP_UNIT = 256, 4
_SHARED_UNIT, _SYSTEM_SHARED = 128, 1024


@dataclass(frozen=True)
class Occupancy:
    """What a multiprocessor holds.

    Attributes:
        blocks: at once.
        limit: why there are no more: ``"registers"``, ``"shared memory"``, ``"threads"`` or ``"blocks"``.
    """

    blocks: int
    limit: str


def occupancy(architecture: Architecture, threads: int, registers: int, shared: int) -> Occupancy:
    """Blocks of so many threads that a multiprocessor holds.

    Args:
        architecture: of the GPU.
        threads: of a block.
        registers: of a thread.
        shared: bytes of a block, static and dynamic.

    Raises:
        RelaxError: not one fits.
    """
    a, warps = architecture, -(-threads // WARP)
    by_warp = _up(registers * WARP, _REGISTER_UNIT)
    warps_by_registers = a.registers_per_sm // by_warp // _WARP_UNIT * _WARP_UNIT
    limits = {
        "registers": warps_by_registers // warps,
        "shared memory": a.shared_per_sm // (_up(shared, _SHARED_UNIT) + _SYSTEM_SHARED),
        "threads": a.threads_per_sm // (warps * WARP),
        "blocks": a.blocks_per_sm,
    }
    limit = min(limits, key=limits.__getitem__)
    if shared > a.shared_per_block or limits[limit] == 0:
        which = "shared memory" if shared > a.shared_per_block else limit
        got = f"{threads} threads of {registers} registers and {shared} bytes of shared memory"
        raise RelaxError(f"expected a block that fits a multiprocessor of {a.name}, got {got}: too much by {which}")
    return Occupancy(limits[limit], limit)


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit
