"""Tensor-core instructions of a warp, ``mma.sync``: a table.

All of them multiply 16 rows by 8 columns over 32 bytes of each, and a thread holds the same bytes of its fragments in all: what
differs is how many elements these are.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["INSTRUCTIONS", "STEP_BYTES", "TensorInstruction"]

#: Bytes of a row, and of a column, that one instruction multiplies.
STEP_BYTES = 32


@dataclass(frozen=True)
class TensorInstruction:
    """One instruction.

    Attributes:
        name: what factors it takes: the name in a plan.
        element: MLIR's name of the type of a factor in memory.
        bits: of a factor.
        sums: MLIR's name of the type of a sum.
        intrinsic: LLVM's name; nothing, for what is no instruction of tensor cores.
        fragment: MLIR's type of a register of a factor.
        architecture: the first compute capability that has it, as in ``sm_80``.
    """

    name: str
    element: str
    bits: int
    sums: str
    intrinsic: str
    fragment: str = "i32"
    architecture: int = 80

    @property
    def bytes(self) -> int:
        """Of a factor."""
        return self.bits // 8

    @property
    def is_fused(self) -> bool:
        """Whether products are fused multiply-adds, of whatever factors are as f32."""
        return not self.intrinsic

    @property
    def is_float8(self) -> bool:
        """Whether sums have fewer bits than f32, and are added up in f32 after a stage."""
        return self.bits == 8 and self.sums == "f32"

    @property
    def peak(self) -> str:
        """The kind of its products in :attr:`....cuda_target.Architecture.tensor`."""
        return "i8" if self.sums == "i32" else "f8" if self.is_float8 else self.name

    @property
    def depth(self) -> int:
        """Products that are summed into each sum."""
        return STEP_BYTES // self.bytes


#: By name. A row of ``tf32`` reads f32 and ignores the 13 last bits of what it reads; ``fma`` is none of tensor cores, but
#: as many fused multiply-adds, which round nothing but sums.
INSTRUCTIONS = {
    i.name: i
    for i in (
        TensorInstruction("bf16", "bf16", 16, "f32", "llvm.nvvm.mma.m16n8k16.row.col.bf16"),
        TensorInstruction("f16", "f16", 16, "f32", "llvm.nvvm.mma.m16n8k16.row.col.f32.f32", "vector<2xf16>"),
        TensorInstruction("tf32", "f32", 32, "f32", "llvm.nvvm.mma.m16n8k8.row.col.tf32"),
        TensorInstruction("fma", "f32", 32, "f32", ""),
        TensorInstruction("s8", "i8", 8, "i32", "llvm.nvvm.mma.m16n8k32.row.col.s8"),
        TensorInstruction("u8", "i8", 8, "i32", "llvm.nvvm.mma.m16n8k32.row.col.u8"),
        TensorInstruction("e4m3", "i8", 8, "f32", "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32", architecture=89),
        TensorInstruction("e5m2", "i8", 8, "f32", "llvm.nvvm.mma.m16n8k32.row.col.f32.e5m2.e5m2.f32", architecture=89),
    )
}
