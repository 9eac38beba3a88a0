"""torch.linalg of matrices inside of a model, compiled, beside PyTorch's own (LAPACK): ms of both, and how many times as long.

    python test/benchmark/factorizations.py [--rounds 7]

Rounds alternate, and medians count; both take all processors.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import linalg

import relaxir

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from support.models import quiet  # noqa: E402

#: What is computed, and of how many matrices.
CASES: dict[str, tuple[Callable[[torch.Tensor], object], tuple[int, ...]]] = {
    "inv": (linalg.inv, (1000, 3, 3)), "inv, one": (linalg.inv, (4, 4)), "inv, larger": (linalg.inv, (64, 64)),
    "inv, large": (linalg.inv, (256, 256)), "det": (linalg.det, (1000, 3, 3)),
    "cholesky": (lambda a: linalg.cholesky(a @ a.mT + torch.eye(128)), (128, 128)), "qr": (linalg.qr, (8, 64, 64)),
    "svd": (lambda a: linalg.svd(a, full_matrices=False), (64, 64)),
    "svd, small": (lambda a: linalg.svd(a, full_matrices=False), (1000, 3, 3)),
    "eigh": (lambda a: linalg.eigh(a @ a.mT), (64, 64)), "matrix_exp": (torch.matrix_exp, (64, 64)),
    "solve_triangular": (lambda a: linalg.solve_triangular(a + 20 * torch.eye(64), a, upper=True), (16, 64, 64)),
}  # fmt: skip


class Model(torch.nn.Module):
    """A function as what torch.export takes."""

    def __init__(self, function: Callable[[torch.Tensor], object]):
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> object:
        return self.function(x)


def seconds(call: Callable[[torch.Tensor], object], x: torch.Tensor) -> float:
    """Of a call, among as many as take 20 ms."""
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < 0.02:
        call(x)
        count += 1
    return (time.perf_counter() - begin) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    for name, (function, shape) in CASES.items():
        x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        with quiet():
            executable = relaxir.compile(relaxir.from_torch(torch.export.export(Model(function), (x,))))
        times = [(seconds(executable, x), seconds(function, x)) for _ in range(arguments.rounds)]
        ours, theirs = (1e3 * statistics.median(column) for column in zip(*times, strict=True))
        print(f"{name:18} {list(shape)!s:14} {ours:9.3f} {theirs:9.3f} {ours / theirs:7.2f}", flush=True)


if __name__ == "__main__":
    main()
