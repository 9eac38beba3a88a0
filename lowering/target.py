"""What a processor can do, as data: every choice that code generation makes from the target is read here."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..dialect.errors import RelaxError

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """A CPU to generate code for.

    Attributes:
        triple: LLVM target triple.
        cpu: LLVM processor name.
        features: LLVM feature string, e.g. ``"+avx2,+fma"``.
        vector_bits: width of a vector register.
        vector_registers: how many there are.
        openmp: whether loops are shared by threads, by calls of LLVM's OpenMP runtime.
    """

    triple: str
    cpu: str
    features: str
    vector_bits: int
    vector_registers: int
    openmp: bool = False

    @staticmethod
    def parse(name: str, openmp: bool = False) -> Target:
        """``"cpu"`` is the machine this runs on, with or without an OpenMP runtime. Raises RelaxError for other names."""
        if name != "cpu":
            raise RelaxError(f"expected target 'cpu', got '{name}'")
        return replace(Target.host(), openmp=openmp)

    @staticmethod
    def host() -> Target:
        """The processor this runs on, as LLVM sees it."""
        import llvmlite.binding as llvm

        features = dict(llvm.get_host_cpu_features())
        wide = bool(features.get("avx512f"))
        bits = 512 if wide else 256 if features.get("avx2") else 128
        registers = 32 if wide or llvm.get_default_triple().startswith(("aarch64", "arm64")) else 16
        return Target(
            llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), bits, registers
        )

    def lanes(self, bits: int = 32) -> int:
        """How many elements of that width a vector register holds."""
        return self.vector_bits // bits

    @property
    def matmul_tile(self) -> tuple[int, int]:
        """Rows and columns of the f32 matmul microkernel: its accumulators and operands fit the registers.

        Measured (facts/cpu.md 2.1): 8x32 within 6 % of the AVX-512 peak from 512 to 4096; 16 registers take 6x16.
        """
        return (8, 2 * self.lanes()) if self.vector_registers >= 32 else (6, 2 * self.lanes())
