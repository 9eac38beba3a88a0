"""Every GPU kernel of the cases of ``suite.py`` as machine code, without a GPU: what it has to be fails this when it is not.

``python test/benchmark/gpu_kernels.py [--cases 'llama*' ...] [--targets cuda:sm_80 cuda:sm_90a] [--output FILE]`` imports
cases, of torch and ONNX files, compiles them for each target, assembles their kernels, and prints how many a case has, the most
registers that one has, bytes that are spilled, instructions of all, and which opcodes of tensor cores and of asynchronous
copies are among them. A kernel that spills registers, has local memory, that the assembler warns of, or that has not the
instructions its plan is about (``gpu/machine_code.py``), is a line of its own, and the exit code is then 1.

With ``--output`` each goes to the file as a line of JSON when it is found, and what is there already is not compiled again.
Nothing is run or timed.
"""
# ruff: noqa: E402  the path is extended before what is on it is imported

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

from benchmark.comparison.cases import Case, select
from benchmark.comparison.peers.relaxir import module_of, weights_as
from benchmark.gpu.machine_code import CaseCode, code_of

from support.device_cases import TARGETS

__all__ = ["found_of", "main"]


def found_of(case: Case, targets: Sequence[str]) -> Iterator[CaseCode]:
    """A case for each target; it is imported once."""
    module = module_of(case)
    for target in targets:
        yield code_of(case.name, module, target, weights_as(case))


def _of_file(path: Path | None) -> dict[tuple[str, str], CaseCode]:
    """What a file has, by case and target; nothing where there is no file."""
    if path is None or not path.exists():
        return {}
    found = [CaseCode(**json.loads(line)) for line in path.read_text().splitlines()]
    return {(each.case, each.target): each for each in found}


def _each(cases: Sequence[Case], targets: Sequence[str], output: Path | None) -> Iterator[CaseCode]:
    """Those of the file as they are there, all others found, and appended to it."""
    known = _of_file(output)
    for case in cases:
        yield from (known[case.name, target] for target in targets if (case.name, target) in known)
        missing = [target for target in targets if (case.name, target) not in known]
        for found in found_of(case, missing) if missing else ():
            if output is not None:
                output.parent.mkdir(parents=True, exist_ok=True)
                with output.open("a") as file:
                    print(json.dumps(found.as_json()), file=file)
            yield found


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 where a kernel is not as it has to be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=[], metavar="PATTERN", help="names, or patterns like 'llama*'")
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), help=" ".join(TARGETS))
    parser.add_argument("--output", type=Path, help="a file with what was found before, which is gone on with")
    options = parser.parse_args(arguments)
    try:
        cases = select(options.cases, quick=False)
    except ValueError as error:
        parser.error(str(error))
    print(f"{'case':32s} {'target':12s} kernels registers spilled instructions  tensor")
    wrong = 0
    for found in _each(cases, options.targets, options.output):
        print(found, flush=True)
        wrong += len(found.complaints)
    print(f"{wrong} kernels are not as they have to be")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
