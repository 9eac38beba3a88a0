"""What NVIDIA's assembler makes of device code: resources and instructions of each kernel, and what tests say of them."""

from __future__ import annotations

import json
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from relaxir.lowering.cuda import sass
from relaxir.lowering.cuda.assemble import Resources, assemble
from relaxir.lowering.cuda.cuda_target import CudaTarget
from relaxir.lowering.cuda.sass import Instruction, disassemble
from relaxir.lowering.cuda.toolkit import tool
from support.kept_kernels import kept


@dataclass(frozen=True)
class DeviceKernel:
    """A kernel as machine code."""

    name: str
    resources: Resources
    instructions: tuple[Instruction, ...]

    def has(self, opcode: str) -> bool:
        """Whether an instruction begins with this opcode and modifiers: ``"LDG.E.128.CONSTANT"`` with ``"LDG.E.128"``."""
        return any(i.opcode == opcode or i.opcode.startswith(f"{opcode}.") for i in self.instructions)

    def check(self, *, has: Iterable[str] = (), has_not: Iterable[str] = ()) -> None:
        """Holds it to what fast code is: nothing in local memory, no warnings, these instructions and none of those."""
        assert not self.resources.spills, f"{self.name} spills: {self.resources}"
        assert self.resources.stack == 0, f"{self.name} has local memory: {self.resources}"
        assert not self.resources.warnings, f"{self.name}: {self.resources.warnings}"
        missing = [opcode for opcode in has if not self.has(opcode)]
        unwanted = [opcode for opcode in ("LDL", "STL", *has_not) if self.has(opcode)]
        assert not missing, f"{self.name} has no {missing}, but {sorted({i.opcode for i in self.instructions})}"
        assert not unwanted, f"{self.name} has {unwanted}"


def device_kernels(ptx: str, target: str) -> dict[str, DeviceKernel]:
    """The kernels of a PTX text by name, assembled and taken apart for ``cuda:sm_90a`` or the like."""
    with kept():
        assembled = assemble(ptx, CudaTarget.parse(target))
    instructions = disassemble(assembled.cubin)
    return {name: DeviceKernel(name, r, instructions[name]) for name, r in assembled.kernels.items()}


def device_kernels_together(texts: Sequence[str], target: str) -> list[dict[str, DeviceKernel]]:
    """The same of several PTX texts, taken apart in one run of the disassembler, which takes 0.3 s to start.

    It reads instructions alone, so that operands have no names of functions that are called.
    """
    with kept():
        assembled = [assemble(text, CudaTarget.parse(target)) for text in texts]
    sections = [dict(_code(each.cubin)) for each in assembled]
    found, at = _disassembled(b"".join(code for each in sections for code in each.values()), target), 0
    kernels = list[dict[str, DeviceKernel]]()
    for each, codes in zip(assembled, sections, strict=True):
        parts = dict[str, tuple[Instruction, ...]]()
        for name, code in codes.items():
            end = at + len(code) // sass._SIZE
            parts[name], at = _without_padding(found[at:end], at), end
        kernels.append({name: DeviceKernel(name, r, parts[name]) for name, r in each.kernels.items()})
    assert at == len(found)
    return kernels


def _without_padding(found: list[Instruction], start: int) -> tuple[Instruction, ...]:
    """A kernel ends with a branch to itself, and NOPs up to a line; ``start`` is its place among all instructions."""
    while found and found[-1].name == "NOP":
        found.pop()
    last = len(found) - 1
    return tuple(found[:last] if found and sass._branch_target(found[last]) == start + last else found)


def _code(cubin: bytes) -> Iterator[tuple[str, bytes]]:
    """The sections of an ELF file that have kernels' instructions, by the kernel."""
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, start + i * size) for i in range(count)]
    for name, _, _, _, offset, length in headers:
        at = headers[names][4] + name
        text = cubin[at : cubin.index(b"\0", at)].decode()
        if text.startswith(".text."):
            yield text.removeprefix(".text."), cubin[offset : offset + length]


def _disassembled(code: bytes, target: str) -> list[Instruction]:
    program, processor = tool("nvdisasm"), CudaTarget.parse(target).architecture.name.replace("sm_", "SM")
    with tempfile.NamedTemporaryFile() as image:
        image.write(code)
        image.flush()
        command = [str(program), "-json", "-b", processor, image.name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    _, (found,) = json.loads(done.stdout)
    return [sass._instruction(i) for i in found["sass-instructions"]]
