"""Times operators of torch that are no products, one by one, beside torch with one thread: of each about 1 to 4 MB of f32.

``python test/benchmark/operators.py [NAME ...] [--seconds 0.3]`` prints processor time per call of relaxir, the same of torch
over ours (above 1: relaxir is faster), and the bytes of operands and results per second. Turns alternate; medians.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

import relaxir as rx

_Function = Callable[..., Any]


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


def positive(*shape: int) -> torch.Tensor:
    return torch.rand(shape) + 0.5


def places(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, shape)


def symmetric(n: int) -> torch.Tensor:
    x = numbers(n, n)
    return x @ x.T / n + torch.eye(n)


class Experts(nn.Module):
    """Rows in eight groups times a matrix of each."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(numbers(8, 256, 256).bfloat16())

    def forward(self, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        return nn.functional.grouped_mm(x, self.weight, offs=ends)


def cases() -> dict[str, tuple[_Function, list[torch.Tensor]]]:
    """Functions with operands, by name."""
    rows, image = numbers(1024, 1024), numbers(1, 64, 128, 128)
    index, mask = places(1024, 1024, 1024), numbers(1024, 1024) > 0
    volume = numbers(1, 8, 32, 64, 64)
    grid = torch.rand(1, 32, 32, 32, 3) * 2 - 1
    return {
        "topk": (lambda x: torch.topk(x, 8), [rows]),
        "topk-vocabulary": (lambda x: torch.topk(x, 50), [numbers(16, 32000)]),
        "sort": (torch.sort, [rows]),
        "median": (lambda x: torch.median(x, 1), [rows]),
        "argsort-stable": (lambda x: torch.argsort(x, stable=True), [rows]),
        "masked_scatter": (torch.masked_scatter, [rows, mask, numbers(1024, 1024)]),
        "scatter-src": (lambda x, i, s: x.scatter(1, i, s), [rows, index, numbers(1024, 1024)]),
        "scatter-value": (lambda x, i: x.scatter(1, i, 2.0), [rows, index]),
        "scatter_add": (lambda x, i, s: x.scatter_add(1, i, s), [rows, index, numbers(1024, 1024)]),
        "scatter_add-rows": (lambda x, i, s: x.scatter_add(0, i, s), [rows, index, numbers(1024, 1024)]),
        "scatter_reduce": (lambda x, i, s: x.scatter_reduce(1, i, s, "amax"), [rows, index, numbers(1024, 1024)]),
        "index_put-add": (
            lambda x, i, s: x.index_put((i,), s, accumulate=True), [rows, places(1024, 1024), numbers(1024, 1024)],
        ),
        "index_put": (lambda x, i, s: x.index_put((i,), s), [rows, torch.randperm(1024), numbers(1024, 1024)]),
        "index_add": (lambda x, i, s: x.index_add(0, i, s), [rows, places(1024, 1024), numbers(1024, 1024)]),
        "index_select": (lambda x, i: x.index_select(0, i), [rows, places(1024, 1024)]),
        "gather": (lambda x, i: x.gather(1, i), [rows, index]),
        "nonzero": (torch.nonzero, [mask]),
        "masked_select": (torch.masked_select, [rows, mask]),
        "histc": (lambda x: torch.histc(x, 64, -4.0, 4.0), [rows]),
        "max_pool-indices": (lambda x: nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True), [image]),
        "avg_pool-3": (lambda x: nn.functional.avg_pool2d(x, 3, 1, 1), [image]),
        "avg_pool-divisor": (lambda x: nn.functional.avg_pool2d(x, 5, 2, 2, divisor_override=7), [image]),
        "adaptive_avg_pool3d": (lambda x: nn.functional.adaptive_avg_pool3d(x, (5, 7, 7)), [volume]),
        "cumsum": (lambda x: torch.cumsum(x, 1), [rows]),
        "cumprod": (lambda x: torch.cumprod(x, 1), [positive(1024, 1024)]),
        "cumprod-columns": (lambda x: torch.cumprod(x, 0), [positive(1024, 1024)]),
        "cummax": (lambda x: torch.cummax(x, 1), [rows]),
        "cdist": (torch.cdist, [numbers(512, 64), numbers(512, 64)]),
        "cdist-1": (lambda x, y: torch.cdist(x, y, p=1.0), [numbers(512, 64), numbers(512, 64)]),
        "pdist": (nn.functional.pdist, [numbers(512, 64)]),
        "roll": (lambda x: torch.roll(x, (3, 5), (0, 1)), [rows]),
        "bilinear-up": (lambda x: nn.functional.interpolate(x, scale_factor=2, mode="bilinear"), [numbers(1, 32, 64, 64)]),
        "bilinear-size": (lambda x: nn.functional.interpolate(x, size=(200, 200), mode="bilinear"), [numbers(1, 32, 128, 128)]),
        "nearest-up": (lambda x: nn.functional.interpolate(x, scale_factor=2), [numbers(1, 32, 64, 64)]),
        "bicubic": (lambda x: nn.functional.interpolate(x, size=(200, 200), mode="bicubic"), [numbers(1, 16, 128, 128)]),
        "pad-constant": (lambda x: nn.functional.pad(x, (1, 3, 2, 1)), [image]),
        "pad-reflect": (lambda x: nn.functional.pad(x, (1, 3, 2, 1), mode="reflect"), [image]),
        "pad-replicate": (lambda x: nn.functional.pad(x, (1, 3, 2, 1), mode="replicate"), [image]),
        "pad-circular": (lambda x: nn.functional.pad(x, (1, 3, 2, 1), mode="circular"), [image]),
        "fmax": (torch.fmax, [rows, numbers(1024, 1024)]),
        "fmin": (torch.fmin, [rows, numbers(1024, 1024)]),
        "copysign": (torch.copysign, [rows, numbers(1024, 1024)]),
        "hypot": (torch.hypot, [rows, numbers(1024, 1024)]),
        "erfc": (torch.erfc, [rows]),
        "signbit": (torch.signbit, [rows]),
        "lgamma": (torch.lgamma, [positive(512, 512)]),
        "digamma": (torch.digamma, [positive(512, 512)]),
        "conv3d-depthwise": (nn.Conv3d(64, 64, 3, padding=1, groups=64), [numbers(1, 64, 8, 32, 32)]),
        "conv2d-bf16": (nn.Conv2d(64, 64, 3, padding=1).bfloat16(), [numbers(1, 64, 56, 56).bfloat16()]),
        "transposed-sum": (lambda x, y: (x + y).t().contiguous(), [rows, numbers(1024, 1024)]),
        "power": (lambda x: x**0.37, [positive(1024, 1024)]),
        "antialiased": (
            lambda x: nn.functional.interpolate(x, size=(224, 224), mode="bilinear", antialias=True), [numbers(1, 3, 512, 512)],
        ),
        "conv_transpose-grouped": (nn.ConvTranspose2d(64, 64, 3, stride=2, groups=4), [numbers(1, 64, 64, 64)]),
        "grid_sampler_3d": (lambda x, g: nn.functional.grid_sample(x, g, align_corners=False), [volume, grid]),
        "grid_sampler_2d": (
            lambda x, g: nn.functional.grid_sample(x, g, align_corners=False), [image, torch.rand(1, 128, 128, 2) * 2 - 1],
        ),
        "inv": (torch.linalg.inv, [symmetric(256)]),
        "solve": (torch.linalg.solve, [symmetric(256), numbers(256, 16)]),
        "cholesky": (torch.linalg.cholesky, [symmetric(256)]),
        "qr": (torch.linalg.qr, [numbers(256, 256)]),
        "svd": (torch.linalg.svd, [numbers(128, 128)]),
        "grouped_mm": (Experts(), [numbers(1024, 256).bfloat16(), torch.arange(1, 9, dtype=torch.int32) * 128]),
    }  # fmt: skip


def compiled(function: _Function, inputs: list[torch.Tensor]) -> _Function:
    model = function if isinstance(function, nn.Module) else module_of(function, len(inputs))
    program = torch.export.export(model.eval(), tuple(inputs))
    executable = rx.compile(rx.from_torch(program))
    executable.threads = 1
    if executable.manifest.prepared_weights:
        executable.bind(executable.prepare(dict(model.state_dict())))
    return executable


def module_of(function: _Function, count: int) -> nn.Module:
    """A module that calls a function of so many tensors; inputs of an import need names."""
    names = ", ".join(f"x{i}" for i in range(count))
    forward = eval(f"lambda self, {names}: function({names})", {"function": function})
    return type("Model", (nn.Module,), {"forward": forward})()


def seconds(call: Callable[[], Any], least: float) -> float:
    """Processor time of one of the calls that fill this time."""
    count, started = 0, time.process_time()
    while True:
        call()
        count += 1
        taken = time.process_time() - started
        if taken >= least:
            return taken / count


def moved(inputs: list[torch.Tensor], results: Any) -> int:
    """Bytes of operands and results."""
    tensors = [*inputs, *(results if isinstance(results, tuple | list) else [results])]
    return sum(t.numel() * t.element_size() for t in tensors)


def rows(names: list[str], least: float) -> Iterator[str]:
    for name, (function, inputs) in cases().items():
        if names and not any(fnmatch.fnmatch(name, n) for n in names):
            continue
        try:
            ours = compiled(function, inputs)
        except Exception as error:
            yield f"| `{name}` | {str(error).splitlines()[0][:100]} | | |"
            continue
        calls = (functools.partial(ours, *inputs), functools.partial(function, *inputs))
        taken: tuple[list[float], list[float]] = ([], [])
        for _ in range(4):  # the first is warm-up
            for found, call in zip(taken, calls, strict=True):
                found.append(seconds(call, least / 3))
        mine, other = (statistics.median(t[1:]) for t in taken)
        rate = moved(inputs, function(*inputs)) / mine / 1e9
        yield f"| `{name}` | {mine * 1e3:.3f} ms | {other / mine:.2f} | {rate:.1f} GB/s |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=0.3, help="per operator and side")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print("| operator | relaxir | torch over it | |\n|---|---|---|---|")
    with torch.no_grad():
        for row in rows(arguments.names, arguments.seconds):
            print(row, flush=True)


if __name__ == "__main__":
    main()
