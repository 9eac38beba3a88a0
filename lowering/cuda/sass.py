"""The instructions that a cubin is made of, by NVIDIA's disassembler, where it is installed."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...dialect.errors import RelaxError
from .toolkit import tool

__all__ = ["Instruction", "disassemble", "loops"]

_SECONDS = 600
#: Bytes of an instruction.
_SIZE = 16


@dataclass(frozen=True)
class Instruction:
    """An instruction of a kernel.

    Attributes:
        opcode: with its modifiers, ``"LDG.E.128"``.
        operands: ``"R4,desc[UR4][R4.64]"``; a branch has where it goes to, as a byte offset from the kernel's start.
        predicate: ``"@!P0"``, or nothing.
    """

    opcode: str
    operands: str
    predicate: str = ""

    @property
    def name(self) -> str:
        """The opcode alone, ``"LDG"``."""
        return self.opcode.partition(".")[0]


@functools.lru_cache(maxsize=64)
def disassemble(cubin: bytes) -> dict[str, tuple[Instruction, ...]]:
    """The instructions of each kernel, in order, without the padding behind the last.

    Raises:
        RelaxError: no disassembler is installed, or it cannot read the image.
    """
    program = tool("nvdisasm")
    if program is None:
        raise RelaxError("expected NVIDIA's disassembler, nvdisasm (pip install nvidia-cuda-nvdisasm), got none")
    with tempfile.TemporaryDirectory(prefix="relaxir-nvdisasm-") as folder:
        image = Path(folder, "device.cubin")
        image.write_bytes(cubin)
        done = subprocess.run([program, "-json", image], capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode != 0:
        raise RelaxError(f"nvdisasm cannot read the image: {done.stderr.strip()[-500:]}")
    _, functions = json.loads(done.stdout)
    return {f["function-name"]: _without_padding([_instruction(i) for i in f["sass-instructions"]]) for f in functions}


def _instruction(found: dict[str, str]) -> Instruction:
    return Instruction(found["opcode"], found.get("operands", ""), found.get("predicate", ""))


def _without_padding(found: list[Instruction]) -> tuple[Instruction, ...]:
    """A kernel ends with a branch to itself, and NOPs up to a line."""
    while found and found[-1].name == "NOP":
        found.pop()
    last = len(found) - 1
    return tuple(found[:last] if found and _branch_target(found[last]) == last else found)


def _branch_target(instruction: Instruction) -> int | None:
    """The index of the instruction that a branch goes to; None of others."""
    target = re.search(r"(0x[0-9a-f]+)$", instruction.operands) if instruction.name == "BRA" else None
    return int(target[1], 16) // _SIZE if target else None


def loops(kernel: tuple[Instruction, ...]) -> Iterator[tuple[int, int]]:
    """The first and the last instruction of each loop, as indices: what a branch backwards goes to, and that branch."""
    for at, instruction in enumerate(kernel):
        target = _branch_target(instruction)
        if target is not None and target <= at:
            yield target, at
