"""Attention against PyTorch's ``scaled_dot_product_attention`` with the same number of threads.

``python test/benchmark/attention.py [--threads 1 2] [--rounds 15] [--only decode]`` prints per case the ratio of PyTorch's time
to ours (above 1: faster than PyTorch), of the medians and of the best of alternating calls, and the most that results differ.
``cache f16`` are keys and values in f16 under queries in f32; PyTorch converts them first, as a model of f32 with such a cache.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

import relaxir as rx


@dataclass(frozen=True)
class Case:
    """Sizes; ``symbolic`` leaves the numbers of rows and keys to the call; half of all scores have ``low`` added to them.

    Keys and values have the dtype ``cache`` where it is given, all else ``dtype``.
    """

    heads: int
    groups: int
    rows: int
    keys: int
    width: int
    causal: bool = False
    symbolic: bool = False
    low: float | None = None
    dtype: str = "f32"
    cache: str | None = None

    @property
    def name(self) -> str:
        heads = str(self.heads) if self.heads == self.groups else f"{self.heads}/{self.groups}"
        marks = " causal" * self.causal + " symbolic" * self.symbolic
        marks += "" if self.low is None else f" mask {self.low:g}"
        marks += f" {self.dtype}" * (self.dtype != "f32") + (f" cache {self.cache}" if self.cache else "")
        return f"{'decode ' * (self.rows == 1)}{heads} x {self.rows} x {self.keys} x {self.width}{marks}"

    def compile(self) -> rx.Executable:
        rows, keys = ("rows", "keys") if self.symbolic else (self.rows, self.keys)
        b = rx.Builder()
        with b.function("main"):
            q = b.input("q", (1, self.heads, rows, self.width), self.dtype)
            stored = self.cache or self.dtype
            k, v = (b.input(name, (1, self.groups, keys, self.width), stored) for name in "kv")
            k, v = (b.astype(x, self.dtype) if stored != self.dtype else x for x in (k, v))
            mask = [] if self.low is None else [b.input("mask", (rows, keys), "f32")]
            b.output(b.attention(q, k, v, *mask, causal=self.causal))
        return rx.compile(b.build())


CASES = [
    *(Case(12, 12, n, n, 64, causal) for n in (128, 512, 2048) for causal in (False, True)),
    Case(12, 12, 512, 512, 64, symbolic=True),
    *(Case(192, 192, 49, 49, 32, low=low) for low in (0.0, -100.0, -1e9)),
    *(Case(32, 8, 1, n, 64, symbolic=symbolic) for n in (512, 4096) for symbolic in (False, True)),
    *(Case(*heads, 1, 8192, width) for heads, width in (((32, 4), 64), ((28, 4), 128), ((32, 8), 128), ((16, 8), 128))),
    Case(32, 32, 1, 4096, 64),
    *(Case(12, 12, 512, 512, 64, dtype=dtype) for dtype in ("bf16", "f16")),
    *(Case(32, 8, 128, 4096, 128, cache=cache) for cache in (None, "f16", "bf16")),
    *(Case(32, 8, 1, 8192, 128, cache=cache) for cache in ("f16", "bf16")),
]

_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def run(case: Case, threads: int, rounds: int) -> None:
    """One case: prints a line."""
    rng = np.random.default_rng(0)
    shapes = [(1, case.heads, case.rows, case.width), *[(1, case.groups, case.keys, case.width)] * 2]
    arrays: list[np.ndarray] = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
    if case.low is not None:  # of each row, keys of its half are seen
        halves = [np.arange(n) * 2 // n for n in (case.rows, case.keys)]
        arrays.append(np.where(halves[0][:, None] == halves[1], np.float32(0), np.float32(case.low)))
    dtypes = [case.dtype, *[case.cache or case.dtype] * 2, "f32"]
    tensors = [torch.from_numpy(a).to(_DTYPES[d]) for a, d in zip(arrays, dtypes, strict=False)]
    executable = case.compile()
    executable.threads = threads
    torch.set_num_threads(threads)
    attention = torch.nn.functional.scaled_dot_product_attention

    def theirs() -> torch.Tensor:
        with torch.inference_mode():
            q, k, v, *mask = tensors
            k, v = k.to(q.dtype), v.to(q.dtype)
            return attention(q, k, v, *mask, is_causal=case.causal, enable_gqa=case.heads != case.groups)

    calls: dict[str, Callable[[], torch.Tensor]] = {"theirs": theirs, "ours": lambda: executable(*tensors)}
    difference = float((calls["theirs"]().float() - calls["ours"]().float()).abs().max())
    times: dict[str, list[float]] = {name: [] for name in calls}
    repeat = max(1, int(2e8 / (case.heads * case.rows * case.keys * case.width * 4)))
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeat):
                call()
            times[name].append((time.perf_counter() - start) / repeat)
    medians, best = ({n: f(t) for n, t in times.items()} for f in (statistics.median, min))
    print(
        f"{case.name:40s} {threads} threads  PyTorch / this {medians['theirs'] / medians['ours']:5.2f}  "
        f"best {best['theirs'] / best['ours']:5.2f}  differ by {difference:.1e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="cases whose name has this text")
    options = parser.parse_args()
    for threads in options.threads:
        for case in CASES:
            if options.only in case.name:
                run(case, threads, options.rounds)


if __name__ == "__main__":
    main()
