"""What ``relax-schedule-lazy-io`` saves and costs: peaks in the source's order, scheduled and at the bound; time per weight.

``python test/benchmark/schedule_lazy_io.py [--weights 1000 5000 20000] [--graphs 500]`` schedules modules whose weights are all
read, then all cast, then all transposed, then all written, each alone or with one scale that all share, and one deep chain;
then compares peaks of small random graphs with the best of all their orders.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relaxir.dialect.analysis.task_order import peak_of, schedule
from relaxir.dialect.context import new_context
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager
from relaxir.dialect.reports import report
from relaxir.dialect.reports.report import bytes_text
from support.schedule_graphs import optimum, random_graph

_ONE, _HALF = "tensor<2048x4096xf32>", "tensor<2048x4096xf16>"
_TURNED = "tensor<4096x2048xf16>"


def breadth_first(weights: int, shared: bool) -> str:
    """All reads, all products with one scale if they share it, all casts, all transposes, all writes."""
    lines = ['%s = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<f32>'] if shared else []
    kinds = range(1, weights + 1)
    lines += [f'%w{i} = "relax.get_param"(%p) {{index = {i} : i64}} : (!relax.param_provider) -> {_ONE}' for i in kinds]
    if shared:
        lines += [f'%m{i} = "relax.multiply"(%w{i}, %s) : ({_ONE}, tensor<f32>) -> {_ONE}' for i in kinds]
    read = "m" if shared else "w"
    lines += [f'%c{i} = "relax.astype"(%{read}{i}) {{dtype = f16}} : ({_ONE}) -> {_HALF}' for i in kinds]
    lines += [f'%t{i} = "relax.permute_dims"(%c{i}) : ({_HALF}) -> {_TURNED}' for i in kinds]
    lines += [f'"relax.set_output"(%o, %t{i}) {{index = {i} : i64}} : (!relax.output_sink, {_TURNED}) -> ()' for i in kinds]
    return _function(lines)


def chain(weights: int) -> str:
    """A sum of all weights, one after the other, with all reads first."""
    kinds = range(weights)
    lines = [f'%w{i} = "relax.get_param"(%p) {{index = {i} : i64}} : (!relax.param_provider) -> {_ONE}' for i in kinds]
    for i in range(1, weights):
        before = "%w0" if i == 1 else f"%a{i - 1}"
        lines.append(f'%a{i} = "relax.add"({before}, %w{i}) : ({_ONE}, {_ONE}) -> {_ONE}')
    lines.append(f'"relax.set_output"(%o, %a{weights - 1}) {{index = 0 : i64}} : (!relax.output_sink, {_ONE}) -> ()')
    return _function(lines)


def _function(lines: list[str]) -> str:
    body = "\n".join(lines)
    return f"func.func @main(%p: !relax.param_provider, %o: !relax.output_sink) {{\n{body}\nreturn\n}}"


def measure(name: str, text: str, weights: int) -> None:
    """Schedules one module and prints a line."""
    module = parse_module(text, "-", new_context())
    start = time.process_time()  # of this process: the machine may be busy
    manager.run(module, "relax-schedule-lazy-io")
    seconds = time.process_time() - start
    with report.collecting() as found:
        manager.run(module, "relax-schedule-lazy-io")
    (section,) = found.as_json()["sections"]
    peaks = [bytes_text(section[key]) for key in ("before_bytes", "peak_bytes", "bound_bytes")]
    print(f"{name:8} {weights:6} weights: source {peaks[0]:>10}, scheduled {peaks[1]:>9}, bound {peaks[2]:>9}, "
          f"{seconds:6.2f} s, {seconds / weights * 1e6:5.0f} us per weight")  # fmt: skip


def compare(graphs: int) -> None:
    """Prints how far peaks are from the best of all orders, with and without exact searches."""
    for effort in (1, 0):
        ratios: Counter[float] = Counter()
        for seed in range(graphs):
            graph = random_graph(seed, 12)
            best = optimum(graph)
            ratios[round(peak_of(graph, schedule(graph, effort)) / best, 2) if best else 1.0] += 1
        print(f"effort {effort}: peak / best of all orders: count:", ", ".join(f"{r}: {n}" for r, n in sorted(ratios.items())))


def main() -> None:
    """Prints the measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=int, nargs="*", default=[1000, 5000, 20000])
    parser.add_argument("--graphs", type=int, default=500)
    options = parser.parse_args()
    for weights in options.weights:
        measure("alone", breadth_first(weights, shared=False), weights)
        measure("shared", breadth_first(weights, shared=True), weights)
        measure("chain", chain(weights), weights)
    compare(options.graphs)


if __name__ == "__main__":
    main()
