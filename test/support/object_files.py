"""What an ELF object asks the runtime for."""

from __future__ import annotations

import struct

__all__ = ["undefined_symbols"]

_SYMBOLS = 2


def undefined_symbols(data: bytes) -> set[str]:
    """The names that a 64-bit little-endian ELF object does not define itself."""
    assert data[:6] == b"\x7fELF\x02\x01"
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    found: set[str] = set()
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind == _SYMBOLS:
            names = sections[link][4]
            records = [struct.unpack_from("<IBBH", data, at) for at in range(offset, offset + length, 24)]
            found |= {_text(data, names + name) for name, _, _, section in records if section == 0 and name}
    return found


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
