"""What an NVIDIA GPU can do, as data: every choice that device code makes from its target is read here.

Limits of an architecture are those of the CUDA C++ programming guide, table "technical specifications per compute capability";
figures of a part are those of the paper that its ``source`` names, or follow from them. Peaks assume the boost clock that the
paper's own peaks assume: a part under load may run slower.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...dialect.errors import RelaxError
from ...dialect.weight_layouts import WeightLayouts

__all__ = ["ARCHITECTURES", "Architecture", "CudaTarget", "Part"]

_KIB = 1024


@dataclass(frozen=True)
class Part:
    """A GPU that code is planned for where none can be asked.

    Attributes:
        name: as it is sold.
        sm_count: how many multiprocessors it has.
        clock: cycles per second, under boost.
        bandwidth: bytes per second of its memory.
        memory: bytes of it.
        l2_bytes: of the second-level cache.
        source: where the figures are from.
    """

    name: str
    sm_count: int
    clock: float
    bandwidth: float
    memory: int
    l2_bytes: int
    source: str


@dataclass(frozen=True)
class Architecture:
    """What all GPUs of a compute capability have in common.

    Attributes:
        name: as ptxas and LLVM call it; of ``sm_90a``, code runs on 9.0 alone.
        capability: compute capability, major and minor.
        ptx: version of PTX that code is written in, 86 for 8.6: a driver must know it.
        shared_per_block: bytes of shared memory that a block may ask for, dynamic ones with leave (``cuFuncSetAttribute``).
        shared_per_sm: bytes that the blocks of a multiprocessor have together; of each block 1 KiB is the system's.
        threads_per_sm, blocks_per_sm: how many a multiprocessor holds at once.
        f32_lanes: fused multiply-adds of f32 that a multiprocessor starts in a cycle.
        wgmma: whether a warpgroup multiplies matrices in shared memory (``wgmma``), fed by the tensor memory accelerator.
        fp8: whether tensor cores multiply 8-bit floats, and instructions convert them.
        tensor: floating-point operations per cycle and multiprocessor of tensor cores, dense, by the kind of factors; sums of
            bf16, f16, tf32 and f8 are f32, of i8 i32.
        part: a GPU of this kind.
        registers_per_sm: registers of 32 bits.
        registers_per_thread: how many a thread may have.
    """

    name: str
    capability: tuple[int, int]
    ptx: int
    shared_per_block: int
    shared_per_sm: int
    threads_per_sm: int
    blocks_per_sm: int
    f32_lanes: int
    part: Part
    tensor: Mapping[str, int] = field(hash=False)
    wgmma: bool = False
    fp8: bool = False
    registers_per_sm: int = 65536
    registers_per_thread: int = 255


_A100 = Part("A100 SXM 80GB", 108, 1.41e9, 2.039e12, 80 << 30, 40 << 20, "NVIDIA A100 datasheet, 2021; A100 whitepaper")
_A10 = Part("A10", 72, 1.695e9, 0.6e12, 24 << 30, 6 << 20, "NVIDIA A10 datasheet, 2021; GA102 whitepaper")
_ORIN = Part("Jetson AGX Orin 64GB", 16, 1.3e9, 0.2048e12, 64 << 30, 4 << 20, "Jetson AGX Orin technical brief, 2022")
_L40S = Part("L40S", 142, 2.52e9, 0.864e12, 48 << 30, 96 << 20, "NVIDIA L40S datasheet, 2023; Ada whitepaper")
_H100 = Part("H100 SXM 80GB", 132, 1.83e9, 3.35e12, 80 << 30, 50 << 20, "NVIDIA H100 whitepaper, 2022; H100 datasheet")
_B200 = Part("B200", 148, 1.85e9, 7.7e12, 180 << 30, 126 << 20, "NVIDIA DGX B200 datasheet, 2024")
_RTX5090 = Part("GeForce RTX 5090", 170, 2.407e9, 1.792e12, 32 << 30, 96 << 20, "NVIDIA RTX Blackwell whitepaper, 2025")

# Operations per cycle and multiprocessor times multiprocessors times the clock are the papers' peaks: A100 312 TFLOP/s in bf16,
# A10 125, L40S 362, H100 989, B200 2250, RTX 5090 209 with sums in f32.
_AMPERE = {"bf16": 2048, "f16": 2048, "tf32": 1024, "i8": 4096}
_SMALL_AMPERE = {"bf16": 1024, "f16": 1024, "tf32": 512, "i8": 2048}
_ADA = {**_SMALL_AMPERE, "f8": 2048}
_HOPPER = {"bf16": 4096, "f16": 4096, "tf32": 2048, "f8": 8192, "i8": 8192}
_BLACKWELL = {"bf16": 8192, "f16": 8192, "tf32": 4096, "f8": 16384, "i8": 16384}
_SMALL_BLACKWELL = {"bf16": 512, "f16": 512, "tf32": 256, "f8": 1024, "i8": 2048}

#: Architectures that code is made for, by name.
ARCHITECTURES: Mapping[str, Architecture] = {
    a.name: a
    for a in (
        Architecture("sm_80", (8, 0), 80, 163 * _KIB, 164 * _KIB, 2048, 32, 64, _A100, _AMPERE),
        Architecture("sm_86", (8, 6), 80, 99 * _KIB, 100 * _KIB, 1536, 16, 128, _A10, _SMALL_AMPERE),
        Architecture("sm_87", (8, 7), 80, 163 * _KIB, 164 * _KIB, 1536, 16, 128, _ORIN, _AMPERE),
        Architecture("sm_89", (8, 9), 84, 99 * _KIB, 100 * _KIB, 1536, 24, 128, _L40S, _ADA, fp8=True),
        Architecture("sm_90a", (9, 0), 86, 227 * _KIB, 228 * _KIB, 2048, 32, 128, _H100, _HOPPER, wgmma=True, fp8=True),
        Architecture("sm_100a", (10, 0), 86, 227 * _KIB, 228 * _KIB, 2048, 32, 128, _B200, _BLACKWELL, fp8=True),
        Architecture("sm_120a", (12, 0), 87, 99 * _KIB, 100 * _KIB, 1536, 24, 128, _RTX5090, _SMALL_BLACKWELL, fp8=True),
    )
}

_FEATURES = ("tf32", "f8")


@dataclass(frozen=True)
class CudaTarget:
    """A GPU to generate code for.

    Attributes:
        architecture: what its kind of GPU can do.
        tf32: whether products of f32 may round their factors to tf32, 10 bits of fraction; without it f32 stays f32.
        f8: whether products of 8-bit floats may be summed by tensor cores that multiply these, with some 13 bits of fraction,
            128 steps of k at a time, and these sums in f32; without it they are multiplied as f16, which loses nothing.
    """

    architecture: Architecture
    tf32: bool = False
    f8: bool = False

    @staticmethod
    def parse(name: str) -> CudaTarget:
        """The target of a name: ``cuda:`` and an architecture, then features, each after a plus: ``cuda:sm_90a+tf32``.

        Raises:
            RelaxError: the name is no such one, or the architecture or a feature is unknown.
        """
        kind, _, rest = name.partition(":")
        architecture, *features = rest.split("+")
        if kind != "cuda" or architecture not in ARCHITECTURES:
            near = difflib.get_close_matches(architecture, ARCHITECTURES, 1)
            hint = f"; did you mean 'cuda:{near[0]}'?" if near else ""
            raise RelaxError(f"expected target 'cuda:' and one of {', '.join(ARCHITECTURES)}, got '{name}'{hint}")
        for feature in features:
            if feature not in _FEATURES:
                raise RelaxError(f"expected features of {', '.join(_FEATURES)} after '+', got '{feature}' in target '{name}'")
        found = ARCHITECTURES[architecture]
        if "f8" in features and not found.fp8:
            expected = "expected an architecture whose tensor cores multiply 8-bit floats"
            raise RelaxError(f"{expected} for feature 'f8', got '{name}'")
        return CudaTarget(found, tf32="tf32" in features, f8="f8" in features)

    @property
    def name(self) -> str:
        """What :meth:`parse` makes this target of."""
        features = ("tf32" if self.tf32 else "", "f8" if self.f8 else "")
        return "+".join([f"cuda:{self.architecture.name}", *filter(None, features)])

    @property
    def has_fma(self) -> bool:
        """As :class:`relaxir.lowering.kernels.expand.instructions.Instructions` asks: ``fma.rn``."""
        return True

    @property
    def has_extremes(self) -> bool:
        """``max.NaN`` and ``min.NaN``, which also know that -0 is less than +0."""
        return True

    @property
    def has_scalef(self) -> bool:
        """None; exponents are added as integers."""
        return False

    @property
    def has_fast_doubles(self) -> bool:
        """No: of most GPUs f64 takes 32 or 64 times as long as f32."""
        return False

    @property
    def rounds_to_integers(self) -> bool:
        """LLVM has no ``lrint`` for PTX; rounding and the conversion behind it are one instruction each."""
        return False

    @property
    def has_f16(self) -> bool:
        """``cvt.rn.f16.f32`` and back."""
        return True

    @property
    def has_bf16(self) -> bool:
        """``cvt.rn.bf16.f32``, and back by a shift or ``cvt``, whatever LLVM finds."""
        return True

    @property
    def weight_layouts(self) -> WeightLayouts:
        """How kernels want weights in memory: column by column, steps of k side by side; tiles change on their way."""
        return WeightLayouts(columns=1, int8_unsigned=False, int8_groups=False, panels=False)

    def lanes(self, bits: int = 32) -> int:
        """One: a thread computes with scalars, whatever their width."""
        del bits
        return 1
