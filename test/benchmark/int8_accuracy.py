"""What static int8 costs in accuracy: calibrated models beside their float forms, on samples that calibration did not see.

    python test/benchmark/int8_accuracy.py [--models resnet50 mobilenet-v2 bert] [--samples 16] [--percentile 100]

Prints for each model the error of its outputs over the unseen samples, as ``|quantized - float|`` over ``|float|`` in the
Euclidean norm and as the largest difference over the largest output, and how often the largest logit is the same. ``scheme``
is what the numbers alone bring, by the reference semantics of the quantized module, on one sample; ``code`` what is compiled.
Weights are random: trained ones leave larger margins between logits.
"""

from __future__ import annotations

# ruff: noqa: E402  the path is extended before anything is imported
import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

import numpy as np
import torch
from comparison import networks, vision
from comparison.cases import Built
from comparison.peers.relaxir import imported

import relaxir as rx

MODELS: dict[str, Callable[[], networks.Made]] = {
    "resnet18": vision.resnet18,
    "resnet50": networks.resnet50,
    "mobilenet-v2": vision.mobilenet,
    "bert": lambda: networks.bert(1),
}


def samples_like(inputs: dict[str, torch.Tensor], count: int, seed: int) -> Iterator[dict[str, np.ndarray]]:
    """Inputs of the same shapes and kinds."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        yield {
            name: random.integers(0, 30000, x.shape)
            if not x.is_floating_point()
            else random.standard_normal(x.shape, np.float32)
            for name, x in inputs.items()
        }


def outputs_of(module: rx.Module, weights: Any, samples: list[dict[str, np.ndarray]]) -> np.ndarray:
    """The results of a compiled module, one after the other."""
    executable = rx.compile(module)
    executable.bind(executable.prepare(weights))
    return np.stack([np.asarray(executable(**sample)) for sample in samples])


def line(name: str, found: np.ndarray, wanted: np.ndarray) -> str:
    """The errors of one form."""
    relative = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
    largest = np.abs(found - wanted).max() / np.abs(wanted).max()
    same = np.mean(found.argmax(-1) == wanted.argmax(-1))
    return f"{name:<26}{relative:>12.2%}{largest:>12.2%}{same:>12.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["resnet50", "mobilenet-v2", "bert"], choices=list(MODELS))
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--percentile", type=float, default=100.0)
    options = parser.parse_args()
    print(f"{'':<26}{'in norm':>12}{'largest':>12}{'same best':>12}")
    for name in options.models:
        torch.manual_seed(0)
        module, inputs = MODELS[name]()
        program, weights = imported(Built(module.eval(), inputs))
        seen, unseen = (list(samples_like(inputs, options.samples, seed)) for seed in (1, 2))
        quantized = rx.calibrate(program, seen, weights, percentile=options.percentile)
        wanted = outputs_of(program, weights, unseen)
        (stated,) = rx.evaluate(quantized, "main", *unseen[0].values(), weights=weights)
        print(line(f"{name}, scheme", np.asarray(stated)[None], wanted[:1]))
        print(line(f"{name}, code", outputs_of(quantized, weights, unseen), wanted), flush=True)


if __name__ == "__main__":
    main()
