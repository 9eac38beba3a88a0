"""What a processor can do, as data: every choice that code generation makes from the target is read here."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..dialect.errors import RelaxError
from ..dialect.weight_layouts import WeightLayouts
from .tile_permission import TILE_FEATURES, may_use_tiles

__all__ = ["TARGETS", "Dot", "Target"]


@dataclass(frozen=True)
class Target:
    """A CPU to generate code for.

    Attributes:
        triple: LLVM target triple.
        cpu: LLVM processor name.
        features: LLVM feature string, e.g. ``"+avx2,+fma"``.
        vector_bits: width of a vector register.
        vector_registers: how many there are.
        tile_rows: rows of the matmul microkernel.
        tile_vectors: vectors in each of them.
        openmp: whether loops are shared by threads, by calls of LLVM's OpenMP runtime.
    """

    triple: str
    cpu: str
    features: str
    vector_bits: int
    vector_registers: int
    tile_rows: int = 6
    tile_vectors: int = 2
    openmp: bool = False

    @staticmethod
    def parse(name: str, openmp: bool = False) -> Target:
        """The target of a name, with or without an OpenMP runtime.

        ``"cpu"`` is the machine this runs on; ``"cpu:<processor>"`` is one of ``TARGETS``, for this machine's system where the
        instruction set is this machine's. Raises RelaxError for other names.
        """
        if name == "cpu":
            return replace(Target.host(), openmp=openmp)
        kind, _, processor = name.partition(":")
        if kind != "cpu":
            raise RelaxError(f"expected target 'cpu', got '{name}'")
        if processor not in TARGETS:
            raise RelaxError(f"expected target 'cpu', or 'cpu:' and one of {', '.join(TARGETS)}, got '{name}'")
        return TARGETS[processor].target(processor, openmp)

    @staticmethod
    @functools.cache
    def host() -> Target:
        """The processor this runs on, as LLVM sees it: asked once, as 150 features take 0.5 ms.

        Of tile registers the process is given the use; where Linux refuses that, they count as not there.
        """
        import llvmlite.binding as llvm

        triple, features = llvm.get_process_triple(), llvm.get_host_cpu_features()
        if any(features.get(name) for name in TILE_FEATURES) and not may_use_tiles():
            features.update(dict.fromkeys(TILE_FEATURES & features.keys(), False))
        has = {name for name, there in features.items() if there}
        registers = next(r for r in _REGISTERS if r.architecture == _architecture(triple) and has.issuperset(r.needs))
        return registers.target(triple, llvm.get_host_cpu_name(), features.flatten())

    @property
    def instruction_set(self) -> str:
        """``"avx512"``, ``"avx2"``, ``"sse"`` or ``"neon"``, as its vector registers are: tables of constants have these."""
        x86 = {512: "avx512", 256: "avx2"}.get(self.vector_bits, "sse")
        return "neon" if _architecture(self.triple) == "aarch64" else x86

    def has(self, *features: str) -> bool:
        """Whether the processor has any of the features."""
        return not {f"+{f}" for f in features}.isdisjoint(self.features.split(","))

    @property
    def has_fma(self) -> bool:
        """Whether a multiplication and an addition are one instruction; where not, LLVM would call ``fmaf`` for each lane."""
        return _architecture(self.triple) == "aarch64" or self.has("fma")

    @property
    def has_extremes(self) -> bool:
        """Whether one instruction takes the larger of two numbers, and NaN where one of them is: LLVM uses none of aarch64."""
        return False

    @property
    def has_f16(self) -> bool:
        """Whether f16 is converted by instructions; where not, LLVM would call functions that some C runtimes lack."""
        return _architecture(self.triple) == "aarch64" or self.has("f16c")

    @property
    def has_bf16(self) -> bool:
        """The same for bf16."""
        return self.has("avx512bf16", "avxneconvert", "bf16")

    @property
    def has_scalef(self) -> bool:
        """Whether ``vscalefps`` multiplies f32 by powers of two, in vectors of any width."""
        return self.has("avx512vl")

    @property
    def has_fast_doubles(self) -> bool:
        """Whether f64 takes twice as long as f32: its vectors have half as many."""
        return True

    @property
    def rounds_to_integers(self) -> bool:
        """Whether ``llvm.lrint`` is an instruction, such as ``cvtps2dq``; on aarch64 it is two, as rounding apart would be."""
        return True

    @property
    def bf16_dot(self) -> Dot | None:
        """The instruction for products of bf16, if there is one."""
        return self._first(_BF16_DOTS)

    @property
    def int8_dot(self) -> Dot | None:
        """The instruction for products of bytes, or of bytes that are widened to i16, if there is one."""
        return self._first(_INT8_DOTS)

    @property
    def quad_dots(self) -> dict[int, Dot]:
        """The instructions for products of four neighbouring bytes by the bytes of their vectors; none where it has pairs."""
        dot = self.int8_dot
        if dot is None or dot.rows != 4:
            return {}
        name, _, bits = dot.name.rpartition(".")
        if not bits.isdecimal():
            return {self.vector_bits // 8: dot}
        return {b // 8: replace(dot, name=f"{name}.{b}") for b in (512, 256, 128) if b <= self.vector_bits}

    def multiplies_tiles(self, instruction: str) -> bool:
        """Whether tile registers have that instruction, by LLVM's name."""
        kind = "amx-bf16" if instruction.endswith("bf16ps") else "amx-int8"
        return self.vector_bits == 512 and self.has("amx-tile") and self.has(kind)

    @property
    def masks_bytes(self) -> bool:
        """Whether one instruction reads or writes some bytes of a vector; where not, LLVM takes a branch for each."""
        return self.has("avx512bw")

    def _first(self, dots: Sequence[_DotOf]) -> Dot | None:
        architecture = _architecture(self.triple)
        fitting = (d for d in dots if (d.architecture, d.vector_bits) == (architecture, self.vector_bits))
        return next((d.dot for d in fitting if not d.feature or self.has(d.feature)), None)

    @property
    def weight_layouts(self) -> WeightLayouts:
        """How the kernels want weights of products in memory."""
        bf16, int8 = self.bf16_dot or PLAIN, self.int8_dot or PLAIN_PAIRS
        exact = 0 if int8.rows < _EXACT_ROWS else _EXACT_COLUMN if self._has_tiles else _EXACT_GROUP
        return WeightLayouts(self.matmul_tile[1], bf16.rows, int8.rows, int8.unsigned, int8_exact=exact)

    @property
    def _has_tiles(self) -> bool:
        return self.multiplies_tiles("llvm.x86.tdpbsud")

    def lanes(self, bits: int = 32) -> int:
        """How many elements of that width a vector register holds."""
        return self.vector_bits // bits

    @property
    def matmul_tile(self) -> tuple[int, int]:
        """Rows and columns of the f32 matmul microkernel: its accumulators and operands fit the registers."""
        return self.tile_rows, self.tile_vectors * self.lanes()


def _architecture(triple: str) -> str:
    """The instruction set of a triple, ``"aarch64"`` by either of its names."""
    name = triple.partition("-")[0]
    return "aarch64" if name == "arm64" else name


@dataclass(frozen=True)
class Dot:
    """An instruction that multiplies neighbours and sums their products, in each lane of 32 bits.

    Attributes:
        name: LLVM's name of it.
        rows: how many neighbours a lane has: rows of a weight that are packed side by side.
        unsigned: whether the weight's integers are its unsigned factor, and zero points of signed ones become 128 more.
        adds: whether it adds to a sum that it takes, as its first operand.
    """

    name: str
    rows: int
    unsigned: bool = False
    adds: bool = True


@dataclass(frozen=True)
class _DotOf:
    """The instruction of processors with vectors of so many bits that have a feature; all have, where it is empty."""

    architecture: str
    vector_bits: int
    feature: str
    dot: Dot


# With so many rows of a weight side by side an instruction multiplies four bytes of each lane, four times what one of f32 does.
_EXACT_ROWS = 4
# Rows with one scale from which on three products of bytes take less than one of floats. 64 rows of 2048 x 2048, Zen 5, one
# thread: int4 and int8 in groups of 32 0.91 of the time of floats, with zero points 0.99, of 128 0.80, bytes of one scale 0.75.
_EXACT_GROUP = 32
# Tile registers sum bytes of one scale alone; what has several is split in bf16 for them.
_EXACT_COLUMN = 1 << 16
#: Weights that no such instruction reads: each row by itself; integers in pairs, as those that are widened.
PLAIN, PLAIN_PAIRS = Dot("", 1), Dot("", 2, adds=False)
# The first that a processor has is taken. Every x86-64 multiplies pairs of i16.
_BF16_DOTS = (
    _DotOf("x86_64", 512, "avx512bf16", Dot("llvm.x86.avx512bf16.dpbf16ps.512", 2)),
    _DotOf("aarch64", 128, "bf16", Dot("llvm.aarch64.neon.bfdot.v4f32.v8bf16", 2)),
)
_INT8_DOTS = (
    _DotOf("x86_64", 512, "avx512vnni", Dot("llvm.x86.avx512.vpdpbusd.512", 4, unsigned=True)),
    _DotOf("x86_64", 256, "avxvnni", Dot("llvm.x86.avx512.vpdpbusd.256", 4, unsigned=True)),
    _DotOf("x86_64", 512, "", Dot("llvm.x86.avx512.pmaddw.d.512", 2, adds=False)),
    _DotOf("x86_64", 256, "", Dot("llvm.x86.avx2.pmadd.wd", 2, adds=False)),
    _DotOf("x86_64", 128, "", Dot("llvm.x86.sse2.pmadd.wd", 2, adds=False)),
    _DotOf("aarch64", 128, "dotprod", Dot("llvm.aarch64.neon.sdot.v4i32.v16i8", 4)),
)


@dataclass(frozen=True)
class _Registers:
    """Vector registers that processors have in common, and the microkernel that fills them.

    Attributes:
        architecture: the instruction set they belong to.
        needs: the features that say a processor has them.
        bits, count: their width and number.
        rows, vectors: the microkernel: ``rows * vectors`` accumulators, ``vectors`` of the right operand, a row's factor.
    """

    architecture: str
    needs: tuple[str, ...]
    bits: int
    count: int
    rows: int
    vectors: int

    def target(self, triple: str, cpu: str, features: str, openmp: bool = False) -> Target:
        return Target(triple, cpu, features, self.bits, self.count, self.rows, self.vectors, openmp)


# Matrices of 512 to 4096 rows and columns, one core of Zen 5: AVX-512 with 8 rows of 2 vectors is within 6 % of the peak. NEON
# takes 6 rows of 4 vectors: 10 loads for 24 multiply-adds, where 8 rows of 2 need 10 for 16; it was not measured.
_AVX512 = _Registers("x86_64", ("avx512f", "avx512vl", "avx512bw", "avx512dq"), 512, 32, 8, 2)
_AVX2 = _Registers("x86_64", ("avx2",), 256, 16, 6, 2)
_SSE = _Registers("x86_64", (), 128, 16, 6, 2)
_NEON = _Registers("aarch64", (), 128, 32, 6, 4)
# The host has the first that it meets the needs of.
_REGISTERS = (_AVX512, _AVX2, _SSE, _NEON)

_V2 = "+cx16,+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2"
_V3 = f"{_V2},+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"
_V4 = f"{_V3},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"
_ZEN4 = f"{_V4},+avx512bf16,+avx512bitalg,+avx512ifma,+avx512vbmi,+avx512vbmi2,+avx512vnni,+avx512vpopcntdq,+gfni"


@dataclass(frozen=True)
class _Processor:
    """A processor by name: its registers, LLVM's features, and the triple it has when this machine's is of another kind."""

    registers: _Registers
    features: str
    triple: str

    def target(self, cpu: str, openmp: bool) -> Target:
        import llvmlite.binding as llvm

        here: str = llvm.get_process_triple()
        same = _architecture(here) == self.registers.architecture
        return self.registers.target(here if same else self.triple, _LLVM_NAMES.get(cpu, cpu), self.features, openmp)


_X86_LINUX, _ARM_LINUX, _ARM_MACOS = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "arm64-apple-macosx11.0.0"

#: Processors that code can be generated for on any machine.
TARGETS = {
    "x86-64": _Processor(_SSE, "", _X86_LINUX),
    "x86-64-v2": _Processor(_SSE, _V2, _X86_LINUX),
    "x86-64-v3": _Processor(_AVX2, _V3, _X86_LINUX),
    "x86-64-v4": _Processor(_AVX512, _V4, _X86_LINUX),
    "znver3": _Processor(_AVX2, f"{_V3},+vaes,+vpclmulqdq", _X86_LINUX),
    "znver4": _Processor(_AVX512, _ZEN4, _X86_LINUX),
    "znver5": _Processor(_AVX512, f"{_ZEN4},+avxvnni", _X86_LINUX),
    "sapphirerapids": _Processor(_AVX512, f"{_ZEN4},+avxvnni,+avx512fp16,+amx-tile,+amx-bf16,+amx-int8", _X86_LINUX),
    "aarch64": _Processor(_NEON, "+neon", _ARM_LINUX),
    "neoverse-n1": _Processor(_NEON, "+neon,+fullfp16,+dotprod", _ARM_LINUX),
    "neoverse-v1": _Processor(_NEON, "+neon,+fullfp16,+dotprod,+bf16,+i8mm", _ARM_LINUX),
    "apple-m1": _Processor(_NEON, "+neon,+fullfp16,+dotprod", _ARM_MACOS),
}
_LLVM_NAMES = {"aarch64": "generic"}
