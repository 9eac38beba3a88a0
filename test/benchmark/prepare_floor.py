"""The least that a machine takes to move a preparation's bytes, computing nothing: ``python prepare_floor.py RAW OUT BYTES``.

As many threads as cores read the whole of RAW in blocks, each into one block of memory that stays in its cache, while another
one writes so many bytes of one such block to OUT, past the page cache where the system lets it (the faster way, by
``direct_file.py``), into space that was reserved, with ``fsync``. What takes less computes on mapped pages, or keeps dirty
pages. Prints what :mod:`prepare_measure` says.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading

#: Bytes that are read at once: a block of a preparation; written at once; asked for ahead.
_READ, _WRITTEN, _AHEAD = 512 << 10, 4 << 20, 64 << 20


def run(raw: str, path: str, count: int) -> None:
    """Reads a file, and writes so many bytes."""
    threads = os.cpu_count() or 1
    source, size = os.open(raw, os.O_RDONLY), os.path.getsize(raw)
    places, lock = iter(range(0, size, _READ)), threading.Lock()

    def read() -> None:
        memory = memoryview(mmap.mmap(-1, _READ))
        while True:
            with lock:
                begin = next(places, None)
            if begin is None:
                return
            if begin % _AHEAD == 0:
                os.posix_fadvise(source, begin + _AHEAD, _AHEAD, os.POSIX_FADV_WILLNEED)
            os.preadv(source, [memory], begin)

    os.posix_fadvise(source, 0, _AHEAD, os.POSIX_FADV_WILLNEED)
    readers = [threading.Thread(target=read) for _ in range(threads)]
    for reader in readers:
        reader.start()
    _write(path, count)
    for reader in readers:
        reader.join()
    os.close(source)


def _write(path: str, count: int) -> None:
    out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.posix_fallocate(out, 0, count)
    direct = os.open(path, os.O_WRONLY | os.O_DIRECT)
    memory = memoryview(mmap.mmap(-1, _WRITTEN))
    for begin in range(0, count, _WRITTEN):
        left = count - begin
        os.pwrite(direct if left >= _WRITTEN else out, memory[: min(left, _WRITTEN)], begin)
    os.fsync(out)
    os.close(direct)
    os.close(out)


if __name__ == "__main__":
    from prepare_measure import measured

    measured(lambda: run(sys.argv[1], sys.argv[2], int(sys.argv[3])))
