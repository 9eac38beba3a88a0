"""Checksums that go with tensors: name, spec and bytes in, a short text out, so that damaged bytes are found later.

Two per tensor: of all its bytes, and of its first and last page, which is read in microseconds. Both begin with the name and
the spec, so that tensors which changed places are found, too. They find damage, not malice.

CRC-32 lets other threads run. One core, AMD EPYC (Zen 4), 4 MiB in the cache: zlib-ng, which has PCLMUL, 58 GB/s; zlib 1.2.13,
which comes with Python, 4.3 to 7.0 (before 1.2.12: about 1.2); SHA-256 with the processor's instructions 2.1, BLAKE2b 1.4.
Disks write 1 to 3. Either gives the same numbers: what runs artifacts without zlib-ng is slower, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from ..dialect.errors import RelaxError
from .arrays import ArraySpec

try:
    from zlib_ng.zlib_ng import crc32
except ImportError:  # where only what runs artifacts is installed
    from zlib import crc32

__all__ = [
    "CHECKSUMS", "PAGE", "SAMPLES", "Checksum", "Read", "chunks", "combined", "crc32", "placeholder", "read_sample", "sample",
    "separated", "start",
]  # fmt: skip

#: The metadata key: texts of all tensors, one after the other, by sorted name.
CHECKSUMS = "relaxir.checksums"

#: Bytes that a sample takes from each end of a tensor, and how many tensors of a file it looks at when it has more.
PAGE = 4096
SAMPLES = 256

# Bytes at once, so that what is written next is still in the cache.
_CHUNK = 1 << 20

_DIGITS = 16

#: Fills memory with a tensor's bytes from there on.
Read = Callable[[int, memoryview], None]


@dataclass(frozen=True)
class Checksum:
    """Of a tensor: of its first and last page, and of everything."""

    sample: int
    whole: int

    def __str__(self) -> str:
        return f"{self.sample:08x}{self.whole:08x}"

    @staticmethod
    def parse(text: str) -> Checksum:
        """From what ``str`` gave. Raises ValueError for anything else."""
        found = Checksum(int(text[:8], 16), int(text[8:], 16))
        if str(found) != text:
            raise ValueError(f"expected {_DIGITS} hexadecimal digits, got {text[: _DIGITS + 1]!r}")
        return found

    @staticmethod
    def of(name: str, spec: ArraySpec, content: memoryview) -> Checksum:
        """Of a tensor's bytes."""
        whole = start(name, spec)
        for chunk in chunks(content):
            whole = crc32(chunk, whole)
        return Checksum(sample(name, spec, content), whole)

    @staticmethod
    def read(name: str, spec: ArraySpec, read: Read) -> Checksum:
        """Of a tensor in a file, as long as it is there: ``read`` refuses what is not, where a view would end the process."""
        whole, count = start(name, spec), spec.nbytes
        memory = memoryview(bytearray(min(count, _CHUNK)))
        for begin in range(0, count, _CHUNK):
            chunk = memory[: min(_CHUNK, count - begin)]
            read(begin, chunk)
            whole = crc32(chunk, whole)
        return Checksum(read_sample(name, spec, read), whole)


def start(name: str, spec: ArraySpec) -> int:
    """Where the checksums of a tensor begin; :func:`crc32` goes on from there."""
    return crc32(f"{name}\0{spec}".encode("utf-8", "surrogatepass"))


def sample(name: str, spec: ArraySpec, content: memoryview) -> int:
    """The checksum of the first and the last page; both are the whole of a small tensor."""
    return crc32(content[-PAGE:], crc32(content[:PAGE], start(name, spec)))


def read_sample(name: str, spec: ArraySpec, read: Read) -> int:
    """The same of a tensor in a file."""
    found, count = start(name, spec), min(PAGE, spec.nbytes)
    page = bytearray(count)
    for begin in (0, spec.nbytes - count):
        read(begin, memoryview(page))
        found = crc32(page, found)
    return found


def chunks(content: memoryview) -> Iterable[memoryview]:
    """Pieces of a size that caches hold."""
    return (content[i : i + _CHUNK] for i in range(0, len(content), _CHUNK))


def placeholder(count: int) -> str:
    """What stands for so many checksums as long as they are not known, as long as they will be."""
    return "0" * (_DIGITS * count)


def combined(checksums: dict[str, str]) -> str:
    """One text for those of all tensors."""
    return "".join(checksums[name] for name in sorted(checksums))


def separated(text: str, names: Collection[str], what: str) -> dict[str, Checksum]:
    """The checksums in such a text. Raises RelaxError when it is none for these tensors."""
    if len(text) != _DIGITS * len(names):
        raise RelaxError(
            f"{what}: expected checksums of {len(names)} tensors, got {len(text) / _DIGITS:g}: the file is damaged"
        )
    try:
        return {name: Checksum.parse(text[i * _DIGITS : (i + 1) * _DIGITS]) for i, name in enumerate(sorted(names))}
    except ValueError as error:
        raise RelaxError(f"{what}: checksums: {error}: the file is damaged") from None
