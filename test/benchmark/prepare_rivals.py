"""What a good script in NumPy or torch does of what ``prepare`` does: ``python prepare_rivals.py numpy|torch CASE RAW OUT``.

Both map the checkpoint, work on one matrix at a time in buffers that stay, write with ``pwrite`` into space that was reserved,
and give read pages back; torch uses all its threads. They write the tensors that ``prepare`` writes, in the same bytes, one
after the other. Prints what :mod:`prepare_measure` says.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

#: The layout that relaxir's kernels want of AVX-512: panels of so many columns, in groups of so many rows with one scale.
TILE, GROUP = 32, 32

#: Rows that the torch script takes at once: what is between stays in the cache, and two threads still share each operation.
_ROWS = 128

Pack = Callable[[np.ndarray[Any, Any]], list[Any]]


def numpy_packer(case: str, side: int) -> Pack:
    """A function from a raw matrix ``[out, in]`` to what is written of it."""
    if case == "int4":
        return _NumpyInt4(side)
    rows = 2 if case == "bf16" else 1  # pairs of bf16 rows are neighbours, and travel as one word
    out = np.empty((side // TILE, side // rows, TILE), np.uint32)

    def pack(raw: np.ndarray[Any, Any]) -> list[Any]:
        words = raw.view(np.uint32).reshape(side // TILE, TILE, side // rows)
        np.copyto(out, words.transpose(0, 2, 1))
        return [out]

    return pack


class _NumpyInt4:
    """Symmetric integers of four bits with a scale per group, by panels, so that what is worked on stays in the cache."""

    def __init__(self, side: int):
        self.side = side
        self.scales = np.empty((side // TILE, side // GROUP, TILE), np.float32)
        self.words = np.empty((side // TILE, side // 8, TILE), np.uint32)

    def __call__(self, raw: np.ndarray[Any, Any]) -> list[Any]:
        for panel in range(self.side // TILE):
            self._pack(panel, raw[panel * TILE : (panel + 1) * TILE])
        return [self.scales, self.words]

    def _pack(self, panel: int, rows: np.ndarray[Any, Any]) -> None:
        groups = rows.reshape(TILE, self.side // GROUP, GROUP)
        high, low = groups.max(2), groups.min(2)
        extreme = np.where(high >= -low, high, low) * np.float32(-1 / 8)
        scale = np.where(extreme == 0, np.float32(1), extreme)
        codes = np.divide(groups, scale[..., None])
        np.rint(codes, out=codes)
        np.clip(codes, -8, 7, out=codes)
        codes += 8
        pairs = codes.astype(np.uint8).view(
            np.uint16
        )  # of each two bytes the halves become one: 0.4 of the time of eight shifts
        pairs |= pairs >> 4
        self.words[panel] = pairs.astype(np.uint8).reshape(TILE, -1).view(np.uint32).T
        self.scales[panel] = scale.T


def torch_packer(case: str, side: int) -> Pack:
    """As :func:`numpy_packer`."""
    import torch

    if case != "int4":
        rows = 2 if case == "bf16" else 1
        out = torch.empty((side // TILE, side // rows, TILE), dtype=torch.int32)

        def pack(raw: np.ndarray[Any, Any]) -> list[Any]:
            words = torch.from_numpy(raw.view(np.int32).reshape(side // TILE, TILE, side // rows))
            out.copy_(words.transpose(1, 2))
            return [out.numpy()]

        return pack
    scales = torch.empty((side // TILE, side // GROUP, TILE))
    words = torch.empty((side // TILE, side // 8, TILE), dtype=torch.int32)
    step = min(side, _ROWS)

    def quantize(raw: np.ndarray[Any, Any]) -> list[Any]:
        for first in range(0, side, step):
            groups = torch.from_numpy(raw[first : first + step]).view(step, side // GROUP, GROUP)
            low, high = torch.aminmax(groups, dim=2)
            extreme = torch.where(high >= -low, high, low) * (-1 / 8)
            scale = torch.where(extreme == 0, 1.0, extreme)
            codes = torch.div(groups, scale[..., None]).round_().clamp_(-8, 7).add_(8)
            pairs = codes.to(torch.uint8).view(torch.int16)
            packed = pairs.bitwise_or_(pairs >> 4).to(torch.uint8).view(torch.int32)
            place = slice(first // TILE, (first + step) // TILE)
            for out, found in ((scales, scale), (words, packed)):
                out[place].copy_(found.reshape(step // TILE, TILE, -1).transpose(1, 2))
        return [scales.numpy(), words.numpy()]

    return quantize


def _matrices(path: str) -> Iterator[tuple[np.ndarray[Any, Any], mmap.mmap, int]]:
    """The square matrices of a safetensors file as words, the mapping and where each begins."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        table = json.loads(file.read(length))
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for name, entry in table.items():
        if name != "__metadata__":
            begin, end = (8 + length + o for o in entry["data_offsets"])
            dtype = np.uint16 if entry["dtype"] == "BF16" else np.float32
            yield (
                np.frombuffer(mapped, dtype, (end - begin) // np.dtype(dtype).itemsize, begin).reshape(entry["shape"]),
                mapped,
                begin,
            )


def run(library: str, case: str, raw: str, path: str) -> None:
    """Prepares a file."""
    pack: Pack | None = None
    out, offset = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 0
    os.posix_fallocate(out, 0, os.path.getsize(raw) // (6 if case == "int4" else 1))
    for matrix, mapped, begin in _matrices(raw):
        page, size = begin // mmap.PAGESIZE * mmap.PAGESIZE, matrix.nbytes
        ahead = min(page + 5 * size, len(mapped)) - page
        mapped.madvise(mmap.MADV_WILLNEED, page, ahead)
        pack = pack or (numpy_packer if library == "numpy" else torch_packer)(case, matrix.shape[0])
        for part in pack(matrix):
            os.pwrite(out, part.reshape(-1).view(np.uint8).data, offset)
            offset += part.nbytes
        mapped.madvise(mmap.MADV_DONTNEED, page, size)
    os.ftruncate(out, offset)
    os.fsync(out)
    os.close(out)


if __name__ == "__main__":
    from prepare_measure import measured

    if sys.argv[1] == "torch":
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # else threads that wait keep cores busy that others could use
        import torch  # noqa: F401  # before the clock starts
    measured(lambda: run(*sys.argv[1:]))
