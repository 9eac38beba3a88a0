"""Which kernels of a model lose time to threads: the time of every kernel's calls with one thread and with several.

``python test/benchmark/kernel_times.py resnet50-b1 [--threads 2] [--rounds 30] [--top 25] [--activations int8]`` compiles a
case of ``suite.py`` and a clock around each call of a kernel, and calls it with one thread and with several in turns. Means of
the faster half of the calls, per kernel: microseconds with one thread and with several, what is lost (several - one / threads),
which share that is of all that is lost, and of products GFLOP/s with one thread. ``between`` is what is in no kernel.
"""
# ruff: noqa: E402  the path is extended before what is on it is imported

from __future__ import annotations

import argparse
import ctypes
import re
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

from comparison.cases import CASES
from comparison.peers.relaxir import made, weights_as

import relaxir as rx
from relaxir.compiler import default_pipeline
from relaxir.dialect.bindings import ir
from relaxir.dialect.functions import functions, name_of
from relaxir.dialect.traversal import nested_operations
from relaxir.lowering.fusion.linalg_queries import index_maps
from relaxir.lowering.marks import CONTRACTION
from relaxir.weights.arrays import to_numpy
from support.stages import executable_of, lowered

#: The calls in a compiled function, of kernels and of copies.
_CALL = re.compile(r"^  (?:%\S+ = )?call \S+ @([\w.]+)\(.*$", re.M)
_BODY = re.compile(r"^define [^\n]*@relaxir_main\.body\(.*?^}$", re.M | re.S)


@dataclass(frozen=True)
class Product:
    """The loops of a contraction, as text, and what it takes of multiplications and additions."""

    loops: str
    flops: int


class Clock:
    """Code with a clock around each call, and what it has measured.

    Attributes:
        kernels: the function that each call is of.
        products: contractions by kernel.
    """

    def __init__(self) -> None:
        self.kernels: list[str] = []
        self.products: dict[str, Product] = {}
        self._nanoseconds = (ctypes.c_int64 * 0)()

    def compiled(self, module: rx.Module, passes: str) -> rx.Executable:
        """The module's executable behind some relax passes; while it is called times are added up."""
        outlined = lowered(module, passes=passes, upto="relax-report-kernels")
        self.products = {name_of(f): p for f in functions(outlined) if (p := _product(f.operation)) is not None}
        return executable_of(lowered(module, passes=passes), self._with_clock)

    def take(self) -> list[float]:
        """Microseconds of each call since this was asked last."""
        found = [n / 1e3 for n in self._nanoseconds]
        ctypes.memset(self._nanoseconds, 0, ctypes.sizeof(self._nanoseconds))
        return found

    def _with_clock(self, text: str) -> str:
        (body,) = _BODY.findall(text)
        self.kernels = [name for name in _CALL.findall(body) if not name.startswith(("llvm.", "__kmpc"))]
        self._nanoseconds = (ctypes.c_int64 * len(self.kernels))()
        address, number = ctypes.addressof(self._nanoseconds), iter(range(len(self.kernels)))

        def timed(call: re.Match[str]) -> str:
            if call[1].startswith(("llvm.", "__kmpc")):
                return call[0]
            place = f"inttoptr (i64 {address + 8 * next(number)} to ptr)"
            return f"  call void @take_time(ptr {place}, i64 -1)\n{call[0]}\n  call void @take_time(ptr {place}, i64 1)"

        return text.replace(body, _BODY.sub(lambda _: _CALL.sub(timed, body), body)) + _TAKE_TIME


#: Adds the time of day, or takes it away, at an address.
_TAKE_TIME = f"""
declare i32 @clock_gettime(i32, ptr)
define internal void @take_time(ptr %place, i64 %sign) noinline {{
  %time = alloca [2 x i64]
  %failed = call i32 @clock_gettime(i32 {getattr(time, "CLOCK_MONOTONIC", 1)}, ptr %time)
  %seconds = load i64, ptr %time
  %behind = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %behind
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  %signed = mul i64 %now, %sign
  %before = load i64, ptr %place
  %after = add i64 %before, %signed
  store i64 %after, ptr %place
  ret void
}}
"""


def _product(kernel: ir.Operation) -> Product | None:
    """The contraction of a kernel, where all sizes are constant."""
    found = [op for op in nested_operations(kernel) if op.name == "linalg.generic" and CONTRACTION in op.attributes]
    if len(found) != 1 or any(op.name.startswith("scf.") for op in nested_operations(kernel)):
        return None
    sizes: dict[int, int] = {}
    for operand, map_ in zip(found[0].operands, index_maps(found[0]), strict=True):
        for size, index in zip(ir.RankedTensorType(operand.type).shape, map_.results, strict=True):
            if isinstance(index, ir.AffineDimExpr):
                sizes[index.position] = size
    kinds = [str(k) for k in ir.ArrayAttr(found[0].attributes["iterator_types"])]
    flops = 2
    for dim in range(len(kinds)):
        flops *= max(0, sizes.get(dim, 1))
    parts = [[str(sizes[d]) for d, k in enumerate(kinds) if ("reduction" in k) == r and d in sizes] for r in (False, True)]
    return Product(" over ".join(" x ".join(p) for p in parts), flops)


def _timed(
    clock: Clock, executable: rx.Executable, inputs: dict[str, Any], threads: int, rounds: int
) -> tuple[dict[int, list[float]], dict[int, float]]:
    """Microseconds of each kernel call, and of the whole, by number of threads."""
    found: dict[int, list[tuple[float, list[float]]]] = {1: [], threads: []}
    for turn in range(rounds + 1):
        for count, calls in found.items():
            executable.threads = count
            executable(**inputs)
            clock.take()
            start = time.perf_counter()
            executable(**inputs)
            whole = 1e6 * (time.perf_counter() - start)
            if turn:
                calls.append((whole, clock.take()))
    fast = {n: sorted(calls, key=lambda c: c[0])[: (rounds + 1) // 2] for n, calls in found.items()}
    each = {n: [statistics.mean(c) for c in zip(*(parts for _, parts in calls), strict=True)] for n, calls in fast.items()}
    return each, {n: statistics.mean(whole for whole, _ in calls) for n, calls in fast.items()}


def _print(clock: Clock, calls: dict[int, list[float]], whole: dict[int, float], top: int) -> None:
    threads = max(calls)
    totals = {n: _by_kernel(clock.kernels, times, whole[n]) for n, times in calls.items()}
    lost = {k: totals[threads][k] - one / threads for k, one in totals[1].items()}
    everything = sum(lost.values())
    print(f"{'kernel':16s} calls {'1 thread':>10s} {f'{threads} threads':>11s} {'lost':>9s} {'of all':>7s} GFLOP/s")
    for k in sorted(lost, key=lambda k: -lost[k])[:top]:
        count, product = clock.kernels.count(k), clock.products.get(k)
        speed = f"{product.flops * count / totals[1][k] / 1e3:7.1f}  {product.loops}" if product else ""
        share = 100 * lost[k] / everything
        print(f"{k:16s} {count:5d} {totals[1][k]:10.1f} {totals[threads][k]:11.1f} {lost[k]:9.1f} {share:6.1f}% {speed}")
    print(f"{'all':16s} {len(clock.kernels):5d} {whole[1]:10.1f} {whole[threads]:11.1f} {everything:9.1f}")
    print(f"{threads} threads are used to {100 * whole[1] / whole[threads] / threads:.1f} %")


def _by_kernel(names: list[str], times: list[float], whole: float) -> dict[str, float]:
    """The time of each kernel, and of what is between them."""
    found = dict.fromkeys(names, 0.0)
    for name, microseconds in zip(names, times, strict=True):
        found[name] += microseconds
    return found | {"between": whole - sum(times)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [name for name, case in CASES.items() if not (case.layers or case.file)]
    parser.add_argument("case", choices=names, metavar="CASE")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--top", type=int, default=25)
    parser.add_argument("--activations", choices=["int8"])
    options = parser.parse_args()
    case, clock = CASES[options.case], Clock()
    built, module, weights = made(case)
    executable = clock.compiled(module, default_pipeline(weights_as(case), options.activations))
    executable.bind(executable.prepare(weights))
    inputs = {name: to_numpy(value, name) for name, value in built.inputs.items()}
    _print(clock, *_timed(clock, executable, inputs, options.threads, options.rounds), options.top)


if __name__ == "__main__":
    main()
