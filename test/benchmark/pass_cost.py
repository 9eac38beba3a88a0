"""How the time of passes grows with the module: us per op at 1,000, 10,000 and 100,000 ops, and the ratio of the ends.

    python test/benchmark/pass_cost.py [--rounds 3] [--ops 1000,10000,100000] [--lowering]

The module is a stack of layers of 16 ops and 4 weights each, which are calls of a private function until they are inlined, on
two devices. Each pass runs on the result of the ones before it. ``--lowering`` times the passes between relax and LLVM instead,
on the same module with one device, once its weights are lifted. Sizes alternate within a round, and the least time counts:
other work on the machine only ever adds to it. It is the processor's time. The aim is a ratio of at most 1.5.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Sequence

from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager
from relaxir.dialect.passes.pipeline_text import parse_pipeline
from relaxir.lowering.cpu.pipeline import lowering_pipeline
from relaxir.lowering.passes import register_passes
from relaxir.lowering.set_target import set_target
from relaxir.lowering.target import Target

PASSES = (
    "relax-inline-private-functions",
    "relax-realize-vdevice",
    "relax-lift-transform-params",
    "relax-lazy-transform-params",
    "relax-schedule-lazy-io",
)
#: What is done before the passes between relax and LLVM.
BEFORE_LOWERING = "relax-realize-vdevice,relax-lift-transform-params,canonicalize,cse"
OPS_PER_LAYER = 16

_X, _W, _B = 'tensor<?x8xf32, {sym = ["n"]}>', "tensor<8x8xf32>", "tensor<8xf32>"
_H = "tensor<8x8xf16>"
_LAYER = f"""
func.func private @layer(%x: {_X}, %a: {_W}, %b: {_B}, %c: {_W}, %d: {_B}) -> {_X} {{
  %0 = "relax.permute_dims"(%a) {{axes = array<i64: 1, 0>}} : ({_W}) -> {_W}
  %1 = "relax.astype"(%0) {{dtype = f16}} : ({_W}) -> {_H}
  %2 = "relax.astype"(%1) {{dtype = f32}} : ({_H}) -> {_W}
  %3 = "relax.matmul"(%x, %2) : ({_X}, {_W}) -> {_X}
  %4 = "relax.negative"(%b) : ({_B}) -> {_B}
  %5 = "relax.add"(%3, %4) : ({_X}, {_B}) -> {_X}
  %6 = "relax.relu"(%5) : ({_X}) -> {_X}
  %7 = "relax.permute_dims"(%c) {{axes = array<i64: 1, 0>}} : ({_W}) -> {_W}
  %8 = "relax.negative"(%7) : ({_W}) -> {_W}
  %9 = "relax.matmul"(%6, %8) : ({_X}, {_W}) -> {_X}
  %10 = "relax.abs"(%d) : ({_B}) -> {_B}
  %11 = "relax.add"(%9, %10) : ({_X}, {_B}) -> {_X}
  %12 = "relax.hint_on_device"(%11) {{vdevice = "cuda:0"}} : ({_X}) -> {_X}
  %13 = "relax.tanh"(%12) : ({_X}) -> {_X}
  %14 = "relax.add"(%13, %x) : ({_X}, {_X}) -> {_X}
  %15 = "relax.relu"(%14) : ({_X}) -> {_X}
  return %15 : {_X}
}}
"""


def module_text(ops: int) -> str:
    """A module of that many ops once its calls are inlined, with a quarter as many weights."""
    layers = ops // OPS_PER_LAYER
    weights, lines, value = [f'%x: {_X} {{relax.name = "x"}}'], [], "%x"
    for i in range(layers):
        names = [f"%{letter}{i}" for letter in "abcd"]
        weights += [f'{n}: {t} {{relax.name = "layers.{i}.{n[1]}"}}' for n, t in zip(names, (_W, _B, _W, _B), strict=True)]
        lines.append(f"  %h{i} = call @layer({value}, {', '.join(names)}) : ({_X}, {_W}, {_B}, {_W}, {_B}) -> {_X}")
        value = f"%h{i}"
    body = "\n".join(lines)
    return (
        'module attributes {relax.vdevices = ["cpu:0", "cuda:0"]} {\n'
        f"func.func @main({', '.join(weights)}) -> {_X} attributes {{relax.num_input = 1 : i64}} {{\n"
        f"{body}\n  return {value} : {_X}\n}}\n{_LAYER}}}\n"
    )


def lowering_passes() -> tuple[str, ...]:
    """Those between relax and LLVM in order, as pipelines have them."""
    return tuple(e.text for e in parse_pipeline(lowering_pipeline()))


def to_be_lowered(ops: int, context: ir.Context) -> ir.Module:
    """A module of that many ops, on one device, whose weights are lifted."""
    register_passes()
    module = parse_module(module_text(ops).replace(', "cuda:0"', "").replace("cuda:0", "cpu:0"), "-", context)
    manager.run_in_place(module, f"relax-inline-private-functions,{BEFORE_LOWERING}")
    set_target(module.operation, Target.parse("cpu:x86-64-v3"))
    return module


def time_passes(module: ir.Module, names: Sequence[str]) -> dict[str, float]:
    """Seconds per pass, each run in place on what the ones before it made; of several runs of one, together."""
    seconds = dict.fromkeys(names, 0.0)
    for name in names:
        gc.collect()
        start = time.process_time()
        manager.run_in_place(module, name)
        seconds[name] += time.process_time() - start
    return seconds


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Time of passes per op.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ops", default="1000,10000,100000")
    parser.add_argument("--lowering", action="store_true")
    options = parser.parse_args(argv)
    names = lowering_passes() if options.lowering else PASSES
    sizes = [int(size) for size in options.ops.split(",")]
    best: dict[tuple[str, int], float] = {}
    for _ in range(options.rounds):
        for size in sizes:
            repeats = max(1, sizes[-1] // size // 10)  # short runs are noisy ones
            for _ in range(repeats):
                context = new_context()
                module = to_be_lowered(size, context) if options.lowering else parse_module(module_text(size), "-", context)
                for name, seconds in time_passes(module, names).items():
                    best[name, size] = min(best.get((name, size), seconds), seconds)
    print(f"{'us per op':<34}" + "".join(f"{size:>10}" for size in sizes) + f"{'ratio':>8}")
    for name in dict.fromkeys(names):
        _print(name, [best[name, size] / size for size in sizes])
    _print("all", [sum(best[name, size] for name in dict.fromkeys(names)) / size for size in sizes])


def _print(name: str, per_op: list[float]) -> None:
    print(f"{name:<34}" + "".join(f"{1e6 * t:>10.2f}" for t in per_op) + f"{per_op[-1] / per_op[0]:>8.2f}")


if __name__ == "__main__":
    sys.exit(main())
