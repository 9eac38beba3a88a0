"""A program: LLVM IR texts in, device code out, one JSON object per line each way, until its input ends.

LLVM ends the process when it cannot select an instruction, so this is one of its own; it imports nothing but llvmlite, and is
run by its path. A request has the fields of :func:`compile_text`; the answer is ``{"code"}``, in base 64, or ``{"error"}``.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

import llvmlite.binding as llvm

# Kernels are small, and their registers count: all that LLVM has.
_LEVEL = 3


def compile_text(
    text: str, triple: str, cpu: str, features: str, library: str | None, only: str | None, image: bool
) -> bytes:  # fmt: skip
    """Device code of a text.

    Args:
        text: LLVM IR.
        triple, cpu, features: what it is for, as LLVM calls it.
        library: a file of bitcode with functions that the text calls.
        only: the kernel to compile of several; None for all.
        image: whether an object file is wanted, not assembly (for NVIDIA's GPUs that is PTX).

    Raises:
        RuntimeError: LLVM refuses the text or the target.
    """
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=_LEVEL)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = triple, str(machine.target_data)
    module.verify()
    if library is not None:
        _link(module, library)
    for function in module.functions:
        if only is not None and not function.is_declaration and function.name != only:
            function.linkage = "internal"  # what nobody calls is dropped
    options = llvm.create_pipeline_tuning_options(speed_level=_LEVEL)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module) if image else machine.emit_assembly(module).encode()


def _link(module: llvm.ModuleRef, path: str) -> None:
    """Adds the functions of a library that the module calls; none of them is to be seen from outside."""
    own = {function.name for function in module.functions if not function.is_declaration}
    with open(path, "rb") as file:
        library = llvm.parse_bitcode(file.read())
    library.triple, library.data_layout = module.triple, module.data_layout
    module.link_in(library)
    for function in module.functions:
        if not function.is_declaration and function.name not in own:
            function.linkage = "internal"


def main() -> None:
    """Answers requests."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        try:
            answer = {"code": base64.b64encode(compile_text(**request)).decode()}
        except RuntimeError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
