"""LLVM IR to object code, by llvmlite alone; as a program, one JSON object per line each way, until its input ends.

A request has the fields of :class:`Machine` and the ``text`` of a unit; the answer is ``{"code"}``, in base 64, or
``{"error"}``.
"""

from __future__ import annotations

import base64
import functools
import json
import re
import sys
from dataclasses import asdict, dataclass
from typing import Any

import llvmlite.binding as llvm

__all__ = ["HOISTED", "Machine", "Units", "emitted"]

# A call of BERT-base, batch 1, sequence 128 (medians of 7 alternating rounds, quiet machine): 380 to 780 ms without IR passes,
# 215 ms with O1 and with O2; O1 costs 1.4 s of compile time. The code generator's level does not matter from 1 on (0: 2.2 s).
_SPEED_LEVEL, _CODEGEN_LEVEL = 1, 1

#: An attribute of functions whose loops have nothing that could be moved out of them or is computed twice.
HOISTED = "relaxir-hoisted"

# By the name of a processor LLVM also uses what is in no list of features, such as `insertq` of Zen or SVE of Neoverse V1:
# another machine with all that is listed would run it, and die. So code is for these, and only tuned for the processor.
_LEAST = {"x86_64": "x86-64"}
_ANY = "generic"

# Where attributes of a function go.
_SIGNATURE = re.compile(r"^(define [^\n]*\)(?: (?:local_)?unnamed_addr)?)", re.M)


@dataclass(frozen=True)
class Machine:
    """What LLVM compiles for, in its own words.

    Attributes:
        triple: whose instruction set, and which system.
        cpu: the processor whose times count; what it can do beside the features is not used.
        features: all that code may use, beside what every processor of the instruction set has.
    """

    triple: str
    cpu: str
    features: str

    @property
    def least(self) -> str:
        """The processor that has nothing beside what all of the instruction set have."""
        return _LEAST.get(self.triple.partition("-")[0], _ANY)

    @property
    def request(self) -> dict[str, Any]:
        """The fields of a request."""
        return asdict(self)


class Units:
    """Compiles units for one machine.

    No function that may raise keeps a module in a variable: an error would keep it, in a cycle, of which Python may end the
    module's context first, and then the module a second time.
    """

    def __init__(self, machine: Machine):
        """Raises RuntimeError: LLVM has no such machine."""
        _initialize()
        self._machine = machine
        self.machine = self._target_machine(_CODEGEN_LEVEL)

    def _target_machine(self, level: int) -> Any:
        machine = self._machine
        return llvm.Target.from_triple(machine.triple).create_target_machine(
            cpu=machine.least, features=machine.features, opt=level, reloc="pic", codemodel="default"
        )

    def parsed(self, text: str) -> Any:
        """A module. Raises RuntimeError when LLVM refuses the text."""
        if self._machine.cpu != self._machine.least:
            text = _SIGNATURE.sub(rf'\1 "tune-cpu"="{self._machine.cpu}"', text)
        # In a context of its own: in one that knows a type of that name already, the module's is called otherwise.
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple, module.data_layout = self._machine.triple, str(self.machine.target_data)
        return module

    def with_known_arguments(self, text: str) -> Any:
        """A module whose functions take no arguments that are the same in all calls, and none that is not called.

        Kernels take descriptors of memory, of which they read pointers: with this, 439 calls (32 layers of Llama) go through
        O1 in 0.50 instead of 0.80 s.
        """
        module = self.parsed(text)
        passes = llvm.create_new_module_pass_manager()
        passes.add_ipsccp_pass()
        passes.add_dead_arg_elimination_pass()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(module, self._pass_builder())
        return module

    def optimised(self, text: str) -> Any:
        """A module of which each function went through the passes that kernels gain from.

        Of O1, what it does with each function; the rest is for what these modules lack, inlining and vectorizing: ResNet-50
        takes 1.7 instead of 2.5 s here, and 2.8 instead of 3.4 s in the code generator; its call, BERT's and attention's take
        as long as with all of O1.

        Kernels that say ``HOISTED``, of products and of tiles that are turned round, are combined, and their loops rotated, no
        more: ResNet-50's take 0.26 s less of 1.05 in all, at 0.998 to 1.006 of the speed (Zen 5). All kernels so: depthwise
        convolutions compute 14 of 238 vectors again in each turn, and short loops have one instruction more than by O1, which
        counts exits down: gelu and norms of rows take 1.01 of the time then.
        """
        module, builder = self.parsed(text), self._pass_builder()
        each = builder.getFunctionPassManager()
        if HOISTED in text:
            each = llvm.create_new_function_pass_manager()
            each.add_loop_rotate_pass()
            each.add_instruction_combine_pass()
        for function in module.functions:
            if not function.is_declaration:
                each.run(function, builder)
        return module

    def object_of_calls(self, text: str) -> bytes:
        """Position-independent object code, made as fast as it can be, of functions that do nothing twice.

        Of DenseNet-121's 439 calls it takes 20 instead of 170 ms, of ResNet-50's 9 instead of 76 (Zen 4).
        Raises RuntimeError when LLVM refuses the text.
        """
        return self._target_machine(0).emit_object(self.parsed(text))

    def object(self, text: str) -> bytes:
        """Position-independent object code of a unit. Raises RuntimeError when LLVM refuses the text."""
        return self.machine.emit_object(self.optimised(text))

    def _pass_builder(self) -> Any:
        options = llvm.create_pipeline_tuning_options(speed_level=_SPEED_LEVEL)
        # Kernels are explicit vector code already.
        options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
        return llvm.create_pass_builder(self.machine, options)


@functools.cache
def _initialize() -> None:
    """Makes all targets known: once, as it takes 0.3 ms each time."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def emitted(answer: dict[str, Any]) -> bytes:
    """The code in an answer. Raises RuntimeError with the error that is there instead."""
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return base64.b64decode(answer["code"])


def main() -> None:
    """Answers requests."""
    known: dict[Machine, Units] = {}
    for line in sys.stdin:
        request = json.loads(line)
        text, machine = request.pop("text"), Machine(**request)
        try:
            if machine not in known:
                known[machine] = Units(machine)
            answer = {"code": base64.b64encode(known[machine].object(text)).decode()}
        except RuntimeError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
