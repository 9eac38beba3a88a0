"""LLVM dialect to LLVM IR text, in the syntax of llvmlite's LLVM, which is older than that of the bindings.

Before::

    %1 = fmul float %0, f0x3DCCCCCD
    %2 = select i1 %c, half +inf, half 1.000980e+00

after::

    %1 = fmul float %0, 0x3FB99999A0000000
    %2 = select i1 %c, half 0xH7C00, half 0xH3C01
"""

from __future__ import annotations

import re
import struct

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from ..dialect.bindings import dialect_module, ir
from ..dialect.errors import RelaxError

__all__ = ["bf16_as_integers", "check_translatable", "llvm_ir", "older_syntax"]

# llvmlite's LLVM 22 does not read the float literals of the bindings' LLVM (`f0x3F800000`, `+inf`, `-qnan`, rounded decimals).
_LITERAL = r"(?:f0x[0-9A-Fa-f]+|[-+]?(?:inf|qnan|nan)\b(?!\()|[-+]s?nan\(0x[0-9A-Fa-f]+\)|[-+]?\d+\.\d+(?:e[-+]\d+)?)"
_SUSPECT_LINE = re.compile(rf"^.* {_LITERAL}(?=[,\s)\]>]|$).*$", re.M)
_NAN = re.compile(r"([-+])(s?)nan\(0x([0-9A-Fa-f]+)\)")
_TYPED = re.compile(rf"\b(float|double|half|bfloat) ({_LITERAL})")
_INSTRUCTION = re.compile(r"\b(?:fadd|fsub|fmul|fdiv|frem|fcmp|fneg|phi|select)\b[^<\n]*?\b(float|double|half|bfloat)\b")
_BARE = re.compile(rf"(?<=[ ,\[])({_LITERAL})(?=[,\s\]]|$)")
# Bits of a type, and of its fraction.
_LAYOUT = {"half": (16, 10), "bfloat": (16, 7), "float": (32, 23), "double": (64, 52)}
# A type, a literal of it; names and texts, which stay, but for intrinsics' names, which have types in them.
_BF16 = re.compile(r"\"[^\"]*\"|@llvm\.[\w.]+|[@%][\w.$-]+|\bbfloat\b|\b0xR([0-9A-Fa-f]{4})\b")
_ARITHMETIC = re.compile(r"= (?:f(?:add|sub|mul|div|rem|neg|cmp|ptrunc|pext|pto[su]i)|[su]itofp) [^\n]*\bbfloat\b")
_NEWER_ATTRIBUTES = re.compile(r"nocreateundeforpoison ?")


def llvm_ir(module: ir.Operation) -> str:
    """The LLVM IR text of a module, or of a ``gpu.module``, in the LLVM dialect."""
    return older_syntax(dialect_module("llvm").translate_module_to_llvmir(module))


def check_translatable(module: ir.Operation, kinds: tuple[str, ...], to: str) -> None:
    """Raises RelaxError at an op whose name begins with none of the kinds: translating it would crash the process.

    Args:
        module: what is about to be translated.
        kinds: dialects with a dot, or names of operations.
        to: what cannot be made of it, for the message.
    """

    def visit(op: ir.Operation) -> ir.WalkResult:
        if not op.name.startswith(kinds):
            left.append((op.name, str(op.location)))
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    left: list[tuple[str, str]] = []
    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    for name, location in left:
        raise RelaxError(f"'{name}' op cannot be lowered to {to}", location)


def older_syntax(text: str) -> str:
    """LLVM IR as the bindings print it, so that llvmlite reads it: literals of floats, and attributes that it does not know."""
    return _NEWER_ATTRIBUTES.sub("", _SUSPECT_LINE.sub(lambda m: _older_literals(m[0]), text))


def bf16_as_integers(text: str) -> str:
    """LLVM IR that moves bf16 as one that moves integers of 16 bits; one that computes in it stays.

    Where a processor has no instruction for bf16, LLVM keeps one that another block reads in f32, and rounds it again by
    ``__truncsfbf2``, a function that many C runtimes lack.
    """
    if "bfloat" not in text or _ARITHMETIC.search(text):
        return text
    return _BF16.sub(_as_integer, text)


def _as_integer(match: re.Match[str]) -> str:
    if match[1] is not None:
        return str((int(match[1], 16) + 0x8000) % 0x10000 - 0x8000)
    if match[0].startswith("@llvm."):
        return match[0].replace("bf16", "i16")
    return "i16" if match[0] == "bfloat" else match[0]


def _older_literals(line: str) -> str:
    line = _TYPED.sub(lambda m: f"{m[1]} {_literal(m[1], m[2])}", line)
    instruction = _INSTRUCTION.search(line)
    if instruction is None:
        return line
    return _BARE.sub(lambda m: _literal(instruction[1], m[1]), line)


def _literal(type_: str, text: str) -> str:
    """A literal as LLVM 22 writes it: doubles and floats as 64 bits of a double, half as 0xH, bfloat as 0xR."""
    nan = _NAN.fullmatch(text)
    bits = _nan_bits(type_, nan) if nan else text[3:] if text.startswith("f0x") else None
    if type_ == "half":
        return f"0xH{bits or _bits(text, np.float16, 'H')}"
    if type_ == "bfloat":
        return f"0xR{bits or _bits(text, ml_dtypes.bfloat16, 'H')}"
    if type_ == "float":
        return f"0x{_as_double(int(bits, 16)) if bits else _bits(repr(float(np.float32(_number(text)))), np.float64, 'Q')}"
    return f"0x{bits or _bits(text, np.float64, 'Q')}"


def _nan_bits(type_: str, nan: re.Match[str]) -> str:
    """The hexadecimal bits of a NaN whose payload, without the bit that makes it quiet, is written out."""
    width, fraction = _LAYOUT[type_]
    quiet = 0 if nan[2] else 1 << (fraction - 1)
    exponent = ((1 << (width - 1 - fraction)) - 1) << fraction
    sign = int(nan[1] == "-") << (width - 1)
    return f"{sign | exponent | quiet | int(nan[3], 16):0{width // 4}X}"


def _as_double(bits: int) -> str:
    """The hexadecimal bits of the double that has the value of a float; a NaN keeps its payload, and whether it is quiet."""
    if bits & 0x7FFFFFFF > 0x7F800000:
        return f"{(bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29:016X}"
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    return _bits(repr(value), np.float64, "Q")


def _number(text: str) -> float:
    return float(text.replace("qnan", "nan"))


def _bits(text: str, dtype: DTypeLike, format_: str) -> str:
    """The hexadecimal bits of a number in a float type."""
    (value,) = struct.unpack(f"<{format_}", np.asarray(_number(text), dtype).tobytes())
    return f"{value:0{2 * struct.calcsize(format_)}X}"
