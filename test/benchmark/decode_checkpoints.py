"""Decoding of quantized checkpoints by preparation: compiled code, NumPy and the formats' own packages, in weights per second.

``python test/benchmark/decode_checkpoints.py [--size 4096] [--rounds 5]`` prints per format the best of the rounds in processor
time, of all threads, and bytes of the file per second of compiled code. A second call is measured: the first one compiles.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from relaxir.weights import write_safetensors
from relaxir.weights.formats import encoded
from relaxir.weights.formats.encoded import EncodedSource
from relaxir.weights.formats.gguf_file import BLOCKS
from relaxir.weights.opening import decoded, open_tensors
from support import encoded_weights, gguf_files

LAYERS = {
    "gptq": ({"quant_method": "gptq", "bits": 4, "group_size": 32}, encoded_weights.gptq),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 32}, encoded_weights.awq),
    "compressed-tensors": ({"quant_method": "compressed-tensors"}, encoded_weights.compressed),
    "fp8": ({"quant_method": "fp8", "weight_block_size": [128, 128]}, encoded_weights.fp8),
    "nf4": ({"quant_method": "bitsandbytes"}, encoded_weights.nf4),
}


def best(rounds: int, call: Callable[[], object]) -> float:
    """Seconds of the processor."""
    found: list[float] = []
    for _ in range(rounds):
        started = time.process_time()
        call()
        found.append(time.process_time() - started)
    return min(found)


def report(name: str, path: Path, count: int, rounds: int, other: Callable[[], object] | None) -> None:
    source = decoded(open_tensors(path))
    assert isinstance(source, EncodedSource)
    (weight,) = source.weights
    source.get(weight)
    speeds = {"compiled": count / best(rounds, lambda: source.get(weight))}
    limit, encoded._COMPILED = encoded._COMPILED, sys.maxsize
    speeds["numpy"] = count / best(1, lambda: source.get(weight))
    encoded._COMPILED = limit
    if other is not None:
        speeds["gguf"] = count / best(rounds, other)
    size = sum(spec.nbytes for spec in source.stored_specs(weight).values())
    print(f"{name:20}", *(f"{key} {speed / 1e6:6.0f} M/s" for key, speed in speeds.items()), end="  ")
    print(f"reads {size / count * speeds['compiled'] / 1e9:.2f} GB/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    n, rounds, rng = arguments.size, arguments.rounds, np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        for name, (config, write) in LAYERS.items():
            path = Path(folder, name)
            path.mkdir()
            write_safetensors(path / "model.safetensors", {f"w{e}": t for e, t in write(rng, n, n)[0].items()})
            (path / "config.json").write_text(json.dumps({"quantization_config": config}))
            report(name, path, n * n, rounds, None)
        for kind, block in BLOCKS.items():
            number = gguf.GGMLQuantizationType[kind]
            raw = gguf_files.blocks(rng, kind, n, n // block.elements, usual=True)
            path = gguf_files.write(Path(folder, f"{kind}.gguf"), {"w": (raw, number)})
            report(kind, path, n * n, rounds, lambda raw=raw, number=number: gguf.dequantize(raw, number))


if __name__ == "__main__":
    main()
