"""What compiles for one target: the compiler's part of a backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..dialect.bindings import ir
from ..dialect.weight_layouts import WeightLayouts
from .lower import lower
from .manifest_specs import TargetSpec
from .relax_pipeline import default_pipeline

__all__ = ["Compiler", "KernelStore", "Listener"]

#: Is told what code is made of: the suffix of its kind of file, ``ll`` or ``s``, and the text.
Listener = Callable[[str, str], None]


class KernelStore(Protocol):
    """Keeps compiled kernels by what determines them."""

    def get(self, text: str) -> bytes | None:
        """The code of what was compiled from that text before; None when it is not there."""
        ...

    def put(self, text: str, code: bytes) -> None:
        """Keeps code, if there is room."""
        ...


class Compiler(ABC):
    """Compiles modules for one target.

    What happens is text: the passes on relax (:meth:`relax_pipeline`), then those of the backend (:meth:`pipeline`), whose last
    module has an entry and, where a function needs scratch memory, an arena in the attributes that :mod:`.entries` and
    :mod:`.arena` describe. :meth:`code` makes bytes of it: one image, or a container of several.

    Attributes:
        kernels: has kernels that were compiled before, and keeps new ones; None where nothing is kept.
        as_one_text: whether somebody listens to what code is made of, which then is built as a whole.
        branches: whether code branches around products of which a mask keeps nothing, for which a GPU's host would wait.
    """

    kernels: KernelStore | None = None
    as_one_text = False
    branches = True

    @abstractmethod
    def __init__(self, target: str, here: Mapping[str, Any]):
        """Args: target: as the user wrote it; here: what the run time of this machine has (:meth:`Runtime.here`).

        Raises:
            RelaxError: there is no such target.
        """

    @property
    @abstractmethod
    def key(self) -> str:
        """All of the target that code depends on, as text: equal keys, equal code."""

    @property
    @abstractmethod
    def spec(self) -> TargetSpec:
        """What the manifest says of the target."""

    @property
    def weight_layouts(self) -> WeightLayouts:
        """How kernels want weights of products in memory."""
        return WeightLayouts()

    def relax_pipeline(self, weights: str | None, activations: str | None, convolutions: str | None = None) -> str:
        """What happens to a module before it is lowered; the arguments are those of ``relaxir.compile``."""
        return default_pipeline(weights, activations, convolutions, branches=self.branches)

    @abstractmethod
    def pipeline(self, checked: bool) -> str:
        """The passes that lower a module.

        Args:
            checked: whether code checks every access of memory.
        """

    def lower(self, module: ir.Operation, checked: bool) -> None:
        """Runs :meth:`pipeline` in place; code of :attr:`kernels` may take the place of some of it.

        Raises:
            RelaxError: a pass failed.
        """
        lower(module, self.pipeline(checked))

    def manifest_part(self, module: ir.Operation) -> dict[str, Any]:
        """What the manifest says of a lowered module under the backend's name: a JSON object that its run time reads."""
        del module
        return {}

    @abstractmethod
    def code(self, module: ir.Operation, manifest: Mapping[str, Any], listener: Listener | None) -> bytes:
        """The code of a lowered module.

        Args:
            module: what :meth:`pipeline` has left; it may be consumed.
            manifest: a JSON object whose digest the code has to carry (:mod:`.manifest_digest`).
            listener: is told of texts on the way, if given.
        """
