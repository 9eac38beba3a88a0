"""What a kind of target brings, as one table entry: what compiles for it, and what runs the code.

Targets are texts, ``cpu`` or ``cpu:x86-64-v3``: what is in front of the colon names the backend. Other packages add one through
the entry-point group ``relaxir.backends``, whose object is a :class:`Backend`. Neither side imports the other, and running code
imports no MLIR, so a backend says where its parts are and they are imported when they are needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..dialect.errors import RelaxError
from ..dialect.plugins import BACKENDS, load

if TYPE_CHECKING:
    from .compiler import Compiler
    from .profiling import Profiling

__all__ = ["Backend", "backend_named", "backend_of"]


@dataclass(frozen=True)
class Backend:
    """A backend by name.

    Attributes:
        name: what targets and manifests call it.
        compiler: ``module:class`` of its :class:`relaxir.lowering.compiler.Compiler`.
        runtime: ``module:class`` of its :class:`relaxir.runtime.backend.Runtime`; imports no MLIR for what is deployed.
        profiling: ``module:class`` of its :class:`relaxir.lowering.profiling.Profiling`; None where it has none.
    """

    name: str
    compiler: str
    runtime: str
    profiling: str | None = None

    def compiler_for(self, target: str, here: Mapping[str, Any]) -> Compiler:
        """What compiles for a target, given what this machine has. Raises RelaxError for a target that it does not know."""
        return _loaded(self.compiler)(target, here)

    def make_runtime(self, device: str | None = None) -> Any:
        """What runs the code, on a device by its name. Raises RelaxError when it runs on no such device."""
        return _loaded(self.runtime)(device)

    def make_profiling(self, manifest: Mapping[str, Any] | None = None) -> Profiling:
        """What profiles code on this machine.

        Args:
            manifest: the code's.

        Raises:
            RelaxError: the backend has none.
        """
        if self.profiling is None:
            raise RelaxError(f"expected code of a backend that can be profiled, got code of '{self.name}'")
        return _loaded(self.profiling)(self.make_runtime().here(), manifest or {})


_BACKENDS = {
    "cpu": Backend(
        "cpu",
        "relaxir.lowering.cpu.compiler:CpuCompiler",
        "relaxir.runtime.cpu:CpuRuntime",
        "relaxir.lowering.cpu.profiling:CpuProfiling",
    ),
    "cuda": Backend(
        "cuda",
        "relaxir.lowering.cuda.compiler:CudaCompiler",
        "relaxir.runtime.cuda:CudaRuntime",
        "relaxir.lowering.cuda.profiling:CudaProfiling",
    ),
}


def backend_of(target: str) -> Backend:
    """The backend of a target. Raises RelaxError when there is none."""
    name, known = target.partition(":")[0], _known()
    if name not in known:
        raise RelaxError(f"expected target {' or '.join(map(repr, sorted(known)))}, got '{target}'")
    return known[name]


def backend_named(name: str) -> Backend:
    """The backend whose code something is. Raises RelaxError when it is not installed."""
    known = _BACKENDS if name in _BACKENDS else _known()  # what is installed is not looked through for code of ours
    if name not in known:
        raise RelaxError(f"expected code of a backend that is installed ({', '.join(sorted(known))}), got code of '{name}'")
    return known[name]


def _known() -> dict[str, Backend]:
    """Ours and those of other packages. Raises RelaxError when two have one name."""
    found = dict(_BACKENDS)
    for backend in load(BACKENDS, "a relaxir.extend.Backend", _is_backend):
        if found.setdefault(backend.name, backend) != backend:
            raise RelaxError(f"expected one backend '{backend.name}', got that of {backend.compiler} as well")
    return found


def _is_backend(found: Any) -> bool:
    return isinstance(found, Backend)


def _loaded(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
