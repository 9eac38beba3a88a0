"""How long whole cases of ``suite.py`` take on a GPU by the cost model: a sum over what their host code launches.

What is launched, how often and by how many blocks, is what compiled host code does (``support/recorded_launches.py``). Of each
launch:

- Products in tiles and attention by their own cost functions, of their plan and shape. Factors that are computed on their way
  (integers, images) are read from memory once, as all that a kernel function reads and not the other factor is.
- Every other kernel by what its first block executed, times blocks. Instructions are those of PTX, times how many machine code
  has of them (both counted in the text). Bytes are what a block touched, times blocks, but no more than operands have; beyond
  them they are read again from the second-level cache. In flight is what a thread asks for before it uses the first of it.
- Copies and fills at the memory's bandwidth.

The limit is that of ``suite.py``: FLOPs at the peak of the case's weights' type, or its bytes at the memory's bandwidth; other
than there, of cases that fit caches, too, as the cost model has all kernels read from memory.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from benchmark.comparison.cases import Case
from benchmark.comparison.peers.relaxir import made, module_of, weights_as
from benchmark.comparison.reference import measured

import relaxir as rx
from relaxir.dialect.reports.kernels import Kernel, KernelSection
from relaxir.lowering.cuda.cost.instruction_counts import bytes_in_flight
from relaxir.lowering.cuda.cost.kernel_time import BANDWIDTH_SHARE, START, KernelWork, LaunchShape, Prediction, kernel_time
from relaxir.lowering.cuda.cuda_target import Architecture, CudaTarget
from relaxir.lowering.cuda.kernels.attention.make_plan import key_cycles, warpgroup_cycles
from relaxir.lowering.cuda.kernels.attention.plan import AttentionPlan
from relaxir.lowering.cuda.kernels.attention.shape import AttentionShape
from relaxir.lowering.cuda.kernels.attention.template import PlannedAttention
from relaxir.lowering.cuda.kernels.attention.warpgroup_plan import WarpgroupAttentionPlan
from relaxir.lowering.cuda.kernels.products.plan_time import plan_time
from relaxir.lowering.cuda.kernels.products.shape import ProductShape
from relaxir.lowering.cuda.kernels.products.template import PlannedProduct
from relaxir.lowering.cuda.plan_choices import PlanChoices, collecting_choices
from relaxir.runtime.sources import PreparedWeights
from relaxir.weights.arrays import to_numpy
from support.device_kernels import DeviceKernel, device_kernels
from support.recorded_launches import CopyWork, LaunchWork, recording

__all__ = ["CasePrediction", "PredictedLaunch", "attention_time", "limit_of", "predict", "predict_case"]

#: The kind of factors that tensor cores multiply, by the type of a case's weights.
_PEAKS = {"bf16": "bf16", "int8": "i8", "int4": "i8"}


@dataclass(frozen=True)
class PredictedLaunch:
    """One launch, or copy.

    Attributes:
        name: of the kernel, ``"copy"`` of a copy.
        kind: ``"product"``, ``"attention"``, ``"kernel"`` or ``"copy"``.
        seconds: that it takes.
        bound: what takes longest.
    """

    name: str
    kind: str
    seconds: float
    bound: str


@dataclass(frozen=True)
class CasePrediction:
    """A case on one target, everything predicted.

    Attributes:
        case, target: names.
        seconds: of all launches of a call, one after the other.
        limit, bound: least seconds, and what sets them, ``"compute"`` or ``"memory"``.
        launches: how many.
        starting: seconds of ``seconds`` that starting kernels takes, of which a recorded graph saves a part.
        by_kind: seconds by kind of launch.
        slowest: the launch that takes longest, and its share.
        processor_seconds: that the prediction took here.
    """

    case: str
    target: str
    seconds: float
    limit: float
    bound: str
    launches: int
    starting: float
    by_kind: Mapping[str, float]
    slowest: str
    processor_seconds: float

    @property
    def share(self) -> float:
        return self.limit / self.seconds

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def predict_case(case: Case, target: str) -> CasePrediction:
    """A case by name; imports torch, and for ONNX files what exports and quantizes them."""
    start = time.process_time()
    built, module, _ = (case.make(), module_of(case), None) if case.file else made(case)
    _, work = measured(case, case.make())
    launches = predict(module, built.inputs, target, weights_as(case))
    limit, bound = limit_of(work, case.weights, CudaTarget.parse(target).architecture)
    by_kind, total = dict[str, float](), sum(launch.seconds for launch in launches)
    for launch in launches:
        by_kind[launch.kind] = by_kind.get(launch.kind, 0.0) + launch.seconds
    slowest = max(launches, key=lambda launch: launch.seconds)
    return CasePrediction(
        case.name, target, total, limit, bound, len(launches), START * len(launches), by_kind,
        f"{slowest.name} ({slowest.kind}, {slowest.bound}) {slowest.seconds / total:.0%}", time.process_time() - start,
    )  # fmt: skip


def limit_of(work: Mapping[str, int], weights: str, architecture: Architecture) -> tuple[float, str]:
    """The least seconds for so many FLOPs and bytes, and what sets it."""
    part, kind = architecture.part, _PEAKS.get(weights)
    per_cycle = 2 * architecture.f32_lanes if kind is None else architecture.tensor[kind]
    compute, memory = work["flops"] / (per_cycle * part.sm_count * part.clock), work["size"] / part.bandwidth
    return (compute, "compute") if compute >= memory else (memory, "memory")


def predict(module: rx.Module, inputs: Mapping[str, Any], target: str, weights: str | None = None) -> list[PredictedLaunch]:
    """What a call of a module's only entry launches, in order.

    Args:
        module: its weights are as it says; their values do not matter.
        inputs: by name, tensors or arrays whose sizes count.
        target: ``"cuda:sm_80"`` or the like.
        weights: what they are stored as, as for ``relaxir.compile``.
    """
    with tempfile.TemporaryDirectory() as folder, collecting_choices() as choices:
        executable = rx.compile(module, target, device="emulated", weights=weights, dump=Path(folder), cache=False)
        ptx = [path.read_text() for path in Path(folder).glob("*.ptx")]
    predictor = _Predictor(choices, _kernels(executable), device_kernels(ptx[0], target) if ptx else {}, target)
    with recording(predictor.apart) as found:
        wanted = {name: spec.array for name, spec in executable.manifest.prepared_weights.items()}
        zeros = {name: np.zeros(array.shape, array.dtype) for name, array in wanted.items()}
        executable.bind(PreparedWeights(zeros, executable.fingerprint))
        arrays = {name: to_numpy(value, name) for name, value in inputs.items()}
        executable(**arrays)  # the first call also sets up what all others find
        found.clear()
        executable(**arrays)
    return [predictor.of(work) for work in found]


def _kernels(executable: rx.Executable) -> dict[str, Kernel]:
    """What kernel functions read and write, by name."""
    sections = [s for s in executable.report.sections if isinstance(s, KernelSection)]
    return {kernel.name: kernel for section in sections for kernel in section.kernels}


class _Predictor:
    """Predicts the launches of one executable."""

    def __init__(self, choices: PlanChoices, functions: Mapping[str, Kernel], kernels: Mapping[str, DeviceKernel], target: str):
        self._architecture = CudaTarget.parse(target).architecture
        self._functions, self._kernels = functions, kernels
        self._built = choices.built
        self._function_of = {k: name for name, function in choices.built.items() for k in function.kernels}
        self._main = {k: time for name in choices.built for k, time in self._own(name)}

    @property
    def apart(self) -> Iterable[str]:
        """The kernels that have a cost function of their own."""
        return self._main.keys()

    def of(self, work: LaunchWork | CopyWork) -> PredictedLaunch:
        """What a launch takes."""
        if isinstance(work, CopyWork):
            seconds = START + work.bytes / (BANDWIDTH_SHARE * self._architecture.part.bandwidth)
            return PredictedLaunch("copy", "copy", seconds, "memory")
        if work.kernel in self._main:
            kind, found = self._main[work.kernel]
            return PredictedLaunch(work.kernel, kind, found.seconds, found.bound)
        found = self._counted(work)
        return PredictedLaunch(work.kernel, "kernel", found.seconds, found.bound)

    def _own(self, name: str) -> Iterator[tuple[str, tuple[str, Prediction]]]:
        """The kernels of a function that have a cost function, and what it says."""
        plan, kernels = self._built[name].plan, self._built[name].kernels
        if isinstance(plan, PlannedProduct):
            yield kernels[0], ("product", self._product(plan, self._functions.get(name)))
            # The time of a product cut along k has that of the kernel which adds its parts up.
            yield from ((k, ("product", Prediction(0.0, 0.0, "start"))) for k in kernels[1:])
        if isinstance(plan, PlannedAttention):
            multiplying = [k for k in kernels if any(map(self._kernels[k].has, ("HMMA", "HGMMA")))]
            plans = [p for p in (plan.many, plan.few) if p is not None]
            for kernel, each in zip(multiplying, plans, strict=True):
                yield kernel, ("attention", attention_time(each, plan.shape, self._architecture, is_few=each is plan.few))

    def _product(self, planned: PlannedProduct, function: Kernel | None) -> Prediction:
        shape, plan = planned.shape, planned.plan
        if shape.depth is not None and shape.sums is not None:
            shape = replace(shape, depth=shape.depth * shape.sums)
        left, right = _factor_bytes(shape, plan.instruction.bytes, None if function is None else function.bytes_read)
        return plan_time(plan, shape, self._architecture, left_bytes=left, right_bytes=right)

    def _counted(self, work: LaunchWork) -> Prediction:
        kernel, function = (
            self._kernels[work.kernel],
            self._functions.get(self._function_of.get(work.kernel, "")),
        )  # none of checks of values
        touched = work.touched * work.blocks
        known = function is not None and function.bytes_read is not None and function.bytes_written is not None
        bytes_ = min(touched, function.bytes_read + function.bytes_written) if known else touched
        instructions = work.instructions * len(kernel.instructions) / work.written * work.blocks
        launch = LaunchShape(
            work.blocks,
            work.threads,
            kernel.resources.registers,
            kernel.resources.shared + work.shared,
            max(1, bytes_in_flight(kernel.instructions)),
        )
        done = KernelWork(bytes_, touched - bytes_, instructions, work.f32_operations * work.blocks)
        return kernel_time(self._architecture, done, launch)


def attention_time(
    plan: AttentionPlan | WarpgroupAttentionPlan, shape: AttentionShape, architecture: Architecture, *, is_few: bool
) -> Prediction:
    """Of attention; of few rows without the kernel that merges parts. Causal attention sees half of the keys."""
    part, size = architecture.part, 4 if shape.element == "f32" else 2
    pairs, keys = shape.pairs or 1, shape.keys or 0
    if is_few:
        assert isinstance(plan, AttentionPlan)
        shared = plan.shared_bytes(shape.depth, shape.width)
        launch = LaunchShape(plan.blocks, plan.threads, 128, shared, bytes_in_flight=shared // plan.threads // 2)
        return kernel_time(architecture, KernelWork(size * keys * pairs * (shape.depth + shape.width)), launch)
    seen = keys * (0.5 if shape.causal else 1.0)
    grouped = isinstance(plan, WarpgroupAttentionPlan)
    cycles = warpgroup_cycles(plan, shape, architecture) if grouped else key_cycles(plan, shape, architecture)
    operations = 2 * seen * (shape.together or 0) * pairs * (shape.depth + shape.width)
    limit = operations / (architecture.tensor["bf16"] * part.sm_count * part.clock)
    return Prediction(cycles * seen / part.clock + START, limit, "tensor")


def _factor_bytes(shape: ProductShape, size: int, read: int | None) -> tuple[float | None, float | None]:
    """Bytes of an element of each factor, where what a function reads says so: None are those of what is multiplied.

    The factor that is computed on its way, else the larger one, is what is read beside the other; an image, whose elements are
    in several places of a window, is read once.
    """
    sizes = shape.rows, shape.columns, shape.depth, shape.batch
    if read is None or None in sizes:
        return None, None
    left, right = (prod((n or 1, shape.depth or 1, shape.batch or 1)) for n in (shape.rows, shape.columns))
    computed = shape.left.is_computed, shape.right.is_computed
    if not any(computed) and read >= size * (left + right):
        return None, None
    if computed[0] > computed[1] or (computed[0] == computed[1] and left > right):
        return max(0, read - size * right) / max(1, left), None
    return None, max(0, read - size * left) / max(1, right)
