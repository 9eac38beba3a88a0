"""Preparations killed at random moments of time and run again: the file must be the one that an uninterrupted run makes.

``python test/benchmark/prepare_kills.py [--kills 50] [--seed 0] [--pieces] [--folder DIR]``: each preparation (64 MiB, 16
tensors) is killed by SIGKILL some time between its start and its end, then run to its end; ``--pieces`` gives them half the
memory that a step takes, so that all run in pieces. Prints when each was killed and what was kept, and exits with 1 at the
first file that differs from one that was prepared by whole steps. What dies at which system call is
``fuzzing/killed_preparations.py``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import relaxir as rx
from relaxir.lowering import split_steps
from relaxir.weights import StreamWriter, write_safetensors

COUNT, SIDE = 16, 1024


def build(folder: Path) -> rx.Executable:
    """A checkpoint, and an executable that packs its matrices."""
    rng = np.random.default_rng(0)
    write_safetensors(folder / "raw", {f"w{i}": rng.standard_normal((SIDE, SIDE), np.float32) for i in range(COUNT)})
    builder = rx.Builder()
    with builder.function("main"):
        x = builder.input("x", ("n", SIDE), "f32")
        for i in range(COUNT):
            x = builder.matmul(x, builder.permute_dims(builder.weight(f"w{i}", (SIDE, SIDE), "f32"), axes=[1, 0]))
        builder.output(x)
    return rx.compile(builder.build(), cache=False)


def forked(work: Callable[[], object]) -> int:
    """Starts a child that does it; its process number."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
    return child


def ended(child: int) -> int:
    """How a child ended: its exit code, or the negative number of the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def digest(path: Path) -> str:
    """Of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> int:
    """Kills and compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pieces", action="store_true", help="to prepare in pieces of 1 MiB")
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    rng, killed = random.Random(options.seed), 0
    defaults = StreamWriter.__init__.__kwdefaults__
    assert defaults is not None
    defaults["flush_bytes"] = 3 * 4 * SIDE * SIDE
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        if options.pieces:
            split_steps.PIECE_BYTES = 1 << 20
        executable = build(folder)
        limit = executable.manifest.peak_bytes // 2 if options.pieces else None
        assert ended(forked(lambda: executable.prepare(folder / "raw", folder / "out"))) == 0
        wanted = digest(folder / "out")
        (folder / "out").unlink()

        def prepare() -> None:
            report = executable.prepare(folder / "raw", folder / "out", memory_limit=limit)
            print(f"  kept {report.steps_skipped} of {COUNT} steps", flush=True)

        began = time.perf_counter()
        assert ended(forked(prepare)) == 0
        seconds = time.perf_counter() - began
        assert digest(folder / "out") == wanted
        while killed < options.kills:
            (folder / "out").unlink()
            moment = rng.uniform(0, seconds)
            child = forked(prepare)
            time.sleep(moment)
            os.kill(child, signal.SIGKILL)
            was_killed = ended(child) == -signal.SIGKILL
            killed += was_killed
            print(f"{killed}: {'killed after' if was_killed else 'done before'} {moment:.3f} s", flush=True)
            assert was_killed or (folder / "out").exists()
            assert ended(forked(prepare)) == 0
            if digest(folder / "out") != wanted or sorted(os.listdir(folder)) != ["out", "raw"]:
                print("another file than an uninterrupted run makes")
                return 1
    print(f"{killed} kills, every file the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
