"""Standard input, output and errors as tools want them: there, whatever was closed, and able to print any file's name."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from io import RawIOBase, TextIOWrapper

__all__ = ["flushed", "open_standard_streams"]

_NAMES = ("stdin", "stdout", "stderr")
#: How what an encoding lacks is written.
_ERRORS = "relaxir.shown"


def open_standard_streams() -> None:
    """Opens the null device for each stream that was closed, as by ``2>&-`` or a daemon.

    Else the next file that is opened gets its number, and what libraries print goes into that file. Names of files that are no
    Unicode are printed as the bytes that they are, and what an encoding lacks as its number. Standard output that has no
    buffer, as by PYTHONUNBUFFERED, gets one for a line: without it, Python drops what is left of a text when a signal
    interrupts its writing.
    """
    codecs.register_error(_ERRORS, _shown)
    for number in range(len(_NAMES)):
        with contextlib.suppress(OSError):
            os.fstat(number)
            continue
        os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
    for number, name in enumerate(_NAMES):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.dup(number), "w" if number else "r", encoding="utf-8"))  # noqa: SIM115
            continue
        if not isinstance(stream, TextIOWrapper):
            continue
        if isinstance(stream.buffer, RawIOBase) and stream.writable():
            stream = open(number, "w", 1, stream.encoding, stream.errors, closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
        if stream.errors == "strict":
            stream.reconfigure(errors=_ERRORS if stream.writable() else "surrogateescape")


def _shown(error: UnicodeError) -> tuple[str | bytes, int]:
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)


def flushed(code: int, tool: str = "") -> int:
    """The exit code of a tool that ends with this one: 1 where the last of its output cannot be written, as on a full disk."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the interpreter tries again when it ends, and exits with 120
        if not code:
            print(f"{tool}error: {error}", file=sys.stderr)
        return code or 1
    return code
