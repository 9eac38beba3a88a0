"""Object files in one file, as ``ar`` has them: names and contents in, bytes out, and back."""

from __future__ import annotations

from collections.abc import Mapping

from ..dialect.errors import RelaxError

__all__ = ["MAGIC", "archive", "members"]

#: What an archive begins with. Source of the format: https://man.freebsd.org/cgi/man.cgi?query=ar&sektion=5.
MAGIC = b"!<arch>\n"

_HEADER, _NAME, _END = 60, 15, b"`\n"


def archive(files: Mapping[str, bytes]) -> bytes:
    """An archive of files with short names. Dates and owners are zero: equal files, equal bytes."""
    parts = [MAGIC]
    for name, content in files.items():
        if len(name) > _NAME:
            raise RelaxError(f"expected a name of at most {_NAME} characters in an archive, got '{name}'")
        parts.append(f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(content):<10}".encode() + _END)
        parts.append(content + b"\n" * (len(content) % 2))
    return b"".join(parts)


def members(content: bytes) -> dict[str, bytes]:
    """The files of an archive. Raises RelaxError when it is none that :func:`archive` made."""
    if not content.startswith(MAGIC):
        raise RelaxError("expected an archive of object files, got other bytes")
    found, at = dict[str, bytes](), len(MAGIC)
    while at < len(content):
        header = content[at : at + _HEADER]
        begin = at + _HEADER
        if len(header) < _HEADER or header[-2:] != _END or not header[48:58].strip().isdigit():
            raise RelaxError("expected an archive of object files, got a damaged one")
        end = begin + int(header[48:58])
        if end > len(content):
            raise RelaxError("expected an archive of object files, got one that was cut off")
        found[header[:16].decode("ascii", "replace").rstrip().removesuffix("/")] = content[begin:end]
        at = end + end % 2
    return found
