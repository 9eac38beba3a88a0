"""Times of kernels that were not measured: by the cost model, without a GPU.

``python test/benchmark/gpu_predictions.py [--targets sm_80 sm_90a]`` prints, for the plans that the compiler chooses, how long
products of large models' shapes take on the part that each target names, and their share of the limit: what the tensor
cores' peak or the memory's bandwidth would allow; and the same of operations on rows, whose arithmetic is counted by hand. Of
products of few rows the kernel that is shipped is assembled, and its instructions are counted. What is assumed is in
``lowering/cuda/cost``; every figure is predicted, none measured.

``... --cases 'llama*' bert-base-b1-s128 ... [--output FILE]`` predicts whole cases of ``suite.py`` (``'*'``: all), a
sum over what a call of each launches (``gpu/predictions.py`` says how). Each goes to the file as a line of JSON when it is
found, and what is there already is not predicted again; at the end all of the file is printed as a table.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmark.comparison.cases import select
from benchmark.gpu.predictions import CasePrediction, attention_time, predict_case

import relaxir as rx
from relaxir.lowering.cuda.cost.instruction_counts import executed
from relaxir.lowering.cuda.cost.kernel_time import START, KernelWork, LaunchShape, Prediction, kernel_time
from relaxir.lowering.cuda.cuda_target import ARCHITECTURES, Architecture, CudaTarget
from relaxir.lowering.cuda.kernels.attention import make_plan as attention_plans
from relaxir.lowering.cuda.kernels.attention.shape import AttentionShape
from relaxir.lowering.cuda.kernels.matvec.plan import LANES, parse_matvec_plan
from relaxir.lowering.cuda.kernels.products.instructions import INSTRUCTIONS
from relaxir.lowering.cuda.kernels.products.make_plan import plan_product, plan_warpgroups
from relaxir.lowering.cuda.kernels.products.plan import ProductPlan
from relaxir.lowering.cuda.kernels.products.plan_time import plan_time
from relaxir.lowering.cuda.kernels.products.shape import FactorShape, ProductShape
from relaxir.lowering.cuda.kernels.products.warpgroup_plan import WarpgroupPlan
from support.device_cases import Case, product
from support.device_kernels import device_kernels
from support.emulated_cuda import plans

# Rows, columns, steps of k; bytes of an element of the weight; the instruction.
_PRODUCTS = {
    "product 4096": ((4096, 4096, 4096), 2.0, "bf16"),
    "product 8192": ((8192, 8192, 8192), 2.0, "bf16"),
    "product 4096, 8-bit floats": ((4096, 4096, 4096), 1.0, "e4m3"),
    "product 8192, 8-bit floats": ((8192, 8192, 8192), 1.0, "e4m3"),
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


def product_of(
    architecture: Architecture, sizes: tuple[int, int, int], bytes_: float, by: str
) -> tuple[Prediction, ProductPlan | WarpgroupPlan]:
    """A product by the plan that the compiler chooses: of weights that are narrower than activations, computed on their way."""
    left = FactorShape(along_k=True, copy=16)
    is_narrow = bytes_ < INSTRUCTIONS[by].bytes
    right = FactorShape(along_k=True, copy=0, is_computed=True) if is_narrow else left
    rows, columns, depth = sizes
    shape = ProductShape(
        rows,
        columns,
        depth,
        1,
        by,
        left,
        right,
        8,
        is_mapped=not is_narrow,
        group=32 if is_narrow else None,
        splits=not is_narrow,
    )
    plan = plan_warpgroups(shape, architecture) or plan_product(shape, architecture)
    return plan_time(plan, shape, architecture, right_bytes=bytes_), plan


def lines(architecture: Architecture) -> Iterator[str]:
    """A line for each case."""
    part = architecture.part
    yield f"{architecture.name}, {part.name}: {part.sm_count} multiprocessors at {part.clock / 1e9:.2f} GHz, PREDICTED"
    for name, (sizes, bytes_, by) in _PRODUCTS.items():
        if INSTRUCTIONS[by].peak not in architecture.tensor:
            continue
        found, plan = product_of(architecture, sizes, bytes_, by)
        yield f"  {name:38s} {_figures(found)}  {plan}"
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
    """Of many rows."""
    target = CudaTarget(architecture)
    plan = attention_plans.plan_warpgroups(shape, target) or attention_plans.plan_many(shape, target)
    assert plan is not None
    return attention_time(plan, shape, architecture, is_few=False), str(plan)


def decode(architecture: Architecture, shape: AttentionShape) -> tuple[Prediction, str]:
    """Of few rows: bytes of keys and values, and a second kernel."""
    plan = attention_plans.plan_few(shape, CudaTarget(architecture))
    assert plan is not None
    found = attention_time(plan, shape, architecture, is_few=True)
    return replace(found, seconds=found.seconds + START), str(plan)


def _figures(found: Prediction) -> str:
    return f"{found.seconds * 1e6:9.1f} us  {found.share:4.0%} of the limit, by {found.bound:13s}"


def predict_cases(patterns: Sequence[str], targets: Sequence[str], output: Path) -> None:
    """Appends to a file what is not in it yet. Raises ValueError for a pattern that no case has."""
    chosen = select(list(patterns), quick=False)
    known = {(found.case, found.target) for found in read_predictions(output)}
    output.parent.mkdir(parents=True, exist_ok=True)
    for case in chosen:
        for target in (f"cuda:{t}" for t in targets if (case.name, f"cuda:{t}") not in known):
            found = predict_case(case, target)
            with output.open("a") as file:
                print(json.dumps(found.as_json()), file=file)


def read_predictions(path: Path) -> list[CasePrediction]:
    """Those of a file, in its order; none where there is no file."""
    return [CasePrediction(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def table(found: Sequence[CasePrediction]) -> Iterator[str]:
    """A row for each case, all targets side by side, as Markdown."""
    targets = list(dict.fromkeys(each.target for each in found))
    yield "| case | " + " | ".join(f"{t}: time, launches | limit | share | slowest launch" for t in targets) + " |"
    yield "|---" * (1 + 4 * len(targets)) + "|"
    for name in dict.fromkeys(each.case for each in found):
        by_target = {each.target: each for each in found if each.case == name}
        yield f"| `{name}` | " + " | ".join(_cells(by_target.get(t)) for t in targets) + " |"


def _cells(found: CasePrediction | None) -> str:
    if found is None:
        return " | | |"
    limit = f"{_time(found.limit)}, {found.bound}"
    return f"{_time(found.seconds)}, {found.launches} | {limit} | {found.share:.0%} | {found.slowest}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", default=["sm_80", "sm_90a"], choices=list(ARCHITECTURES))
    parser.add_argument("--cases", nargs="+", metavar="PATTERN", help="whole cases: names, or patterns like 'llama*'")
    parser.add_argument("--output", type=Path, default=Path("build/benchmark/predictions.jsonl"), help="what is found of cases")
    options = parser.parse_args(arguments)
    if not options.cases:
        for name in options.targets:
            print("\n".join(lines(ARCHITECTURES[name])))
        return
    try:
        predict_cases(options.cases, options.targets, options.output)
    except ValueError as error:
        parser.error(str(error))
    print("PREDICTED, none of it measured")
    print("\n".join(table(read_predictions(options.output))))


if __name__ == "__main__":
    main()
