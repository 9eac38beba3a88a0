"""Language models with caches, as exporters write them, against ONNX Runtime: token by token, with caches as state.

    .venv/bin/python test/conformance/onnx_decoders.py FOLDER [--batch 2] [--length 16]

Every ``model.onnx`` below the folder runs a prompt of random tokens and some more, one at a time: by ONNX Runtime, which hands
caches around, and by relaxir, with caches as state. A line per file: the largest difference of logits, relative to the largest
of them. README.md says how files of onnxruntime-genai and Optimum are made.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import relaxir as rx

Array = np.ndarray[Any, Any]

#: Of four bits, rows are rounded to eight (``accuracy_level``). Gemma's first rows are multiples of an eighth of their largest
#: element, from a table of four bits, and 127 / 2 is no integer: such ties go up or down by the last bit of a scale.
_TOLERANCE, _QUANTIZED = 1e-4, 3e-2


class _Runtime:
    """ONNX Runtime, with the caches that it gave last."""

    def __init__(self, path: Path, state: dict[str, Array]):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        outputs = [o.name for o in self._session.get_outputs()]
        self.names = [i.name for i in self._session.get_inputs()]
        self._logits = outputs.index("logits")
        self._presents = {_past_of(o): i for i, o in enumerate(outputs) if o.startswith("present")}
        room = max(_windows(path), default=0)
        self._caches = {n: np.zeros((*a.shape[:2], room, a.shape[3]), a.dtype) for n, a in state.items()}

    def __call__(self, inputs: dict[str, Array]) -> Array:
        found = self._session.run(None, inputs | self._caches)
        self._caches = {name: np.asarray(found[i]) for name, i in self._presents.items()}
        return np.asarray(found[self._logits])


def _past_of(present: str) -> str:
    return present.replace("present", "past_key_values", 1)


def _windows(path: Path) -> list[int]:
    """How many tokens caches hold at least, of attention whose caches are windows."""
    nodes = onnx.load(path, load_external_data=False).graph.node
    found = [{a.name: onnx.helper.get_attribute_value(a) for a in n.attribute} for n in nodes]
    return [a["local_window_size"] for a in found if a.get("sliding_window_cache")]


class _Stateful:
    """Ours, with caches as state."""

    def __init__(self, path: Path, batch: int, length: int):
        dims: dict[str, Any] = {"batch_size": batch}
        module = rx.from_onnx(path, cache_length=length, dims=dims)
        self._executable = rx.compile(module)
        self._executable.bind(self._executable.prepare(path))
        self.state = {name: np.asarray(a) for name, a in self._executable.state.items()}

    def __call__(self, inputs: dict[str, Array]) -> Array:
        found: Any = self._executable(**inputs)
        return found[0] if isinstance(found, tuple) else found


def _steps(names: list[str], words: int, batch: int, lengths: list[int]) -> list[dict[str, Array]]:
    rng, total, found = np.random.default_rng(1), 0, list[dict[str, Array]]()
    for length in lengths:
        places = np.tile(np.arange(total, total + length), (batch, 1))
        total += length
        every = {
            "input_ids": rng.integers(0, words, (batch, length)),
            "attention_mask": np.ones((batch, total), np.int64),
            "position_ids": places,
        }
        found.append({n: a for n, a in every.items() if n in names})
    return found


def compared(path: Path, batch: int, length: int) -> float:
    """The largest difference of logits, relative to the largest of a step."""
    ours = _Stateful(path, batch, length)
    runtime = _Runtime(path, ours.state)
    worst = 0.0
    for inputs in _steps(runtime.names, 90, batch, [5, 1, 1, 1]):
        want, got = runtime(inputs), ours(inputs)
        worst = max(worst, float(np.abs(want - got).max() / np.abs(want).max()))
    return worst


def main() -> int:
    """1 where a file fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--length", type=int, default=16)
    options = parser.parse_args()
    failed = 0
    for path in sorted(options.folder.rglob("model.onnx")):
        name = str(path.parent.relative_to(options.folder))
        limit = _QUANTIZED if "int4" in name or "int8" in name else _TOLERANCE
        try:
            error = compared(path, options.batch, options.length)
            text = f"{'right' if error <= limit else 'WRONG'} {error:.1e} of at most {limit:g}"
            failed += error > limit
        except Exception as error:  # ONNX Runtime's have no base class of their own
            failed += 1
            who = "" if isinstance(error, rx.RelaxError) else "ONNX Runtime: "
            text = f"failed {who}{' '.join(str(error).split())}"
        print(f"{name:24s} {text}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
