"""Operations along rows against torch eager, and against the same operations in kernels of their own.

``python test/benchmark/rows.py [--shapes 1024x1024 128x4096 8x768] [--dtypes f32] [--rounds 40]`` prints per operation the
medians of alternating calls on one thread, and the ratios torch / relaxir (above 1: faster than torch) and apart / relaxir.
Times are those of the processor, which other processes disturb least.
"""
# ruff: noqa: E402  the path is extended before what is on it is imported

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import numpy as np
import torch
from torch.nn import functional

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from support.stages import executable_of, lowered

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}

#: Name, MLIR of ``%y`` from ``%x: X`` and ``%g, %h: G``, the same in torch.
OPERATIONS: list[tuple[str, str, Callable[..., torch.Tensor]]] = [
    ("softmax", '"relax.softmax"(%x) : (X) -> X', lambda x, g, h: torch.softmax(x, -1)),
    ("log_softmax", '"relax.log_softmax"(%x) : (X) -> X', lambda x, g, h: torch.log_softmax(x, -1)),
    (
        "layer_norm",
        '"relax.layer_norm"(%x, %g, %h) : (X, G, G) -> X',
        lambda x, g, h: functional.layer_norm(x, g.shape, g, h),
    ),
    ("rms_norm", '"relax.rms_norm"(%x, %g) : (X, G) -> X', lambda x, g, h: functional.rms_norm(x, g.shape, g)),
    ("gelu", '"relax.gelu"(%x) : (X) -> X', lambda x, g, h: functional.gelu(x)),
    ("gelu_tanh", '"relax.gelu_tanh"(%x) : (X) -> X', lambda x, g, h: functional.gelu(x, approximate="tanh")),
    ("silu", '"relax.silu"(%x) : (X) -> X', lambda x, g, h: functional.silu(x)),
    ("softmax 0", '"relax.softmax"(%x) {axis = 0 : i64} : (X) -> X', lambda x, g, h: torch.softmax(x, 0)),
    ("cumsum 0", '"relax.cumsum"(%x) {axis = 0 : i64} : (X) -> X', lambda x, g, h: torch.cumsum(x, 0)),
    ("flip", '"relax.flip"(%x) {axis = 1 : i64} : (X) -> X', lambda x, g, h: torch.flip(x, (1,))),
]


def compiled(body: str, shape: tuple[int, int], dtype: str, apart: bool) -> rx.Executable:
    """One operation as a function; ``apart``: each of its steps in a kernel of its own."""
    x, g = f"tensor<{shape[0]}x{shape[1]}x{dtype}>", f"tensor<{shape[1]}x{dtype}>"
    body = body.replace("X", x).replace("G", g)
    text = f"func.func @main(%x: {x}, %g: {g}, %h: {g}) -> {x} {{\n%y = {body}\nreturn %y : {x}\n}}"
    if not apart:
        return rx.compile(rx.Module.parse(text), cache=False)
    one_each = {"relax-outline-kernels": "relax-outline-kernels{rows=false}"}
    return executable_of(lowered(rx.Module.parse(text), change=lambda steps: [one_each.get(s, s) for s in steps]))


def measure(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each call, of alternating batches of about a millisecond."""
    batch: dict[str, int] = {}
    for name, call in calls.items():
        call()
        start = time.process_time()
        for _ in range(5):
            call()
        batch[name] = max(1, int(2e-3 / max(1e-6, (time.process_time() - start) / 5)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            for _ in range(batch[name]):
                call()
            times[name].append((time.process_time() - start) / batch[name])
    return {name: statistics.median(values) for name, values in times.items()}


def run(shape: tuple[int, int], dtype: str, rounds: int) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s).astype(np.float32) for s in (shape, shape[1:], shape[1:])]
    tensors = [torch.from_numpy(a).to(DTYPES[dtype]) for a in arrays]
    for name, body, in_torch in OPERATIONS:
        given = [a.astype(numpy_dtype(dtype)) for a in arrays]
        one, many = (compiled(body, shape, dtype, apart) for apart in (False, True))
        one.threads = many.threads = 1
        calls = {"relaxir": partial(one, *given), "apart": partial(many, *given), "torch": partial(in_torch, *tensors)}
        with torch.inference_mode():
            seconds = measure(calls, rounds)
        ours = seconds["relaxir"]
        print(
            f"{name:12s} {shape[0]:5d} x {shape[1]:<5d} {dtype:5s} "
            + "".join(f"  {which} {value * 1e6:8.1f} us" for which, value in seconds.items())
            + "".join(f"  {which} / relaxir {seconds[which] / ours:5.2f}" for which in ("torch", "apart")),
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", nargs="+", default=["1024x1024", "128x4096", "8x768"])
    parser.add_argument("--dtypes", nargs="+", default=["f32"], choices=DTYPES)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for dtype in options.dtypes:
        for shape in options.shapes:
            rows, columns = map(int, shape.split("x"))
            run((rows, columns), dtype, options.rounds)


if __name__ == "__main__":
    main()
