"""A program: LLVM IR texts in, PTX out, one JSON object per line each way, until its input ends.

LLVM ends the process when it cannot select an instruction, so this is one of its own; it imports nothing but llvmlite, and is
run by its path. ``{"text", "cpu", "features", "libdevice", "only"}`` gives ``{"ptx"}`` or ``{"error"}``; ``only`` is the kernel
to compile of several, or null for all.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import llvmlite.binding as llvm

TRIPLE = "nvptx64-nvidia-cuda"

# Kernels are small, and their registers count: all that LLVM has.
_LEVEL = 3


def compile_text(text: str, cpu: str, features: str, libdevice: str | None, only: str | None = None) -> str:
    """PTX of a text. Raises RuntimeError when LLVM refuses the text or the target."""
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=cpu, features=features, opt=_LEVEL)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    module.verify()
    if libdevice is not None:
        _link(module, libdevice)
    for function in module.functions:
        if only is not None and not function.is_declaration and function.name != only:
            function.linkage = "internal"  # what nobody calls is dropped
    options = llvm.create_pipeline_tuning_options(speed_level=_LEVEL)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_assembly(module)


def _link(module: llvm.ModuleRef, libdevice: str) -> None:
    """Adds the functions of the library that the module calls; none of them is to be seen from outside."""
    with open(libdevice, "rb") as file:
        library = llvm.parse_bitcode(file.read())
    library.triple, library.data_layout = module.triple, module.data_layout
    module.link_in(library)
    for function in module.functions:
        if not function.is_declaration and function.name.startswith("__nv_"):
            function.linkage = "internal"


def main() -> None:
    """Answers requests."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        try:
            answer = {"ptx": compile_text(**request)}
        except RuntimeError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
