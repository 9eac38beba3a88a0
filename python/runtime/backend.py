"""What runs the code of one backend: the run time's part of it. What is deployed imports no MLIR here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..dialect.errors import RelaxError
from ..lowering.backend import backend_named
from ..lowering.manifest import Manifest
from ..lowering.manifest_specs import EntrySpec, StateSpec
from ..weights.arrays import Array
from .entry import BoundEntry
from .library import Library
from .scratch import ScratchPool
from .state import State

__all__ = ["Runtime", "runtime_of"]


class CallableEntry(Protocol):
    """An entry with its weights."""

    def call(self, inputs: tuple[object, ...], named: Mapping[str, object], state: State | None, out: object) -> Any:
        """See :meth:`.entry.BoundEntry.call`."""
        ...


class Runtime(ABC):
    """Loads code, and makes what calls it.

    The functions of a :class:`Library` take addresses of tensors in host memory, the symbols' values and an arena. A backend
    with tensors elsewhere makes its own entries and states, which copy, or hold weights and state where they are used.
    """

    def __init__(self, device: str | None = None):
        """Args: device: where code is to run, as users name it; None for where it runs when they do not.

        Raises:
            RelaxError: the backend's code runs on no such device.
        """
        if device not in (None, "cpu"):
            raise RelaxError(f"expected device 'cpu' for code of a CPU, got '{device}'")

    def here(self) -> Mapping[str, Any]:
        """What this machine has that code may use, for the compiler."""
        return {}

    @abstractmethod
    def check(self, manifest: Manifest, what: str) -> None:
        """Raises RelaxError when the code of ``what`` cannot run on this machine."""

    @abstractmethod
    def link(self, code: bytes, manifest: Manifest) -> Library:
        """Code that has just been compiled, ready to be called. Raises RelaxError when it lacks a symbol of the manifest."""

    @abstractmethod
    def write(self, folder: str, code: bytes, is_linked: bool) -> str:
        """Puts code into the folder of an artifact.

        Args:
            folder: where to.
            code: what the compiler made, or the content of a file that this has written before.
            is_linked: whether it is the latter, and not what :meth:`link` takes.

        Returns:
            The name of the file.
        """

    @property
    @abstractmethod
    def files(self) -> Mapping[str, bool]:
        """The names that :meth:`write` may return, and whether the content of such a file is linked."""

    @abstractmethod
    def load(self, path: str, code: bytes, manifest: Manifest) -> Library:
        """Code out of an artifact: a file of one of these names, and its content, which has been checked."""

    def held(self, library: Library, arrays: Mapping[str, Array]) -> Mapping[str, Any]:
        """Prepared weights as entries take them: where they are, or where they are used."""
        del library
        return arrays

    def target_text(self, manifest: Manifest) -> str:
        """What code is for, for readers."""
        return f"{manifest.target.triple} {manifest.target.cpu}"

    def described(self, manifest: Manifest) -> list[str]:
        """Lines for readers about the backend's part of a manifest."""
        del manifest
        return []

    def entry(self, spec: EntrySpec, library: Library, weights: Sequence[Any], scratch: ScratchPool) -> CallableEntry:
        """What calls an entry with its weights, which :meth:`held` gave."""
        return BoundEntry(spec, library.entry_function(spec.symbol), weights, scratch)

    def state(self, library: Library, specs: Mapping[str, StateSpec], arrays: Mapping[str, object] | None = None) -> State:
        """What calls of one sequence update."""
        del library
        return State(specs, arrays)


def runtime_of(manifest: Manifest, device: str | None = None) -> Runtime:
    """What runs the code of a manifest on a device. Raises RelaxError when its backend is not installed or has no such one."""
    return backend_named(manifest.target.backend).make_runtime(device)
