"""What each process of ``mpiexec`` does in tests: prepares its part, binds it, and generates; the first one keeps the results.

``python mpi_rank.py ARTIFACT RAW PREPARED RESULTS.npz [raises|killed]``: then the last one fails while the others go on.
"""

from __future__ import annotations

import os
import signal
import sys

import numpy as np

import relaxir as rx

PROMPT = np.array([3, 14, 15, 92, 95])


def generate(executable: rx.Executable) -> list[np.ndarray]:
    """Logits of a prompt, then of three tokens more."""
    first = executable(PROMPT, entry="prefill")
    return [first, *(executable(PROMPT[i : i + 1], entry="decode") for i in range(3))]


def fail(how: str) -> None:
    """Ends this process, as by an error or from outside."""
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    raise rx.RelaxError("its disk is full")


def main(artifact: str, raw: str, prepared: str, results: str, how: str = "") -> None:
    executable = rx.load(artifact)
    executable.threads = 1
    executable.prepare(raw, prepared)
    executable.bind(prepared)
    logits = generate(executable)
    if executable.rank == 0:
        np.savez(results, *logits)
    if how:
        fail(how) if executable.rank == executable.manifest.ranks - 1 else generate(executable)


if __name__ == "__main__":
    main(*sys.argv[1:])
