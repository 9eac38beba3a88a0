"""A checkpoint of several safetensors files, written as a stream by one process or several: named tensors in, files out.

Each file is a :class:`.writer.StreamWriter`'s: complete when it has its name, continued after a kill. Whoever finds all files
complete writes the index, so that it does not matter who is last, and nobody waits.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import TracebackType

from ..dialect.errors import ContentError, RelaxError
from .arrays import Array, ArraySpec
from .checksums import CHECKSUMS, PAGE, SAMPLES
from .files import open_regular, os_errors, path_text, replacing
from .safetensors import Checkpoint
from .shard_names import index_path, shard_path
from .tensor_writer import TensorWriter
from .writer import StreamWriter

__all__ = ["SOURCE", "ShardedWriter", "content_digest"]

#: The metadata key of what the tensors are made from: files of one checkpoint are made from the same.
SOURCE = "relaxir.source"

Specs = Mapping[str, ArraySpec]


class ShardedWriter:
    """Some files of a checkpoint under construction. Use as a context manager.

    Leaving the ``with`` block by an exception keeps what is done for the next writer where there is a resume key; leaving it
    without one completes the files, and the index where all files are complete.

    Attributes:
        path: the index.
        done: names of the tensors that earlier runs wrote; skip them.
        missing: after the end, numbers of the files, from 0 on, that others have not completed: there is no index yet.
    """

    def __init__(
        self, path: str | os.PathLike[str], shards: Sequence[Specs], mine: Collection[int], metadata: Mapping[str, str], *,
        source: str | None, resume_key: str | None,
    ):  # fmt: skip
        """Lays out this writer's files, and takes their space on disk.

        Args:
            path: what the checkpoint would be called were it one file; also its index.
            shards: the tensors of each file, those of other writers included.
            mine: numbers of the files to write here, from 0 on.
            metadata: strings for the headers, the same for all files.
            source: what the tensors are made from, the same text on every machine; None makes complete files anew.
            resume_key: says what the tensors are made from on this machine; see :class:`.writer.StreamWriter`.

        Raises:
            RelaxError: as :class:`.writer.StreamWriter`.
        """
        text = path_text(path, "write")
        self.path = index_path(text)
        self.done: set[str] = set()
        self.missing: tuple[int, ...] = ()
        self._metadata = {**metadata, **({} if source is None else {SOURCE: source})}
        self._shards, self._mine, self._source = shards, tuple(mine), source
        self._is_resumable, self._closed = resume_key is not None, list[int]()
        self._paths = [shard_path(text, i + 1, len(shards)) for i in range(len(shards))]
        self._lock = threading.Lock()
        self._writers: dict[int, StreamWriter] = {}
        self._of: dict[str, int] = {}
        self._left: dict[int, int] = {}
        todo = [i for i in mine if source is None or not self._is_complete(i)]
        self.done.update(name for i in mine if i not in todo for name in shards[i])
        with contextlib.ExitStack() as opened:
            for i in todo:
                writer = self._writers[i] = StreamWriter(
                    self._paths[i], shards[i], self._metadata, resume_key=resume_key, checksums=True
                )
                opened.callback(writer.suspend if resume_key is not None else writer.abort)
            if todo:
                self._remove_index()
            opened.pop_all()
        for i, writer in self._writers.items():
            self.done |= writer.done
            self._left[i] = len(set(shards[i]) - writer.done)
            self._of.update(dict.fromkeys(shards[i], i))

    def __enter__(self) -> ShardedWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with contextlib.ExitStack() as stack:
            for writer in self._writers.values():
                stack.push(writer)
            if kind is not None:  # as if it had been raised inside of each
                stack.pop_all().__exit__(kind, error, trace)
                self._remove_useless(error)
                return
        self.missing = tuple(i for i in range(len(self._shards)) if not self._is_complete(i))
        if not self.missing:
            self._write_index()

    def _remove_useless(self, error: BaseException | None) -> None:
        """Removes complete files of ours that will never have the others beside them."""
        is_final = isinstance(error, ContentError)
        useless = [i for i in self._mine if self._is_complete(i)] if is_final and self._source is not None else self._closed
        for i in useless if is_final or not self._is_resumable else ():
            with os_errors("remove", self._paths[i]), contextlib.suppress(FileNotFoundError):
                os.unlink(self._paths[i])

    def put(self, name: str, array: Array) -> None:
        """Writes one tensor; thread-safe. With its last tensor a file gets its name. Raises as StreamWriter does."""
        i = self._file_of(name)
        self._writers[i].put(name, array)
        self._finish(i)

    def begin(self, name: str) -> TensorWriter:
        """What takes a tensor's bytes in order, piece by piece. Raises as StreamWriter does."""
        i = self._file_of(name)
        return self._writers[i].begin(name, lambda: self._finish(i))

    def _file_of(self, name: str) -> int:
        i = self._of.get(name)
        if i is None:
            raise RelaxError(f"'{self.path}': expected a tensor that is to be written here, got {name!r}")
        return i

    def _finish(self, i: int) -> None:
        """Counts a tensor of a file, which is complete with the last one."""
        with self._lock:
            self._left[i] -= 1
            writer = self._writers.pop(i) if not self._left[i] else None
        if writer is not None:
            writer.close()
            with self._lock:
                self._closed.append(i)

    def _is_complete(self, i: int) -> bool:
        """Whether a file is there that was made from the same, for the same."""
        if not os.path.exists(self._paths[i]):
            return False
        try:
            found = Checkpoint(self._paths[i])
        except RelaxError:  # of an earlier time, or damaged: it is written again
            return False
        known = {key: value for key, value in found.metadata.items() if key != CHECKSUMS}
        return known == self._metadata and {name: found.spec(name) for name in found} == dict(self._shards[i])

    def _remove_index(self) -> None:
        """It says what is in files that are about to be replaced."""
        with os_errors("remove", self.path), contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def _write_index(self) -> None:
        sizes = [spec.nbytes for specs in self._shards for spec in specs.values()]
        names = {name: os.path.basename(p) for p, specs in zip(self._paths, self._shards, strict=True) for name in specs}
        index = {"metadata": {"total_size": sum(sizes)}, "weight_map": names}
        with replacing(self.path) as file:
            file.write(json.dumps(index, indent=1).encode())


def content_digest(files: Iterable[str]) -> str:
    """What tells files from others, whichever machine and folder they are on: base names, sizes and pages all over them.

    Raises:
        RelaxError: a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in sorted(files, key=os.path.basename):
        with open_regular(path) as file, os_errors("read", path):
            size = os.fstat(file.fileno()).st_size
            digest.update(f"{os.path.basename(path)}\0{size}\0".encode("utf-8", "surrogatepass"))
            for i in range(SAMPLES + 1):
                digest.update(os.pread(file.fileno(), PAGE, max(size - PAGE, 0) * i // SAMPLES))
    return digest.hexdigest()
