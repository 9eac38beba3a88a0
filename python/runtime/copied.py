"""What ``copy`` and ``pickle`` do to an executable."""

from __future__ import annotations

import threading
from typing import Any, NoReturn, Self

from ..dialect.errors import RelaxError

__all__ = ["Copied"]


class Copied:
    """Copies are other executables of the same code and weights, which calls only read, with a copy of the state.

    So a model that has one can be copied (``copy.deepcopy``), and both go on by themselves: what one binds or updates, the
    other does not see. Threads and the stream are those of the code. Raises RelaxError where a call that failed left the state
    half updated.
    """

    _state: Any
    _binding: threading.Lock

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        with self._binding:
            made.__dict__.update(self.__dict__)
        made._state, made._binding = self._state.copy(), threading.Lock()
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        del memo
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        """Machine code is not pickled: it would be another process's, or another machine's."""
        raise RelaxError("cannot pickle an executable: save it with save(path), and load it with relaxir.load(path)")
