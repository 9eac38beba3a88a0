"""The compiler's part of the ``cuda`` backend: object code of the host, with the kernels as constants in it.

They are there as PTX, which any newer driver translates, and where an assembler is installed also as a cubin, which the very
GPU that code is for loads as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...dialect.bindings import ir
from ...dialect.weight_layouts import WeightLayouts
from ..compiler import Compiler, Listener
from ..cpu.codegen import object_code
from ..cpu.compiler import CpuCompiler
from ..cpu.translate import translate
from ..manifest_specs import TargetSpec
from ..marks import DEVICE_ACCESSES, DEVICE_CHECKS, DEVICE_CODE, DEVICE_CONSTANTS, DEVICE_GRAPHS, DEVICE_HOSTS, DEVICE_KERNELS
from ..plain_attributes import from_attribute
from .assemble import assemble, assembler
from .cuda_target import CudaTarget
from .driver_calls import definitions
from .pipeline import cuda_pipeline
from .plan_table import digest_of_file, plan_file
from .ptx import device_code

__all__ = ["CUBIN", "CUBIN_BYTES", "PTX", "PTX_BYTES", "CudaCompiler"]

#: The C symbols of the kernels' text, which ends with a 0, and of how many bytes it has.
PTX, PTX_BYTES = "relaxir_cuda_ptx", "relaxir_cuda_ptx_bytes"
#: Those of their machine code, of which there may be none.
CUBIN, CUBIN_BYTES = "relaxir_cuda_cubin", "relaxir_cuda_cubin_bytes"

_DECLARATION = re.compile(r"^declare .*@relaxir_cuda_\w+\(.*\n", re.M)


class CudaCompiler(Compiler):
    """Compiles for a GPU: entries for the host that launches kernels, preparation for the host alone.

    Attributes:
        target: what the GPU can do.
        host: compiles what runs on the CPU.
    """

    branches = False

    def __init__(self, target: str, here: Mapping[str, Any]):
        self._name = target
        self.target = CudaTarget.parse(target)
        self.host = CpuCompiler("cpu", here)
        self._assembler = assembler() if here.get("cubin", True) else None
        folder = here.get("plan_table")
        self._table = plan_file(folder, self.target.architecture.name) if folder else None

    @property
    def key(self) -> str:
        plans = digest_of_file(self._table) if self._table else "no measured plans"
        return f"{self.target!r} {self._assembler or 'no assembler'} {plans} {self.host.key}"

    @property
    def spec(self) -> TargetSpec:
        return replace(self.host.spec, backend="cuda")

    @property
    def weight_layouts(self) -> WeightLayouts:
        return self.target.weight_layouts

    def pipeline(self, checked: bool) -> str:
        host = f"target=cpu openmp={str(self.host.target.openmp).lower()}"
        targets = f"relax-set-target{{{host}}},relax-set-cuda-target{{target={self._name}}}"
        return f"relax-realize-vdevice,{targets},{cuda_pipeline(checked, self._table)}"

    def manifest_part(self, module: ir.Operation) -> dict[str, Any]:
        marks = {
            "kernels": DEVICE_KERNELS, "constants": DEVICE_CONSTANTS, "graphs": DEVICE_GRAPHS, "checks": DEVICE_CHECKS,
            "host": DEVICE_HOSTS,
        }  # fmt: skip
        found = {name: from_attribute(module.attributes[mark]) for name, mark in marks.items()}
        if DEVICE_ACCESSES in module.attributes:
            found["accesses"] = from_attribute(module.attributes[DEVICE_ACCESSES])
        return {"target": self._name} | found

    def code(self, module: ir.Operation, manifest: Mapping[str, Any], listener: Listener | None) -> bytes:
        ptx = self.ptx(module)
        text = _DECLARATION.sub("", translate(module, manifest, with_driver=True)) + definitions()
        text += _embedded(PTX, PTX_BYTES, ptx.encode() + b"\0") + _embedded(CUBIN, CUBIN_BYTES, self._cubin(ptx))
        if listener is not None:
            listener("ll", text)
            listener("ptx", ptx)
        return object_code(text, self.host.target, self.kernels).archive()

    def ptx(self, module: ir.Operation) -> str:
        """The kernels' text of a lowered module; empty without any."""
        if DEVICE_CODE not in module.attributes:
            return ""
        with module.context:
            device = ir.Module.parse(ir.StringAttr(module.attributes[DEVICE_CODE]).value)
        return device_code(device.body.operations[0].operation, self.target)

    def _cubin(self, ptx: str) -> bytes:
        """The kernels' machine code; empty without kernels, or without an assembler."""
        return assemble(ptx, self.target).cubin if ptx and self._assembler else b""


#: Each byte as LLVM IR writes it in a string.
_WRITTEN = [chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in range(256)]


def _embedded(symbol: str, size: str, content: bytes) -> str:
    """Bytes and how many they are as constants, in LLVM IR."""
    text = "".join(map(_WRITTEN.__getitem__, content))
    return f'@{symbol} = constant [{len(content)} x i8] c"{text}", align 16\n@{size} = constant i64 {len(content)}\n'
