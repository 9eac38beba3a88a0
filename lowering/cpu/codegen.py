"""LLVM dialect to object code: LLVM IR text, made readable for llvmlite's LLVM, optimised and assembled for a target."""

from __future__ import annotations

import re
import struct

import llvmlite.binding as llvm

from ...dialect.bindings import dialect_module, ir
from ...dialect.errors import RelaxError
from ..target import Target

__all__ = ["llvm_ir", "object_code"]

# The bindings' LLVM prints float literals (`f0x3F800000`, `+inf`, `-qnan`) that llvmlite's LLVM 22 does not read.
_LITERAL = r"(?:f0x[0-9A-Fa-f]+|[-+]?(?:inf|qnan|nan)\b)"
_TYPED = re.compile(rf"\b(float|double|half|bfloat) ({_LITERAL})")
_INSTRUCTION = re.compile(r"\b(?:fadd|fsub|fmul|fdiv|frem|fcmp|fneg|phi|select)\b[^<\n]*?\b(float|double|half|bfloat)\b")
_BARE = re.compile(rf"(?<=[ ,\[])({_LITERAL})(?=[,\s\]]|$)")
_NEWER_ATTRIBUTES = re.compile(r"\bnocreateundeforpoison ?")

# Explicit vectors leave little to LLVM: O0 to O3 run equally fast (facts/cpu.md 2.1), so the cheapest level that cleans up.
_SPEED_LEVEL = 1


def llvm_ir(module: ir.Operation) -> str:
    """The LLVM IR text of a module in the LLVM dialect, in the syntax of llvmlite's LLVM."""
    text = dialect_module("llvm").translate_module_to_llvmir(module)
    if "f0x" in text or "inf" in text or "nan" in text:
        text = "\n".join(_older_literals(line) for line in text.split("\n"))
    return _NEWER_ATTRIBUTES.sub("", text)


def object_code(text: str, target: Target) -> bytes:
    """Optimised, position-independent object code. Raises RelaxError when LLVM refuses the text or the target."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        module = llvm.parse_assembly(text)
        machine = llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="default"
        )
    except RuntimeError as error:
        raise RelaxError(f"LLVM cannot compile for {target.triple}: {error}") from None
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=_SPEED_LEVEL)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


def _older_literals(line: str) -> str:
    if "f0x" not in line and "inf" not in line and "nan" not in line:
        return line
    line = _TYPED.sub(lambda m: f"{m[1]} {_literal(m[1], m[2])}", line)
    instruction = _INSTRUCTION.search(line)
    if instruction is None:
        return line
    return _BARE.sub(lambda m: _literal(instruction[1], m[1]), line)


def _literal(type_: str, text: str) -> str:
    """A literal as LLVM 22 writes it: doubles and floats as 64 bits of a double, half as 0xH, bfloat as 0xR."""
    if text.startswith("f0x"):
        digits = text[3:]
        if type_ == "float":
            value = struct.unpack("<f", struct.pack("<I", int(digits, 16)))[0]
            digits = f"{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
        return {"half": "0xH", "bfloat": "0xR"}.get(type_, "0x") + digits
    negative, infinite = text.startswith("-"), "inf" in text
    if type_ in ("half", "bfloat"):
        bits = {("half", True): 0x7C00, ("half", False): 0x7E00, ("bfloat", True): 0x7F80}.get((type_, infinite), 0x7FC0)
        return f"{'0xH' if type_ == 'half' else '0xR'}{bits | (0x8000 if negative else 0):04X}"
    bits = 0x7FF0000000000000 if infinite else 0x7FF8000000000000
    return f"0x{bits | (1 << 63 if negative else 0):016X}"
