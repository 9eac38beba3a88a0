"""The table of device kernels: registers, shared memory, instructions of each, which a change of code generation has to show.

``make kernel-table`` writes it again; what changed is then to be seen in the commit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from support.device_cases import CASES, ptx_of
from support.device_kernels import DeviceKernel, device_kernels_together

__all__ = ["PATH", "TENSOR", "lines_of", "recorded"]

PATH = Path(__file__).parents[1] / "lowering" / "cuda" / "kernels.txt"

_HEAD = "case target kernel registers shared spilled instructions tensor"
#: Opcodes of tensor cores, and of asynchronous copies.
TENSOR = ("HMMA", "IMMA", "HGMMA", "IGMMA", "QMMA", "QGMMA", "LDGSTS", "UTMALDG")


#: Kernels of the host are counted, too: such a number says nothing of this one.
_NUMBER = re.compile(r"_\d+")


def lines_of(names: Sequence[str], target: str) -> dict[str, list[str]]:
    """The lines of the kernels of cases, by case."""
    kernels = device_kernels_together([ptx_of(CASES[name], target) for name in names], target)
    return {n: [f"{n} {target} {_line(kernel)}" for kernel in found.values()] for n, found in zip(names, kernels, strict=True)}


def _line(kernel: DeviceKernel) -> str:
    assert not kernel.resources.warnings, f"{kernel.name}: {kernel.resources.warnings}"
    r, counts = kernel.resources, {n: sum(i.name == n for i in kernel.instructions) for n in TENSOR}
    used = ",".join(f"{name}:{count}" for name, count in counts.items() if count) or "-"
    kind = _NUMBER.sub("", kernel.name, count=1)
    return f"{kind} {r.registers} {r.shared} {r.spill_stores + r.spill_loads} {len(kernel.instructions)} {used}"


def recorded() -> dict[tuple[str, str], list[str]]:
    """The lines of the table by case and target."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in PATH.read_text().splitlines()[1:]:
        name, target, *_ = line.split()
        found.setdefault((name, target), []).append(line)
    return found


def main() -> None:
    """Writes the table."""
    targets = sorted({target for case in CASES.values() for target in case.targets})
    found = {t: lines_of([name for name, case in CASES.items() if t in case.targets], t) for t in targets}
    lines = [line for name, case in CASES.items() for target in case.targets for line in found[target][name]]
    PATH.write_text("\n".join((_HEAD, *lines)) + "\n")


if __name__ == "__main__":
    main()
