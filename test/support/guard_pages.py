"""Arrays that lie flush against memory nobody may touch, and calls in a process of their own that may die of touching it.

One element too far is a SIGSEGV then, where it would be a wrong number otherwise or nothing at all.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import pickle
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

__all__ = ["ChildError", "Edge", "guarded", "guarded_copy", "in_child"]

#: Which end of an array the inaccessible page is at.
Edge = Literal["start", "end"]

_PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class _Block:
    """Pages of memory between two that are inaccessible; unmapped with the last array in them."""

    def __init__(self, nbytes: int):
        pages = max(1, -(-nbytes // _PAGE))
        self.memory = mmap.mmap(-1, (pages + 2) * _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        for page in (start, start + (pages + 1) * _PAGE):
            if _libc.mprotect(page, _PAGE, 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        self.first, self.end = _PAGE, (pages + 1) * _PAGE


def guarded(shape: Sequence[int], dtype: Any, edge: Edge = "end", fill: int = 0) -> np.ndarray[Any, Any]:
    """An array whose last byte (first, at the start) has an inaccessible page beside it.

    An array of no bytes lies at the very edge.

    Args:
        shape, dtype: the array's.
        edge: which end is flush.
        fill: the byte that memory is filled with, beyond the array, too.
    """
    kind = np.dtype(dtype)
    nbytes = math.prod(shape) * kind.itemsize
    block = _Block(nbytes)
    whole = np.frombuffer(block.memory, np.uint8, block.end - block.first, block.first)
    if fill:
        whole[...] = fill
    offset = block.end - nbytes if edge == "end" else block.first
    return np.ndarray(tuple(shape), kind, block.memory, offset)


def guarded_copy(array: np.ndarray[Any, Any], edge: Edge = "end") -> np.ndarray[Any, Any]:
    """The same values in an array that is :func:`guarded`."""
    copy = guarded(array.shape, array.dtype, edge)
    copy[...] = array
    return copy


class ChildError(Exception):
    """A child process ended without an answer; the text says by which signal or with what status."""


def in_child(function: Callable[[], Any], seconds: int = 60) -> Any:
    """What a function returns, or the exception that it raises, from a forked process; this one survives whatever happens.

    Args:
        function: returns or raises what pickle takes.
        seconds: of processor time that it may use.

    Raises:
        ChildError: the process died, of a signal for example.
    """
    read, write = os.pipe()
    child = os.fork()
    if not child:
        _answer(function, read, write, seconds)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        answer = stream.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise ChildError(f"killed by {signal.Signals(os.WTERMSIG(status)).name}")
    if status or not answer:
        raise ChildError(f"ended with status {os.waitstatus_to_exitcode(status)}")
    fine, value = pickle.loads(answer)
    if not fine:
        raise value
    return value


def _answer(function: Callable[[], Any], read: int, write: int, seconds: int) -> None:
    """The child's life: no cores, no handlers of the parent's, and no way back into its stack."""
    status = 1
    try:
        os.close(read)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL):
            signal.signal(number, signal.SIG_DFL)
        with os.fdopen(write, "wb") as stream:
            stream.write(_pickled(function))
        status = 0
    finally:
        sys.stdout.flush()
        os._exit(status)


def _pickled(function: Callable[[], Any]) -> bytes:
    try:
        return pickle.dumps((True, function()))
    except BaseException as error:
        try:
            return pickle.dumps((False, error))
        except Exception:
            return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
