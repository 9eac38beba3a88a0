"""Linux gives a process tile registers (Intel AMX) when it asks: their state is 8 KiB of each thread.

Source: Linux, Documentation/arch/x86/xstate.rst.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys

__all__ = ["TILE_FEATURES", "may_use_tiles"]

#: LLVM's names of what needs the permission.
TILE_FEATURES = frozenset(("amx-tile", "amx-int8", "amx-bf16", "amx-fp16", "amx-complex"))

_ARCH_PRCTL, _REQUEST, _TILE_DATA = 158, 0x1023, 18


@functools.cache
def may_use_tiles() -> bool:
    """Asks for this process, its threads and what it starts by a fork; whether the answer is yes."""
    if platform.machine() != "x86_64" or not sys.platform.startswith("linux"):
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST, ctypes.c_ulong(_TILE_DATA)) == 0
