"""``TensorSource``: named tensors that are stored somewhere, whatever the format; what reads weights takes one.

A format plugs in at one of two places (:mod:`.opening` has both tables):

- a *container* (safetensors, ``.npz``, GGUF, ...) is opened by path and gives a source with the tensors as they are stored;
- an *encoding* (GPTQ, AWQ, FP8 blocks, ...) takes a source, whose ``config["quantization_config"]`` says how its tensors are to
  be read, and gives another one under the model's own names, which decodes a tensor when it is asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol, cast, runtime_checkable

from .arrays import Array, ArraySpec

__all__ = ["DecodingSource", "ReadingSource", "TensorSource", "read_all"]


class TensorSource(Protocol):
    """Named tensors; nothing is read from them before :meth:`get`.

    Thread-safe. What it says of itself must be cheap: :meth:`spec` reads no tensor's bytes, and a source that computes its
    tensors keeps none of them.
    """

    @property
    def path(self) -> str:
        """What was opened, as errors name it."""
        ...

    @property
    def metadata(self) -> Mapping[str, str]:
        """Texts that the file keeps beside its tensors."""
        ...

    @property
    def config(self) -> Mapping[str, Any]:
        """The model's ``config.json``, with ``quantization_config`` where it has one; empty where there is none.

        Raises:
            RelaxError: it cannot be read, or is no JSON object.
        """
        ...

    @property
    def files(self) -> list[str]:
        """Paths of all files that are read: what is written must be none of them."""
        ...

    @property
    def identity(self) -> str | None:
        """A text that changes when the content does, or how it is read: preparation goes on only where it is equal. None
        when that cannot be told.
        """
        ...

    def __iter__(self) -> Iterator[str]:
        """The names."""
        ...

    def __contains__(self, name: object, /) -> bool: ...

    def spec(self, name: str) -> ArraySpec:
        """Dtype and shape of a tensor. Raises RelaxError when there is none, or NumPy lacks its dtype."""
        ...

    def get(self, name: str) -> Array:
        """A tensor, read-only where it is mapped; of this spec. Raises as :meth:`spec`, and when it cannot be read."""
        ...

    def prefetch(self, name: str) -> None:
        """Starts reading what :meth:`get` will need, without waiting and without memory of the process."""
        ...

    def release(self, name: str) -> None:
        """Gives pages that :meth:`get` touched back to the system; arrays that it gave stay valid."""
        ...

    def check_unchanged(self, names: Iterable[str] | None = None) -> None:
        """Raises RelaxError when a file (of these tensors) is not what was opened any more."""
        ...


@runtime_checkable
class DecodingSource(TensorSource, Protocol):
    """A source that decodes, to dtypes that are asked for."""

    def serving(self, wanted: Mapping[str, ArraySpec]) -> TensorSource:
        """The source for weights that will be asked for so: in these dtypes, or as the file's own tensors."""
        ...

    def check_digests(self, digests: Mapping[str, str]) -> None:
        """Raises RelaxError where a weight is not encoded as a digest says that it was when a module was compiled."""
        ...

    def beside(self, name: str) -> int:
        """Memory of the process that a tensor takes beside its array from :meth:`get` to :meth:`release`."""
        ...


class ReadingSource(Protocol):
    """A source of mapped files that also reads: touching a view ends the process where a file was cut off meanwhile."""

    def read_all(self, names: Collection[str]) -> dict[str, Array]:
        """Tensors in memory of their own. Raises RelaxError as :meth:`TensorSource.get`, and for a file that was cut off."""
        ...


def read_all(source: TensorSource, names: Collection[str]) -> dict[str, Array]:
    """Tensors for one use: read where the source can, else as it gives them."""
    if hasattr(type(source), "read_all"):
        return cast("ReadingSource", source).read_all(names)
    return {name: source.get(name) for name in names}
