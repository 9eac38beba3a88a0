"""The passes that take relax to host code and kernels for a GPU, as one text that ``relax-opt`` runs as well.

They are those of a CPU, which entries and the preparation of weights are compiled for, with five in between: what works on the
device's memory is told apart when there are buffers (``relax-separate-devices``), checks of values become kernels' work
(``relax-defer-checks``), kernels are planned and built before the CPU's (``relax-plan-cuda-kernels``,
``relax-lower-cuda-kernels``), and then host code calls the driver
(``relax-launch-kernels``).
"""

from __future__ import annotations

from ..cpu.pipeline import BOUNDARY, BUFFERS, EXPANSIONS, FUSION, TO_LLVM

__all__ = ["cuda_pipeline"]


def cuda_pipeline() -> str:
    """The passes in order, of a module that says what it is for (``relax-set-target``, ``relax-set-cuda-target``)."""
    *buffers, share_loops = BUFFERS
    *entries, checks = BOUNDARY
    elements = (
        *entries, "relax-note-host-tensors", checks, "relax-to-linalg", *FUSION, "relax-separate-values", *buffers,
        "relax-separate-devices", "relax-defer-checks", "relax-plan-cuda-kernels", "relax-lower-cuda-kernels", share_loops,
        "relax-plan-contractions", "relax-lower-kernels",
        "relax-lend-memory", "relax-separate-devices", "relax-use-arena", "relax-share-copies",
        "relax-separate-devices", "relax-lower-cuda-kernels{all=true}", "relax-check-allocations", "relax-launch-kernels",
        "relax-lower-kernels{all=true}", *EXPANSIONS, *TO_LLVM,
    )  # fmt: skip
    return ",".join(elements)
