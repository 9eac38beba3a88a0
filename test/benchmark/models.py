"""Whole models against eager torch: time per call and largest difference, in alternating rounds.

``python test/benchmark/models.py [bert gpt2 llama resnet18] [--threads 1] [--rounds 15]`` builds each model at real size with random weights,
compiles it, prepares and binds its weights, checks the result, and prints medians and the ratio torch / relaxir (above 1: relaxir is
faster).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import torch
from support import models

import relaxir as rx


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
    with torch.no_grad():
        example = models.real(name)
        program = torch.export.export(example.module, example.args, example.kwargs, dynamic_shapes=example.dynamic_shapes)
        start = time.perf_counter()
        module = rx.from_torch(program)
        imported = time.perf_counter()
        executable = rx.compile(module)
        compiled = time.perf_counter()
        executable.bind(executable.prepare(models.weights_of(program)))
        prepared = time.perf_counter()
        inputs = models.flat_inputs(example)
        want = models.flat_outputs(example.module(*example.args, **example.kwargs))
        got = models.flat_outputs(executable(*inputs))
        error = max(float((a.float() - b.float()).abs().max() / a.float().abs().max()) for a, b in zip(want, got, strict=True))
        medians = measure(
            {"relaxir": lambda: executable(*inputs), "torch": lambda: example.module(*example.args, **example.kwargs)}, rounds
        )
    print(
        f"{name:10s} relaxir {medians['relaxir'] * 1e3:8.1f} ms  torch {medians['torch'] * 1e3:8.1f} ms  "
        f"ratio {medians['torch'] / medians['relaxir']:5.2f}  error {error:.1e}  "
        f"import {imported - start:5.1f} s  compile {compiled - imported:5.1f} s  prepare {prepared - compiled:5.1f} s",
        flush=True,
    )


def main() -> int:
    """Runs the models named on the command line, all of them by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["bert", "gpt2", "llama", "resnet18"])
    parser.add_argument("--threads", type=int, default=1, help="threads that torch may use; relaxir uses one")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.models:
        run(name, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
