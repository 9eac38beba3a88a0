"""What the processor can do, by LLVM's names, as the kernel says it: artifacts are loaded without LLVM where that is enough."""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Iterable

__all__ = ["here_by_kernel", "known_features", "lacking"]

_CPUINFO = "/proc/cpuinfo"

#: LLVM's names where they are not the kernel's without ``_`` (Linux, arch/x86/include/asm/cpufeatures.h).
_RENAMED = {
    "lm": "64bit", "bmi1": "bmi", "abm": "lzcnt", "pclmulqdq": "pclmul", "3dnowprefetch": "prfchw", "rdrand": "rdrnd",
    "lahf_lm": "sahf", "sha_ni": "sha", "pni": "sse3", "sse4_1": "sse4.1", "sse4_2": "sse4.2", "amx_bf16": "amx-bf16",
    "amx_int8": "amx-int8", "amx_tile": "amx-tile", "amx_fp16": "amx-fp16",
}  # fmt: skip
#: What comes with another one and has no name there.
_WITH = {"sse4.2": "crc32"}
#: Instructions for systems, random numbers and power, which compiled code never has and kernels may hide.
_UNUSED = frozenset(
    (
        "clzero",
        "enqcmd",
        "invpcid",
        "kl",
        "mwaitx",
        "pconfig",
        "pku",
        "rdpru",
        "rdseed",
        "sgx",
        "shstk",
        "uintr",
        "wbnoinvd",
        "widekl",
    )
)


@functools.cache
def known_features() -> frozenset[str]:
    """Those of an x86 processor under Linux; none elsewhere."""
    if platform.machine() != "x86_64" or not sys.platform.startswith("linux"):
        return frozenset()
    with open(_CPUINFO, encoding="utf-8") as file:
        line = next((text for text in file if text.startswith("flags")), ":")
    found = {_RENAMED.get(flag, flag.replace("_", "")) for flag in line.partition(":")[2].split()}
    return frozenset(found | {more for name, more in _WITH.items() if name in found})


def lacking(features: Iterable[str]) -> list[str]:
    """Those that the kernel does not say are there, among what compiled code may have; LLVM may know them nevertheless."""
    return sorted(set(features) - known_features() - _UNUSED)


def here_by_kernel() -> str:
    """This machine as a triple."""
    return f"{platform.machine()}-unknown-{sys.platform}-gnu"
