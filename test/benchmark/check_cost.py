"""What run-time checks add to compiled code, counted and not timed: kernels that differ, and instructions around them.

    python test/benchmark/check_cost.py [--cases 'llama*' ...] [--target cpu:x86-64-v3]

Each case of ``suite.py`` is compiled to LLVM IR twice, as users have it and with the branch behind every check taken out.
Kernels are told apart by their text: where none differs, checks cost what they add to the function that calls the kernels, once
per call. Columns: checks, kernels, kernels that are in one form alone, and by how many instructions and loops the caller grows
after LLVM's passes. An instruction takes at most a nanosecond; loops go over indices that a check has to look at.
"""

from __future__ import annotations

import argparse
import re
from typing import Any

from comparison.cases import Case, select
from comparison.peers.relaxir import module_of, weights_as

import relaxir as rx
from relaxir.dialect.bindings import ir
from relaxir.lowering.cpu import codegen, lower_checks
from relaxir.lowering.cpu.llvm_units import MAIN, Unit
from relaxir.lowering.cpu.llvm_worker import Units
from relaxir.lowering.target import Target

_COLUMNS = "{:<32}{:>8}{:>9}{:>9}{:>14}{:>7}"
_LABEL, _JUMP = re.compile(r"^(\d+|[\w.]+):"), re.compile(r"label %([\w.]+)")


class _StoppedError(Exception):
    """Stops a compilation where LLVM would go on, with what it would compile."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=[], metavar="PATTERN")
    parser.add_argument("--target", default="cpu")
    options = parser.parse_args()
    print(_COLUMNS.format("case", "checks", "kernels", "differ", "instructions", "loops"))
    for case in select(options.cases, quick=False):
        print(_row(case, options.target), flush=True)


def _row(case: Case, target: str) -> str:
    source = module_of(case)
    with_, checks = _compiled(case, source, target, erased=False)
    without, _ = _compiled(case, source, target, erased=True)
    kernels = [{u.name for u in units if u.is_kernel} for units in (with_, without)]
    before, after = (_Caller(units, target) for units in (without, with_))
    return _COLUMNS.format(
        case.name, checks, len(kernels[0]), len(kernels[0] ^ kernels[1]),
        after.instructions - before.instructions, after.loops - before.loops,
    )  # fmt: skip


def _compiled(case: Case, source: rx.Module, target: str, erased: bool) -> tuple[list[Unit], int]:
    """The units of a case's code, and how many checks they had."""
    branch, units_of, checks = lower_checks._branch, codegen.units_of, 0

    def lowered(call: ir.Operation) -> None:
        nonlocal checks
        checks += 1
        if erased:
            call.erase()
        else:
            branch(call)

    def stop(text: str) -> Any:
        raise _StoppedError(units_of(text))

    lower_checks._branch, codegen.units_of = lowered, stop
    try:
        rx.compile(source, weights=weights_as(case), target=target, cache=False)
    except _StoppedError as found:
        return found.args[0], checks
    finally:
        lower_checks._branch, codegen.units_of = branch, units_of
    raise AssertionError("expected LLVM to be asked for code")


class _Caller:
    """What calls the kernels, after LLVM's passes.

    Attributes:
        instructions: how many there are.
        loops: jumps back to an earlier block.
    """

    def __init__(self, units: list[Unit], target: str):
        text = next(u.text for u in units if u.name == MAIN)
        lines = str(Units(codegen._machine(Target.parse(target))).optimised(text)).splitlines()
        seen = set[str]()
        self.instructions = self.loops = 0
        for line in lines:
            if label := _LABEL.match(line):
                seen.add(label[1])
            elif line.startswith("define"):
                seen.clear()
            elif line.startswith("  "):
                self.instructions += 1
                self.loops += any(target in seen for target in _JUMP.findall(line))


if __name__ == "__main__":
    main()
