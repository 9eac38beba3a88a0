"""Times of kernels that were not measured: by the cost model, without a GPU.

``python test/benchmark/gpu_predictions.py [--targets sm_80 sm_90a]`` prints, for the best tiles that the model knows of, how
long products of large models' shapes take on the part that each target names, and their share of the limit: what the tensor
cores' peak or the memory's bandwidth would allow; and the same of operations on rows, whose arithmetic is counted by hand. Of
products of few rows the kernel that is shipped is assembled, and its instructions are counted. What is assumed is in
``lowering/cuda/cost``; every figure is predicted, none measured.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import relaxir as rx
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cuda.cost.instruction_counts import executed
from relaxir.lowering.cuda.cost.kernel_time import START, KernelWork, LaunchShape, Prediction, kernel_time
from relaxir.lowering.cuda.cost.product_time import ProductTiling, product_time
from relaxir.lowering.cuda.cuda_target import ARCHITECTURES, Architecture, CudaTarget
from relaxir.lowering.cuda.kernels.attention.make_plan import key_cycles, plan_few, plan_many, plan_warpgroups, warpgroup_cycles
from relaxir.lowering.cuda.kernels.attention.shape import AttentionShape
from relaxir.lowering.cuda.kernels.matvec.plan import LANES, parse_matvec_plan
from relaxir.lowering.cuda.kernels.products.warpgroup_plan import MOST_FLOAT8_COLUMNS
from support.device_cases import Case, product
from support.device_kernels import device_kernels
from support.emulated_cuda import plans

# Rows, columns, steps of k; bytes of an element of the weight; what tensor cores multiply.
_PRODUCTS = {
    "product 4096": ((4096, 4096, 4096), 2.0, "bf16"),
    "product 8192": ((8192, 8192, 8192), 2.0, "bf16"),
    "product 4096, 8-bit floats": ((4096, 4096, 4096), 1.0, "f8"),
    "product 8192, 8-bit floats": ((8192, 8192, 8192), 1.0, "f8"),
    "prompt of 512, 4096 x 11008": ((512, 11008, 4096), 2.0, "bf16"),
    "prompt of 2048, 4096 x 11008": ((2048, 11008, 4096), 2.0, "bf16"),
    "16 rows, 4096 x 11008": ((16, 11008, 4096), 2.0, "bf16"),
    "16 rows, 4096 x 11008, int4": ((16, 11008, 4096), 0.5625, "bf16"),
}
# Bytes of memory for a row of 8192 elements, and f32 operations for one element, about; rows.
_ROWS = {
    "softmax of 8192 x 8192, f32": (8 * 8192, 20, 8192),
    "rms-norm of 8192 x 8192, bf16": (4 * 8192, 6, 8192),
    "silu(gate) * up of 8192 x 8192, bf16": (6 * 8192, 30, 8192),
}
# Rows, columns, steps of k, how weights are stored.
_MATVECS = {
    "one row times 4096 x 11008, bf16": ((1, 11008, 4096), None),
    "one row times 4096 x 4096, bf16": ((1, 4096, 4096), None),
    "one row times 4096 x 11008, int8": ((1, 11008, 4096), "int8"),
    "one row times 4096 x 11008, int4": ((1, 11008, 4096), "int4"),
    "four rows times 4096 x 11008, int4": ((4, 11008, 4096), "int4"),
}
# Bytes of a weight with its scales, of groups of 32.
_BYTES = {None: 2.0, "int8": 1.0, "int4": 0.5 + 4 / 32}
# Rows, keys, and heads of keys that as many of queries share, of 128 elements in bf16.
_ATTENTION = {
    "attention of 4096, 32 heads, causal": AttentionShape("bf16", 128, 128, 4096, 1, 32, 4096, True, None, True),
    "attention of 4096, 32 heads": AttentionShape("bf16", 128, 128, 4096, 1, 32, 4096, False, None, True),
    "attention of 512, 12 heads, 64 elements": AttentionShape("bf16", 64, 64, 512, 1, 12, 512, False, None, True),
}
_DECODE = {
    "row over 8192 keys, 32 heads of 8": AttentionShape("bf16", 128, 128, 1, 4, 8, 8192, False, None),
    "row over 32768 keys, 32 heads": AttentionShape("bf16", 128, 128, 1, 1, 32, 32768, False, None),
}


def tilings(architecture: Architecture, kind: str) -> Iterator[ProductTiling]:
    """Tiles that kernels have, as far as they fit; 8-bit floats have twice the steps in as many bytes."""
    times, most = (2, MOST_FLOAT8_COLUMNS) if kind == "f8" else (1, 256)
    for rows, columns, warps in ((16, 64, (1, 4)), (64, 64, (2, 2)), (64, 128, (2, 2)), (128, 128, (2, 2)), (128, 256, (2, 4))):
        for depth in (32, 64):
            for stages in (3, 4, 5):
                for split in (1, 2, 4, 8):
                    yield ProductTiling((rows, columns, depth * times), warps, stages, split)
    if architecture.wgmma:
        for columns in (n for n in (64, 128, 256) if n <= most):
            for cluster in (1, 2):
                yield ProductTiling((128, columns, 64 * times), (8, 1), 4, wgmma=True, cluster=cluster)


def best(
    architecture: Architecture, shape: tuple[int, int, int], right: float, kind: str
) -> tuple[Prediction, ProductTiling]:  # fmt: skip
    """The shortest time of all tiles."""
    found = list[tuple[Prediction, ProductTiling]]()
    for tiling in tilings(architecture, kind):
        try:
            found.append((product_time(architecture, shape, tiling, kind=kind, right_bytes=right), tiling))
        except RelaxError:  # it does not fit a multiprocessor
            continue
    return min(found, key=lambda pair: pair[0].seconds)


def lines(architecture: Architecture) -> Iterator[str]:
    """A line for each case."""
    part = architecture.part
    yield f"{architecture.name}, {part.name}: {part.sm_count} multiprocessors at {part.clock / 1e9:.2f} GHz, PREDICTED"
    for name, (shape, right, kind) in _PRODUCTS.items():
        if kind not in architecture.tensor:
            continue
        found, tiling = best(architecture, shape, right, kind)
        tile = "x".join(map(str, tiling.tile)) + (" wgmma" if tiling.wgmma else " mma") + f" split {tiling.split}"
        yield f"  {name:38s} {_figures(found)}  {tile}"
    for name, (bytes_, operations, rows) in _ROWS.items():
        work = KernelWork(rows * bytes_, instructions=rows * 8192 * operations / 32, f32_operations=rows * 8192 * operations)
        found = kernel_time(architecture, work, LaunchShape(rows, 256, registers=40, bytes_in_flight=64))
        yield f"  {name:38s} {_figures(found)}"
    for name, (sizes, weights) in _MATVECS.items():
        found, plan = matvec(architecture, sizes, weights)
        yield f"  {name:38s} {_figures(found)}  {plan}"
    for name, shape in _ATTENTION.items():
        found, plan = attention(architecture, shape)
        yield f"  {name:38s} {_figures(found)}  {plan}"
    for name, shape in _DECODE.items():
        found, plan = decode(architecture, shape)
        yield f"  {name:38s} {_figures(found)}  {plan}"


def matvec(architecture: Architecture, sizes: tuple[int, int, int], weights: str | None) -> tuple[Prediction, str]:
    """Of the kernel that is shipped: its machine code says how many instructions a turn of its loop has."""
    (rows, columns, depth), target = sizes, f"cuda:{architecture.name}"
    with tempfile.TemporaryDirectory() as folder:
        executable = rx.compile(Case(product(rows, depth, columns)).module(), target, weights=weights, dump=Path(folder))
        (ptx,) = (path.read_text() for path in Path(folder).glob("*.ptx"))
    plan = next(parse_matvec_plan(line) for line in plans(executable) if line.startswith("columns="))
    (kernel,) = (k for k in device_kernels(ptx, target).values() if k.has("SHFL"))
    turns = depth / (LANES * plan.steps * plan.warps.depth * plan.loads)
    blocks = -(-columns // plan.block_columns)
    instructions = executed(kernel.instructions, [turns]).total() * blocks * plan.warps.count
    work = KernelWork(columns * depth * _BYTES[weights], instructions=instructions)
    in_flight = plan.columns * plan.loads * int(plan.steps * 8 * _BYTES[weights] // 8)
    launch = LaunchShape(blocks, plan.threads, kernel.resources.registers, kernel.resources.shared, in_flight)
    return kernel_time(architecture, work, launch), str(plan)


def attention(architecture: Architecture, shape: AttentionShape) -> tuple[Prediction, str]:
    """Of many rows; causal attention sees half of the keys."""
    target = CudaTarget(architecture)
    grouped, plan = plan_warpgroups(shape, target), plan_many(shape, target)
    assert plan is not None
    cycles = key_cycles(plan, shape, architecture) if grouped is None else warpgroup_cycles(grouped, shape, architecture)
    part, seen = architecture.part, 0.5 if shape.causal else 1.0
    keys, rows = (shape.keys or 0) * seen, (shape.rows or 0) * (shape.pairs or 0)
    operations = 2 * rows * keys * (shape.depth + shape.width)
    limit = operations / (architecture.tensor["bf16"] * part.sm_count * part.clock)
    return Prediction(cycles * keys / part.clock + START, limit, "tensor"), str(grouped or plan)


def decode(architecture: Architecture, shape: AttentionShape) -> tuple[Prediction, str]:
    """Of few rows: bytes of keys and values, and a second kernel."""
    plan = plan_few(shape, CudaTarget(architecture))
    assert plan is not None
    bytes_ = 2 * (shape.keys or 0) * (shape.pairs or 0) * (shape.depth + shape.width)
    shared = plan.shared_bytes(shape.depth, shape.width)
    launch = LaunchShape(plan.blocks, plan.threads, registers=128, shared=shared, bytes_in_flight=shared // plan.threads // 2)
    found = kernel_time(architecture, KernelWork(bytes_), launch)
    return replace(found, seconds=found.seconds + START), str(plan)


def _figures(found: Prediction) -> str:
    return f"{found.seconds * 1e6:9.1f} us  {found.share:4.0%} of the limit, by {found.bound:13s}"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", default=["sm_80", "sm_90a"], choices=list(ARCHITECTURES))
    for name in parser.parse_args().targets:
        print("\n".join(lines(ARCHITECTURES[name])))


if __name__ == "__main__":
    main()
