"""Which of several processes this one is, as their launchers tell it: variables of the environment in, rank and world out."""

from __future__ import annotations

from collections.abc import Mapping

from ..dialect.errors import RelaxError

__all__ = ["environment_rank"]

#: Rank and world as torchrun, Open MPI, MPICH and other launchers by PMI, and Slurm name them. The most particular go first:
#: srun sets its own for what it starts, and a launcher that runs below it sets its own, too.
_VARIABLES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


def environment_rank(environment: Mapping[str, str]) -> tuple[int, int]:
    """Rank, from 0 on, and number of processes; 0 of 1 where no launcher says anything.

    Raises:
        RelaxError: what it says is no rank of a world.
    """
    for rank, world in _VARIABLES:
        if rank in environment and world in environment:
            return _read(rank, environment[rank], world, environment[world])
    return 0, 1


def _read(rank: str, rank_text: str, world: str, world_text: str) -> tuple[int, int]:
    try:
        found = int(rank_text), int(world_text)
    except ValueError:
        found = -1, 0
    if not 0 <= found[0] < found[1]:
        raise RelaxError(f"expected {rank} as a rank below {world}, got {rank_text!r} and {world_text!r}")
    return found
