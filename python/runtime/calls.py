"""One call of compiled code: checks its status, grows its scratch memory, and turns a failed check into an error."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..dialect.errors import RelaxError
from ..dialect.symbolic import evaluate, parse
from ..weights.arrays import Array, ArraySpec
from .library import EntryFunction
from .scratch import Scratch

__all__ = ["RefusedError", "as_argument", "failure", "finish", "int64_array", "invoke", "pointer_array"]

#: What the number of a check has on top that compiled code makes before it does anything else.
EARLY = 1 << 32


class RefusedError(RelaxError):
    """Compiled code refused a call before it computed or wrote anything."""


#: The status of a call that allocates a buffer and gets none.
_NO_MEMORY = -(2**63)
#: That of checked code that met an access outside of its buffer; lowering's ``check_accesses`` has it, too.
_FAULTED = -(2**62)


def as_argument(array: Array, what: str) -> Array:
    """The array, or a copy where compiled code cannot read it: not contiguous, or an element not at its natural alignment.

    Raises:
        RelaxError: there is no memory for the copy; a view that repeats one element may claim any size.
    """
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        return array
    try:
        return array.copy(order="C")
    except (MemoryError, ValueError):  # more bytes than there are, or than there can be
        raise RelaxError(f"{what}: expected memory for a contiguous copy of {ArraySpec.of(array)}, got none") from None


def pointer_array(addresses: Sequence[int]) -> Any:
    """A C array of pointers."""
    return (ctypes.c_void_p * len(addresses))(*addresses)


def int64_array(values: Sequence[int]) -> Any:
    """A C array of 64-bit integers."""
    return (ctypes.c_int64 * len(values))(*values)


def invoke(function: EntryFunction, tensors: Any, symbols: Any, scratch: Scratch, what: str) -> None:
    """Calls a function with the entry ABI.

    Args:
        function: from :meth:`Library.function`.
        tensors, symbols: C arrays.
        scratch: its arena; grown when the function asks for more.
        what: how errors name the call.

    Raises:
        RelaxError: a run-time check failed, or there is no memory for the arena.
    """
    function.library.team.gather()
    status = function(tensors, symbols, scratch.pointer, scratch.extent)
    if status:
        finish(status, function, tensors, symbols, scratch, what, function.library.checks, {})


def finish(
    status: int, function: EntryFunction, tensors: Any, symbols: Any, scratch: Scratch, what: str, checks: Sequence[str],
    values: Mapping[str, int],
) -> None:  # fmt: skip
    """Goes on after a call that returned a status other than 0: with a larger arena, or with an error.

    Args:
        status: what the call returned.
        function, tensors, symbols, scratch, what: as of :func:`invoke`.
        checks: texts of the run-time checks.
        values: the symbols' values, for the message of a failed check.

    Raises:
        RefusedError: a check of sizes failed, before anything was written.
        RelaxError: another run-time check failed, there is no memory for the arena, or checked code met an access outside of
            its buffer.
    """
    if status > 0:
        scratch.grow(status)
        status = function(tensors, symbols, scratch.pointer, scratch.extent)
    if status == 0:
        return
    if status > 0:
        raise RelaxError(f"{what}: expected an arena of {scratch.size} bytes to be enough, got a request for {status} bytes")
    if status == _FAULTED:
        raise RelaxError(f"{what}: {_fault_text(scratch, function.library.accesses)}")
    raise failure(status, what, checks, values)


def failure(status: int, what: str, checks: Sequence[str], values: Mapping[str, int]) -> RelaxError:
    """The error that a negative status of a call stands for; the arguments are those of :func:`finish`."""
    if status == _NO_MEMORY:
        return RelaxError(f"{what}: expected memory for a buffer of a size that depends on data, got none")
    early, position = divmod(-status - 1, EARLY)
    text = checks[position] if position < len(checks) else f"check {position}"
    known = ", ".join(f"{name} = {value}" for name, value in values.items())
    error = RefusedError if early else RelaxError
    return error(f"{what}: run-time check failed: {_filled(text, values)}{f' ({known})' if known else ''}")


def _filled(text: str, values: Mapping[str, int]) -> str:
    """The text of a check with sizes for the expressions in braces, ``{n * 2}``; what is none of symbols stays."""

    def size(found: re.Match[str]) -> str:
        try:
            return str(evaluate(parse(found[1]), values))
        except RelaxError:
            return found[0]

    return re.sub(r"\{([^{}]+)\}", size, text)


def _fault_text(scratch: Scratch, places: Sequence[str]) -> str:
    """The first access outside of its buffer, as checked code leaves it at the beginning of the arena."""
    _, place, index, size = (int(v) for v in scratch.view(0, np.dtype(np.int64), (4,)))
    access = places[place] if 0 <= place < len(places) else f"access {place}"
    return f"{access}: expected 0 to {size - 1}, got {index}"
