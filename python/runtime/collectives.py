"""What compiled code of several ranks calls: a communicator behind a table of C, and MPI as the one that processes have."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from ..dialect.communicator import Communicator, current_communicator
from ..dialect.dtypes import numpy_dtype
from ..dialect.errors import RelaxError
from ..lowering.collective_call import ELEMENTS, KINDS, LOST
from ..weights.arrays import Array
from .ranks import environment_rank

__all__ = ["Collectives", "MpiRank", "RankFunction", "end_all_ranks", "find_communicator"]

_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)
_STATUS = -(1 + LOST)


_ENTRY = (ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


class _Table(ctypes.Structure):
    """``struct relaxir_ranks`` (:mod:`relaxir.lowering.collective_call`)."""

    _fields_ = [("call", _CALLBACK), ("context", ctypes.c_void_p)]


class Collectives:
    """One rank's connection, as entries of an executable take it; calls with it take turns."""

    def __init__(self, communicator: Communicator):
        self.communicator = communicator
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._call = _CALLBACK(self._called)
        self._table = _Table(self._call, None)
        self._pointer = ctypes.c_void_p(ctypes.addressof(self._table))

    def call(self, function: Any, arguments: Sequence[Any], more: Sequence[Any] = ()) -> int:
        """Calls compiled code with the connection between its arguments and ``more``, and gives its status.

        Raises:
            RelaxError: a collective failed; what it raised.
        """
        with self._lock:  # two calls at once would mix what they say
            self._error = None
            status = function(*arguments, self._pointer, *more)
            if status == _STATUS and self._error is not None:
                raise self._error
        return status

    def _called(self, context: Any, kind: int, source: int | None, target: int | None, count: int, element: int) -> int:
        """0, or 1 after an error, which is kept: nothing is raised through compiled code."""
        try:
            self._do(KINDS[kind], source or 0, target or 0, count, numpy_dtype(ELEMENTS[element]))
        except BaseException as error:
            self._error = error
            return 1
        return 0

    def _do(self, kind: str, source: int, target: int, count: int, dtype: np.dtype[Any]) -> None:
        if kind == "rank":
            _view(target, 1, dtype)[0] = self.communicator.rank
            return
        x = _view(source, count, dtype)
        if kind == "all_reduce":
            _view(target, count, dtype)[:] = self.communicator.all_reduce(x)
        else:
            size = self.communicator.size
            _view(target, count * size, dtype)[:] = self.communicator.all_gather(x).reshape(-1)


class RankFunction:
    """An entry that several ranks run together, called as one that does not.

    Attributes:
        library: where it is from.
    """

    def __init__(self, address: int, library: Any):
        """Args: library: the code, which knows its connection with the other ranks."""
        self.library = library
        self._externs = [] if library.externs is None else [library.externs]
        self._function = ctypes.CFUNCTYPE(*_ENTRY, *[ctypes.c_void_p] * (1 + len(self._externs)))(address)

    def __call__(self, tensors: Any, symbols: Any, arena: Any, arena_bytes: Any, /) -> int:
        return self.library.collectives.call(self._function, [tensors, symbols, arena, arena_bytes], self._externs)


def _view(start: int, count: int, dtype: np.dtype[Any]) -> Array:
    """Memory of compiled code as an array."""
    nbytes = count * dtype.itemsize
    memory: Any = (ctypes.c_char * nbytes).from_address(start) if nbytes else b""
    return np.ndarray((count,), dtype, memory)


class MpiRank:
    """A process of ``mpiexec``, by mpi4py. An error that ends it ends the others: they wait for it in a collective for ever."""

    def __init__(self) -> None:
        """Raises RelaxError: mpi4py is not installed, or finds no MPI."""
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:  # the latter where there is no library
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise RelaxError(f"expected mpi4py and an MPI, got '{text}': pip install relaxir[mpi]") from None
        self._mpi: Any = MPI
        self._world: Any = MPI.COMM_WORLD
        self.rank: int = self._world.rank
        self.size: int = self._world.size
        _end_all_after_errors(self)

    def abort(self) -> None:
        """Ends all processes, this one among them."""
        self._world.Abort(1)

    def all_reduce(self, x: Array) -> Array:
        if x.dtype.kind in "fiu" and x.dtype.itemsize >= 4:
            total = np.empty_like(x)
            self._world.Allreduce(np.ascontiguousarray(x), total)
            return total
        wide = np.dtype(np.int64) if x.dtype.kind in "iu" else np.dtype(np.float32)  # MPI has no sum of the others
        return self.all_reduce(x.astype(wide)).astype(x.dtype)

    def all_gather(self, x: Array) -> Array:
        gathered = np.empty((self.size, *x.shape), x.dtype)
        byte = self._mpi.BYTE
        self._world.Allgather([_bytes(x), byte], [_bytes(gathered), byte])
        return gathered


#: The rank that this process is, where MPI said so.
_own: MpiRank | None = None


def end_all_ranks(error: BaseException | str) -> None:
    """Ends all processes that run with this one, after an error that ends it; does nothing where MPI knows of no others."""
    if _own is not None and _own.size > 1:
        text = error if isinstance(error, str) else str(error) or type(error).__name__
        print(f"error: rank {_own.rank} of {_own.size} failed, which ends all: {text}", file=sys.stderr, flush=True)
        sys.stdout.flush()
        _own.abort()


def _end_all_after_errors(rank: MpiRank) -> None:
    """Makes an error that nobody catches end all processes, once it was shown as it would have been."""
    global _own
    shown, is_first, _own = sys.excepthook, _own is None, rank

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        shown(kind, error, trace)
        end_all_ranks(error)

    if is_first:
        sys.excepthook = hook


def _bytes(x: Array) -> Array:
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def find_communicator(ranks: int) -> Communicator:
    """The connection of this thread (:func:`relaxir.dialect.communicator.communicating`), else of this process, by MPI.

    Raises:
        RelaxError: there is none of so many ranks.
    """
    found = current_communicator()
    if found is None:
        _, world = environment_rank(os.environ)
        if world != ranks:
            raise RelaxError(f"expected {ranks} processes, as of mpiexec -n {ranks}, got {world}")
        found = MpiRank()
    if found.size != ranks:
        raise RelaxError(f"expected {ranks} processes, as of mpiexec -n {ranks}, got {found.size}")
    return found
