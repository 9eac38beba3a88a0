"""LLVM IR of a ``gpu.module`` so that LLVM 22 makes right code of it.

Before::

    @__dynamic_shmem__0 = internal addrspace(3) global [0 x i8] undef, align 4

after::

    @__dynamic_shmem__0 = external addrspace(3) global [0 x i8], align 1024
"""

from __future__ import annotations

import re

__all__ = ["device_text"]

# The 128-byte swizzle of the tensor memory accelerator repeats every 1024 bytes.
_ALIGNMENT = 1024
_DYNAMIC = re.compile(r"^(@\S+) = internal addrspace\(3\) global \[0 x (\w+)\] undef, align \d+", re.M)


def device_text(text: str) -> str:
    """The text with dynamic shared memory as what a launch gives.

    A variable of no bytes that is internal becomes one of a byte in the back end, which lies over other shared memory: wrong
    numbers, and no error.
    """
    return _DYNAMIC.sub(rf"\1 = external addrspace(3) global [0 x \2], align {_ALIGNMENT}", text)
