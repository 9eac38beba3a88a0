"""Deployment: running an artifact imports neither MLIR nor torch, and needs neither."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import relaxir as rx
from relaxir.runtime.cpu_features import known_features
from relaxir.weights import write_safetensors
from support.c_compiler import c_compiler
from support.hand_compiled import scaled_executable

RUN = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch_mlir", "torch", "mlir", *sys.argv[4:]):
            raise ImportError(f"not on this machine: {name}")

sys.meta_path.insert(0, Refuse())
import numpy as np
import relaxir
artifact, raw, prepared = sys.argv[1:4]
executable = relaxir.load(artifact)
executable.prepare(raw, prepared)
print(executable.bind(prepared)(np.ones((1, 4), np.float32)).tolist())
print(sorted(m for m in sys.modules if "mlir" in m or m.split(".")[0] == "torch" or m == "relaxir.dialect.bindings"))
"""


def test_an_artifact_runs_without_mlir(tmp_path: Path) -> None:
    scaled_executable().save(tmp_path / "m.relax")
    write_safetensors(tmp_path / "raw.safetensors", {"w": np.arange(4, dtype=np.float32), "bias": np.zeros(3, np.int8)})
    arguments = [str(tmp_path / n) for n in ("m.relax", "raw.safetensors", "prepared.safetensors")]
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["[[0.0, 2.0, 4.0, 6.0]]", "[]"], done.stderr


def test_a_linked_artifact_runs_without_llvm(tmp_path: Path) -> None:
    """Where the kernel says what the processor can do; of others LLVM alone knows."""
    c_compiler()
    refused = ["llvmlite"] if known_features() else []
    b = rx.Builder()
    with b.function("main"):
        b.output(b.multiply(b.input("x", (1, 4)), b.weight("w", (4,))))
    rx.compile(b.build()).save(tmp_path / "m.relax")
    write_safetensors(tmp_path / "raw.safetensors", {"w": np.arange(4, dtype=np.float32)})
    arguments = [str(tmp_path / n) for n in ("m.relax", "raw.safetensors", "prepared.safetensors")]
    done = subprocess.run([sys.executable, "-c", RUN, *arguments, *refused], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["[[0.0, 1.0, 2.0, 3.0]]", "[]"], done.stderr


def test_every_module_of_weights_and_runtime_imports_without_mlir() -> None:
    folder = Path(__file__).parents[2] / "python"
    names = [
        ".".join(["relaxir", *p.relative_to(folder).with_suffix("").parts])
        for part in ("weights", "runtime", "weights/formats")
        for p in sorted((folder / part).glob("*.py"))
    ]
    assert len(names) > 15
    code = (
        f"import importlib, sys\nfor n in {names}: importlib.import_module(n)\nprint([m for m in sys.modules if 'mlir' in m])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
