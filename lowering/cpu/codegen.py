"""LLVM IR text to object code: optimised and assembled for a target."""

from __future__ import annotations

import re

import llvmlite.binding as llvm

from ...dialect.errors import RelaxError
from ..target import Target

__all__ = ["assembly", "object_code"]

# LLVM 22 makes one instruction of a truncation and a masked store on AVX-512, and forgets the mask: it writes whole vectors
# (`vpmovdw`). An empty assembler text between the two, which costs nothing, keeps them apart.
_NARROW_STORE = re.compile(r"^(\s*)(call void @llvm\.masked\.store\.\S+\((<(\d+) x i(8|16)>)) (%[\w.]+),", re.M)

# A call of BERT-base, batch 1, sequence 128 (medians of 7 alternating rounds, quiet machine): 380 to 780 ms without IR passes,
# 215 ms with O1 and with O2; O1 costs 1.4 s of compile time. The code generator's level does not matter from 1 on (0: 2.2 s).
_SPEED_LEVEL, _CODEGEN_LEVEL = 1, 1


def object_code(text: str, target: Target) -> bytes:
    """Optimised, position-independent object code. Raises RelaxError when LLVM refuses the text or the target."""
    module, machine = _optimised(text, target)
    return machine.emit_object(module)


def assembly(text: str, target: Target) -> str:
    """The same code to read."""
    module, machine = _optimised(text, target)
    return machine.emit_assembly(module)


def _optimised(text: str, target: Target) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        module = llvm.parse_assembly(_stores_apart(text) if target.has("avx512f") else text)
        machine = llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=_CODEGEN_LEVEL, reloc="pic", codemodel="default"
        )
    except RuntimeError as error:
        raise RelaxError(f"LLVM cannot compile for {target.triple}: {error}") from None
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=_SPEED_LEVEL)
    # Kernels are explicit vector code already.
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    # Kernels take descriptors of memory, of which they read pointers: with these alone, 439 calls (32 layers of Llama)
    # go through O1 in 0.50 instead of 0.80 s.
    early = llvm.create_new_module_pass_manager()
    early.add_ipsccp_pass()
    early.add_dead_arg_elimination_pass()
    early.run(module, builder)
    # Of O1, what it does with each function; the rest is for what these modules lack, inlining and vectorizing: ResNet-50
    # takes 1.7 instead of 2.5 s here, and 2.8 instead of 3.4 s in the code generator; its call, BERT's and attention's take as
    # long as with all of O1. Combining instructions alone takes 0.18 instead of 0.88 s (Zen 4), a norm of rows then 1.01.
    each = builder.getFunctionPassManager()
    each.add_instruction_combine_pass()
    for function in module.functions:
        if not function.is_declaration:
            each.run(function, builder)
    return module, machine


def _stores_apart(text: str) -> str:
    """The text with masked stores of narrow integers that LLVM cannot merge with what truncates these."""

    def apart(match: re.Match[str]) -> str:
        indent, call, kind, lanes, width, value = match.groups()
        name, bits = f"%apart.{match.start()}", int(lanes) * int(width)
        if bits >= 128:
            return f'{indent}{name} = call {kind} asm "", "=v,0"({kind} {value})\n{indent}{call} {name},'
        # No vector register holds so few bits for assembler.
        lines = (
            f"{name}.in = bitcast {kind} {value} to i{bits}",
            f'{name}.out = call i{bits} asm "", "=r,0"(i{bits} {name}.in)',
            f"{name} = bitcast i{bits} {name}.out to {kind}",
            f"{call} {name},",
        )
        return "\n".join(indent + line for line in lines)

    return _NARROW_STORE.sub(apart, text)
