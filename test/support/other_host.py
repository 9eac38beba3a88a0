"""Tests as on a processor that has less than this one: plans, layouts and dtypes of weights are those of the host.

``RELAXIR_HOST=x86-64-v4 make pytest`` runs them so, with the name of a target that this machine runs code of. Code for it uses
no more than that one has. What tests start as processes of their own sees the processor that is there.
"""

from __future__ import annotations

import llvmlite.binding as llvm

from relaxir.lowering.target import Target

__all__ = ["pretend_host"]

# How LLVM's names of extensions begin that a processor without them differs by.
_EXTENSIONS = ("amx", "avx", "bmi", "f16c", "fma", "gfni", "sse3", "sse4", "ssse3", "vaes", "vpclmul", "xop")


def pretend_host(name: str) -> None:
    """From now on the host is the target of that name. Raises ValueError where this one lacks a feature of it."""
    named = {f.removeprefix("+") for f in Target.parse(f"cpu:{name}").features.split(",") if f.startswith("+")}
    found = llvm.get_host_cpu_features()
    missing = sorted(f for f in named if not found.get(f))
    if missing:
        raise ValueError(f"expected a processor with {', '.join(missing)} to run tests as on '{name}'")
    features = type(found)((f, there and (f in named or not f.startswith(_EXTENSIONS))) for f, there in found.items())
    llvm.get_host_cpu_features, llvm.get_host_cpu_name = lambda: type(found)(features), lambda: name
    Target.host.cache_clear()
