"""Kernels out of a few lines of PTX, for tests of the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaxir.lowering.cuda.emulator import Machine, Options

__all__ = ["REGISTERS", "execute", "kernel"]

REGISTERS = (
    ".reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<64>; .reg .b64 %d<32>; "
    ".reg .f32 %f<16>; .reg .f64 %q<16>; .reg .b32 %acc<64>;"
)


def kernel(
    body: str, variables: str = "", threads: int = 64, target: str = "sm_90a", functions: str = "", limits: str = ""
) -> str:
    """A kernel of two pointers: thread t has its word of the first in %r2, and stores %r3 as its word of the second."""
    return f""".version 8.6
.target {target}
.address_size 64
{functions}
.visible .entry k(.param .u64 source, .param .u64 target)
.maxntid {threads}, 1, 1 {limits}
{{
  {REGISTERS}
  {variables}
  ld.param.u64 %d1, [source];
  ld.param.u64 %d2, [target];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d3, %r1, 4;
  add.s64 %d4, %d1, %d3;
  add.s64 %d5, %d2, %d3;
  ld.global.b32 %r2, [%d4];
  {body}
  st.global.b32 [%d5], %r3;
  ret;
}}
"""


def execute(text: str, words: Any, options: Options | None = None, shared: int = 0, blocks: int = 1) -> Any:
    """Runs such a kernel with one thread for each word, as u32. Raises Finding."""
    words = np.ascontiguousarray(words).view(np.uint32).reshape(-1)
    machine = Machine("sm_90a", options or Options(steps=50_000), memory=1 << 22)
    program = machine.load(text)
    target = machine.memory.allocate(words.nbytes)
    machine.run(program, "k", [blocks], [len(words)], [machine.upload(words), target], shared)
    return machine.download(target, len(words), np.uint32)
