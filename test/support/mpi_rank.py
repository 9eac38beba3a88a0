"""What each process of ``mpiexec`` does in tests: prepares its part, binds it, and generates; the first one keeps the results.

``python mpi_rank.py ARTIFACT RAW PREPARED RESULTS.npz``
"""

from __future__ import annotations

import sys

import numpy as np

import relaxir as rx

PROMPT = np.array([3, 14, 15, 92, 95])


def generate(executable: rx.Executable) -> list[np.ndarray]:
    """Logits of a prompt, then of three tokens more."""
    first = executable(PROMPT, entry="prefill")
    return [first, *(executable(PROMPT[i : i + 1], entry="decode") for i in range(3))]


def main(artifact: str, raw: str, prepared: str, results: str) -> None:
    executable = rx.load(artifact)
    executable.threads = 1
    executable.prepare(raw, prepared)
    executable.bind(prepared)
    logits = generate(executable)
    if executable.rank == 0:
        np.savez(results, *logits)


if __name__ == "__main__":
    main(*sys.argv[1:])
