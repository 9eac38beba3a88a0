"""Every GPU kernel of the cases of ``suite.py`` as machine code, without a GPU: none may spill registers.

``python test/benchmark/gpu_kernels.py [--cases 'llama*' ...] [--targets cuda:sm_80 cuda:sm_90a]`` imports torch's cases,
compiles them for each target, assembles their kernels, and prints how many a case has, the most registers that one has, bytes
that are spilled, instructions of all, and which opcodes of tensor cores and of asynchronous copies are among them. A kernel
that spills, or of which the assembler warns, is a line of its own, and the exit code is then 1. Nothing is run or timed.
"""
# ruff: noqa: E402  the path is extended before what is on it is imported

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

from comparison.cases import Case, select
from comparison.peers.relaxir import made, weights_as

from support.device_cases import TARGETS, ptx_of_module
from support.device_kernels import DeviceKernel, device_kernels
from support.kernel_table import TENSOR

__all__ = ["complaints", "kernels_of", "line_of", "main"]


def kernels_of(case: Case, targets: Sequence[str]) -> dict[str, list[DeviceKernel]]:
    """The kernels of a case by target; the case is imported once."""
    _, module, _ = made(case)
    return {t: list(device_kernels(ptx_of_module(module, t, weights_as(case)), t).values()) for t in targets}


def line_of(name: str, target: str, kernels: Sequence[DeviceKernel]) -> str:
    """The line of a case."""
    opcodes = {i.name for kernel in kernels for i in kernel.instructions}
    registers = max((k.resources.registers for k in kernels), default=0)
    spilled = sum(k.resources.spill_stores + k.resources.spill_loads for k in kernels)
    instructions = sum(len(k.instructions) for k in kernels)
    used = ",".join(name for name in TENSOR if name in opcodes) or "-"
    return f"{name:28s} {target:12s} {len(kernels):7d} {registers:9d} {spilled:7d} {instructions:12d}  {used}"


def complaints(kernels: Sequence[DeviceKernel]) -> list[str]:
    """A line of each kernel that spills, or of which the assembler warns."""
    return [f"  @{k.name}: {k.resources}" for k in kernels if k.resources.spills or k.resources.warnings]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 where a kernel is not as it is to be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=[], metavar="PATTERN", help="names, or patterns like 'llama*'")
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), help=" ".join(TARGETS))
    options = parser.parse_args(arguments)
    try:
        cases = [case for case in select(options.cases, quick=False) if not case.file]
    except ValueError as error:
        parser.error(str(error))
    print(f"{'case':28s} {'target':12s} kernels registers spilled instructions  tensor")
    wrong = 0
    for case in cases:
        for target, kernels in kernels_of(case, options.targets).items():
            said = complaints(kernels)
            print("\n".join((line_of(case.name, target, kernels), *said)), flush=True)
            wrong += len(said)
    print(f"{wrong} kernels spill registers, or are warned of")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
