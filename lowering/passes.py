"""The passes of this folder under their names in pipelines; a pass is imported when it first runs."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..dialect.passes.registry import register

if TYPE_CHECKING:
    from ..dialect.passes.base import Pass

__all__ = ["PASSES", "register_passes"]


def _load(module: str, name: str) -> type[Pass]:
    return getattr(importlib.import_module(module, __package__), name)


def _ours(module: str, name: str) -> Callable[[], type[Pass]]:
    return functools.partial(_load, module, name)


#: What imports and returns each pass.
PASSES: dict[str, Callable[[], type[Pass]]] = {
    "relax-add-destinations": _ours(".cpu.add_destinations", "AddDestinations"),
    "relax-bufferize": _ours(".cpu.bufferize", "Bufferize"),
    "relax-call-collectives": _ours(".cpu.call_collectives", "CallCollectives"),
    "relax-call-externs": _ours(".cpu.call_externs", "CallExterns"),
    "relax-carry-in-place": _ours(".cpu.carry_in_place", "CarryInPlace"),
    "relax-check-accesses": _ours(".cpu.check_accesses", "CheckAccesses"),
    "relax-check-allocations": _ours(".cpu.check_allocations", "CheckAllocations"),
    "relax-check-device-accesses": _ours(".cuda.check_device_accesses", "CheckDeviceAccesses"),
    "relax-check-entries": _ours(".check_entries", "CheckEntries"),
    "relax-check-scalars": _ours(".check_scalars", "CheckScalars"),
    "relax-defer-checks": _ours(".cuda.defer_checks", "DeferChecks"),
    "relax-describe-entries": _ours(".describe_entries", "DescribeEntries"),
    "relax-drop-arguments": _ours(".cpu.drop_arguments", "DropArguments"),
    "relax-drop-empty": _ours(".drop_empty", "DropEmpty"),
    "relax-expand-fma": _ours(".kernels.expand.expand_fma", "ExpandFma"),
    "relax-expand-math": _ours(".kernels.expand.expand_math", "ExpandMath"),
    "relax-expand-narrow-floats": _ours(".kernels.expand.expand_narrow_floats", "ExpandNarrowFloats"),
    "relax-flatten-epilogues": _ours(".fusion.flatten_epilogues", "FlattenEpilogues"),
    "relax-keep-checks": _ours(".keep_checks", "KeepChecks"),
    "relax-keep-initial-values": _ours(".fusion.keep_initial_values", "KeepInitialValues"),
    "relax-lend-memory": _ours(".cpu.lend_memory", "LendMemory"),
    "relax-lower-checks": _ours(".cpu.lower_checks", "LowerChecks"),
    "relax-launch-kernels": _ours(".cuda.launch_kernels", "LaunchKernels"),
    "relax-lower-cuda-kernels": _ours(".cuda.kernels.lower_cuda_kernels", "LowerCudaKernels"),
    "relax-lower-kernels": _ours(".cpu.kernels.lower_kernels", "LowerKernels"),
    "relax-merge-kernels": _ours(".cpu.merge_kernels", "MergeKernels"),
    "relax-move-checks-first": _ours(".move_checks_first", "MoveChecksFirst"),
    "relax-note-host-tensors": _ours(".cuda.note_host_tensors", "NoteHostTensors"),
    "relax-note-ops": _ours(".fusion.note_ops", "NoteOps"),
    "relax-outline-kernels": _ours(".fusion.outline_kernels", "OutlineKernels"),
    "relax-partition-transforms": _ours(".partition_transforms", "PartitionTransforms"),
    "relax-plan-contractions": _ours(".cpu.kernels.contraction.plan_contractions", "PlanContractions"),
    "relax-plan-cuda-kernels": _ours(".cuda.kernels.plan_cuda_kernels", "PlanCudaKernels"),
    "relax-plan-loops": _ours(".cpu.kernels.nest.plan_loops", "PlanLoops"),
    "relax-repeat-producers": _ours(".fusion.repeat_producers", "RepeatProducers"),
    "relax-report-kernels": _ours(".fusion.report_kernels", "ReportKernels"),
    "relax-restore-destinations": _ours(".fusion.restore_destinations", "RestoreDestinations"),
    "relax-separate-devices": _ours(".cuda.separate_devices", "SeparateDevices"),
    "relax-separate-values": _ours(".cuda.separate_values", "SeparateValues"),
    "relax-set-cuda-target": _ours(".cuda.set_cuda_target", "SetCudaTarget"),
    "relax-set-linkage": _ours(".cpu.set_linkage", "SetLinkage"),
    "relax-set-target": _ours(".set_target", "SetTarget"),
    "relax-share-copies": _ours(".cpu.share_copies", "ShareCopies"),
    "relax-share-frames": _ours(".cpu.share_frames", "ShareFrames"),
    "relax-share-loops": _ours(".cpu.share_loops", "ShareLoops"),
    "relax-sink-frames": _ours(".cpu.sink_frames", "SinkFrames"),
    "relax-skip-masked-products": _ours(".skip_masked_products", "SkipMaskedProducts"),
    "relax-to-linalg": _ours(".linalg.to_linalg", "RelaxToLinalg"),
    "relax-use-arena": _ours(".cpu.use_arena", "UseArena"),
}


def register_passes() -> None:
    """Adds them to the registry; a second call does nothing."""
    for name, loader in PASSES.items():
        register(name, loader)
