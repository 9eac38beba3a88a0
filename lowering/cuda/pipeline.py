"""The passes that take relax to host code and kernels for a GPU, as one text that ``relax-opt`` runs as well.

They are those of a CPU, which entries and the preparation of weights are compiled for, with five in between: what works on the
device's memory is told apart when there are buffers (``relax-separate-devices``), checks of values become kernels' work
(``relax-defer-checks``), kernels are planned and built before the CPU's (``relax-plan-cuda-kernels``,
``relax-lower-cuda-kernels``), and then host code calls the driver
(``relax-launch-kernels``).
"""

from __future__ import annotations

from ..cpu.check_accesses import FAULT_BYTES
from ..cpu.pipeline import BOUNDARY, BUFFERS, EXPANSIONS, FUSION, TO_LLVM

__all__ = ["cuda_pipeline"]


def cuda_pipeline(checked: bool = False, table: str | None = None) -> str:
    """The passes in order, of a module that says what it is for (``relax-set-target``, ``relax-set-cuda-target``).

    Args:
        checked: whether every access of the code, the device's and the host's, says that it is inside of its buffer.
        table: the file with plans that were measured, if there is one.
    """
    notes, kernels, host = ((), (), ())
    arena = "relax-use-arena"
    if checked:
        notes, kernels, host = ("relax-note-ops",), ("relax-check-device-accesses",), ("relax-check-accesses",)
        arena = f"relax-use-arena{{reserved={FAULT_BYTES}}}"
    plans = f'relax-plan-cuda-kernels{{table="{table}"}}' if table else "relax-plan-cuda-kernels"
    *buffers, share_loops = BUFFERS
    *entries, checks = BOUNDARY
    elements = (
        *entries, "relax-note-host-tensors", checks, "relax-to-linalg", *FUSION, "relax-separate-values", *buffers, *notes,
        "relax-separate-devices", "relax-defer-checks", plans, "relax-lower-cuda-kernels", share_loops,
        "relax-plan-contractions", "relax-lower-kernels",
        "relax-lend-memory", "relax-separate-devices", arena, "relax-share-copies",
        "relax-separate-devices", "relax-lower-cuda-kernels{all=true}", *kernels,
        "relax-check-allocations", "relax-launch-kernels",
        "relax-lower-kernels{all=true}", *EXPANSIONS, *host, *TO_LLVM,
    )  # fmt: skip
    return ",".join(elements)
