"""What NVIDIA's assembler makes of device code: resources and instructions of each kernel, and what tests say of them."""

from collections.abc import Iterable
from dataclasses import dataclass

from relaxir.lowering.cuda.assemble import Resources, assemble
from relaxir.lowering.cuda.cuda_target import CudaTarget
from relaxir.lowering.cuda.sass import Instruction, disassemble
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
