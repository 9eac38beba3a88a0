"""Products with narrow weights against the same product with f32 weights: the weight grows inside of the kernel.

``python test/benchmark/quantized_matmul.py [--size 4096] [--rows 1 64] [--rounds 15]`` prints per weight format the median of
alternating calls, the speed at which the narrow weight is read, and the ratio to f32 (above 1: faster than f32), of the medians
and of the best calls. Times are those of the processor, which other processes disturb least; kernels run on one thread.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.lowering.target import Target

TILE = Target.host().matmul_tile[1]

#: Format, dtype of the weight, rows per group (0: no scale), whether there are zero points.
FORMATS = [
    ("f32", "f32", 0, False),
    ("bf16", "bf16", 0, False),
    ("f16", "f16", 0, False),
    ("int8 per channel", "i8", -1, False),
    ("int8 zero points", "i8", -1, True),
    ("int4 group 32", "i4", 32, False),
    ("int4 group 128", "i4", 128, True),
]


def build(m: int, size: int, dtype: str, group: int, zeros: bool) -> tuple[rx.Executable, int]:
    """The compiled product, its weights bound, and the bytes that it reads of them."""
    panels = -(-size // TILE)
    packed, wide = f"tensor<{panels}x{size}x{TILE}x{dtype}>", f"tensor<{panels}x{size}x{TILE}xf32>"
    rng = np.random.default_rng(0)
    values = rng.normal(size=(panels, size, TILE)).astype(np.float32)
    arrays = {"w": (values * 8).astype(np.int8) if dtype[0] == "i" else values}
    arrays["w"] = (np.clip(arrays["w"], -8, 7) if dtype == "i4" else arrays["w"]).astype(numpy_dtype(dtype))
    arguments, body = f'%w: {packed} {{relax.name = "w"}}', ""
    if group:
        blocks = (panels, 1 if group < 0 else size // group, TILE)
        types = {"s": ("f32", blocks), "z": (dtype, blocks if zeros else ())}
        text = {n: f"tensor<{''.join(f'{d}x' for d in shape)}{t}>" for n, (t, shape) in types.items()}
        arrays |= {"s": rng.uniform(0.1, 1, blocks).astype(np.float32)}
        if zeros:
            arrays |= {"z": rng.integers(-8, 8, blocks).astype(numpy_dtype(dtype))}
            arguments += f', %z: {text["z"]} {{relax.name = "z"}}'
        else:
            body = f'%z = "relax.full"() {{value = 0 : i64}} : () -> {text["z"]}\n'
        arguments += f', %s: {text["s"]} {{relax.name = "s"}}'
        body += f'%v = "relax.dequantize"(%w, %s, %z) : ({packed}, {text["s"]}, {text["z"]}) -> {wide}'
    elif dtype != "f32":
        body = f'%v = "relax.astype"(%w) {{dtype = f32}} : ({packed}) -> {wide}'
    weight = "%v" if body else "%w"
    module = rx.Module.parse(f"""
func.func @main(%x: tensor<{m}x{size}xf32>, {arguments}) -> tensor<{m}x{size}xf32> attributes {{relax.num_input = 1 : i64}} {{
  {body}
  %y = "relax.packed_matmul"(%x, {weight}) {{layout = "tile {TILE}", n = {size} : i64}}
    : (tensor<{m}x{size}xf32>, {wide}) -> tensor<{m}x{size}xf32>
  return %y : tensor<{m}x{size}xf32>
}}""")
    pipeline = "relax-pack-nibbles,relax-lift-transform-params{growth-slack=0},relax-canonicalize"
    executable = rx.compile(module, pipeline=pipeline)
    prepared = executable.prepare(arrays)
    executable.bind(prepared)
    return executable, sum(a.nbytes for a in prepared.values())


def run(m: int, size: int, rounds: int) -> None:
    """One number of rows: prints a line per format."""
    x = np.random.default_rng(1).normal(size=(m, size)).astype(np.float32)
    built = {name: build(m, size, *rest) for name, *rest in FORMATS}
    times: dict[str, list[float]] = {name: [] for name in built}
    for executable, _ in built.values():
        executable(x)
    for _ in range(rounds):
        for name, (executable, _) in built.items():
            start = time.process_time()
            executable(x)
            times[name].append(time.process_time() - start)
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, (_, read) in built.items():
        seconds = medians[name]
        print(
            f"{m:4d} x {size} x {size}  {name:18s} {seconds * 1e3:8.2f} ms  {read / seconds / 1e9:6.1f} GB/s of weights  "
            f"{2 * m * size * size / seconds / 1e9:7.1f} GFLOP/s  f32 / this {medians['f32'] / seconds:5.2f}  "
            f"best {min(times['f32']) / min(times[name]):5.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    for m in options.rows:
        run(m, options.size, options.rounds)


if __name__ == "__main__":
    main()
