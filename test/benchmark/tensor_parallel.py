"""A Llama in N processes of one thread each, against one process of N threads: prompts and single tokens, per second.

``python test/benchmark/tensor_parallel.py [--processes 2] [--hidden 1024] [--layers 4] [--tokens 128] [--rounds 7]`` compiles,
prepares random weights, and prints medians of both and their ratio (above 1: processes are faster). Both take turns, round by
round, each in processes of its own. Wall time: give it as many free cores.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import relaxir as rx
from relaxir.tools.llama import LlamaConfig, build_llama, random_weights
from relaxir.weights import write_safetensors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("processes", 2), ("hidden", 1024), ("layers", 4), ("tokens", 128), ("rounds", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    heads = options.hidden // 64
    config = LlamaConfig(
        vocab=8192, hidden=options.hidden, layers=options.layers, heads=heads, kv_heads=max(heads // 4, options.processes),
        ffn=4 * options.hidden,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        _measure(config, options, Path(folder))


def _measure(config: LlamaConfig, options: argparse.Namespace, folder: Path) -> None:
    raw = folder / "raw.safetensors"
    write_safetensors(raw, random_weights(config))
    count: int = options.processes
    for name, ranks in (("one", 1), ("several", count)):
        rx.compile(build_llama(config), mesh=rx.Mesh(tp=ranks)).save(folder / f"{name}.relax")
    times: dict[tuple[str, int], list[float]] = {}
    for _ in range(options.rounds):
        for name, ranks, threads in (("one", 1, count), ("several", count, 1)):
            for tokens in (options.tokens, 1):
                times.setdefault((name, tokens), []).append(_run(folder, name, ranks, threads, tokens))
    for tokens in (options.tokens, 1):
        one, several = (statistics.median(times[name, tokens]) for name in ("one", "several"))
        print(f"{tokens} tokens: 1 process x {count} threads {1e3 * one:.2f} ms, ", end="")
        print(f"{count} processes x 1 thread {1e3 * several:.2f} ms, ratio {one / several:.3f}")


def _run(folder: Path, name: str, ranks: int, threads: int, tokens: int) -> float:
    """Seconds of a call, the median of several in processes of their own, on the slowest of which all wait."""
    command = [
        sys.executable,
        __file__,
        "--worker",
        str(folder / f"{name}.relax"),
        str(folder / "raw.safetensors"),
        str(tokens),
    ]
    if ranks > 1:
        command = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(ranks), "--bind-to", "none", *command]
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment = os.environ | allowed | {"RELAXIR_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def _work(artifact: str, raw: str, tokens: int) -> None:
    executable = rx.load(artifact)
    prepared = str(Path(artifact).with_suffix(".safetensors"))
    executable.prepare(raw, prepared)
    executable.bind(prepared)
    ids = np.arange(tokens, dtype=np.int64)
    executable(ids)
    seconds: list[float] = []
    while len(seconds) < 5:
        started = time.perf_counter()
        executable(ids)
        seconds.append(time.perf_counter() - started)
    if executable.rank == 0:
        print(statistics.median(seconds))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        _work(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
