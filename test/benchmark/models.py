"""Whole models against eager torch: time per call and largest difference, in alternating rounds.

``python test/benchmark/models.py [bert gpt2 llama resnet18] [--threads 1] [--rounds 15]`` builds each model at real size with
random weights, compiles it, prepares and binds its weights, and prints medians and their ratio (above 1: relaxir is faster).
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import relaxir as rx

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import models

NAMES = ("bert", "gpt2", "llama", "resnet18")


def measure(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each call; the calls take turns, since the machine's speed changes while they run."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def run(name: str, rounds: int) -> None:
    """One model: prints one line."""
    model: models.Model = getattr(models, name)(tiny=False, dynamic=False)
    program = model.export()
    times = [time.perf_counter()]
    module = rx.from_torch(program)
    times.append(time.perf_counter())
    executable = rx.compile(module)
    times.append(time.perf_counter())
    executable.bind(executable.prepare(models.weights_of(program, module)))
    times.append(time.perf_counter())
    inputs = model.inputs()
    medians = measure({"relaxir": lambda: executable(**inputs), "torch": lambda: model.eager(inputs)}, rounds)
    seconds = [b - a for a, b in itertools.pairwise(times)]
    print(
        f"{model.name:14s} relaxir {medians['relaxir'] * 1e3:8.1f} ms  torch {medians['torch'] * 1e3:8.1f} ms  "
        f"torch / relaxir {medians['torch'] / medians['relaxir']:5.2f}  error {_error(executable, model, inputs):.1e}  "
        f"import {seconds[0]:5.1f} s  compile {seconds[1]:5.1f} s  prepare {seconds[2]:5.1f} s",
        flush=True,
    )


def _error(executable: rx.Executable, model: models.Model, inputs: dict[str, torch.Tensor]) -> float:
    """The largest difference from torch over all outputs, relative to each one's scale."""
    found = executable(**inputs)
    got = [t.numpy() for t in (found if isinstance(found, tuple) else (found,))]
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(model.eager(inputs), got, strict=True))


def main() -> int:
    """Runs the models named on the command line, all of them by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(NAMES))
    parser.add_argument("--threads", type=int, default=1, help="threads that torch may use; relaxir uses one")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.models:
        run(name, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
