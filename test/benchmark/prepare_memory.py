"""Peak memory of ``Executable.prepare`` on a checkpoint larger than it may hold: a bound in largest tensors, measured.

``python test/benchmark/prepare_memory.py [--gib 2] [--tensors 128] [--shared]`` writes a synthetic f32 checkpoint of equal
matrices, compiles a module that multiplies by each of them (so each is transposed and packed; with ``--shared`` also scaled by
one row that all share), prepares in a fresh process, and prints that process's peak resident memory above its base, in units
of the largest tensor, beside what was predicted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

#: The issue's bound: peak above base, in largest tensors.
LIMIT = 4.0


def build_checkpoint(path: Path, tensors: int, side: int) -> None:
    """``tensors`` matrices of ``side x side`` f32, written one at a time."""
    from relaxir.weights import write_safetensors

    block = np.random.default_rng(0).standard_normal((side, side), dtype=np.float32)
    write_safetensors(path, {f"layer{i}.weight": block for i in range(tensors)} | {"scale": block[0]})


def build_artifact(path: Path, tensors: int, side: int, shared: bool) -> None:
    """An executable whose every weight is transposed and packed at preparation, and scaled by one that all share."""
    import relaxir as rx

    builder = rx.Builder()
    with builder.function("main"):
        x = builder.input("x", ("n", side), "f32")
        scale = builder.weight("scale", (side,), "f32")
        for i in range(tensors):
            weight = builder.weight(f"layer{i}.weight", (side, side), "f32")
            if shared:
                weight = builder.multiply(weight, scale)
            x = builder.matmul(x, builder.permute_dims(weight, axes=[1, 0]))
        builder.output(x)
    rx.compile(builder.build()).save(path)


_MEASURE = """
import json, resource, sys, time
import relaxir as rx

def status(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(key + ":"))

exe = rx.load(sys.argv[1])
base = status("VmRSS")
with open("/proc/self/clear_refs", "w") as f:
    f.write("5")  # resets the peak
start = time.perf_counter()
report = exe.prepare(sys.argv[2], sys.argv[3])
print(json.dumps({"base": base, "peak": status("VmHWM"), "seconds": time.perf_counter() - start}))
"""


def main() -> int:
    """Runs the measurement; exit code 1 when the bound does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=2.0, help="size of the checkpoint")
    parser.add_argument("--tensors", type=int, default=128)
    parser.add_argument("--shared", action="store_true", help="one weight that goes into all others")
    options = parser.parse_args()
    side = int((options.gib * 2**30 / 4 / options.tensors) ** 0.5) // 32 * 32
    with tempfile.TemporaryDirectory() as folder:
        raw, artifact, prepared = (Path(folder) / n for n in ("raw.safetensors", "model.relax", "prepared.safetensors"))
        build_checkpoint(raw, options.tensors, side)
        start = time.perf_counter()
        build_artifact(artifact, options.tensors, side, options.shared)
        compiled = time.perf_counter() - start
        command = [sys.executable, "-c", _MEASURE, str(artifact), str(raw), str(prepared)]
        measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        predicted = json.loads((artifact / "manifest.json").read_text())["peak_bytes"]
    return _print(measured, predicted, side, options.tensors, compiled)


def _print(measured: dict[str, float], predicted: int, side: int, tensors: int, compiled: float) -> int:
    largest = side * side * 4
    above = measured["peak"] - measured["base"]
    total = largest * tensors
    print(f"checkpoint          {total / 2**20:9.0f} MiB, {tensors} tensors of {largest / 2**20:.1f} MiB")
    print(f"compile             {compiled:9.2f} s")
    print(f"prepare             {measured['seconds']:9.2f} s, {total / measured['seconds'] / 1e9:.2f} GB/s read")
    print(f"base of the process {measured['base'] / 2**20:9.1f} MiB")
    print(f"peak above base     {above / 2**20:9.1f} MiB = {above / largest:.2f} largest tensors (limit {LIMIT})")
    print(f"predicted           {predicted / 2**20:9.1f} MiB = {predicted / largest:.2f} largest tensors")
    return 0 if above <= LIMIT * largest else 1


if __name__ == "__main__":
    sys.exit(main())
