"""Weights for other programs: raw weights in, a file out that is as narrow as what the executable stores.

Of each weight is written what the executable computes with: integers and scales of what it quantizes, what it rounds to bf16
in bf16, all else as the checkpoint has it. What a format cannot hold is refused before anything is read, all of it at once.
Rows are read, converted and written piece by piece, in bounded memory; an interrupted file is continued.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from ..dialect.checks import expect_bytes
from ..dialect.errors import ContentError, RelaxError
from ..lowering.manifest import Manifest
from ..lowering.manifest_specs import total_bytes
from ..weights.arrays import Array
from ..weights.files import path_text
from ..weights.writer import StreamWriter
from .export_gguf import gguf_file
from .export_safetensors import safetensors_file
from .export_weights import Exported, ExportFile, ExportWeight, export_weights
from .prepare import PrepareOptions, PrepareReport, check_destination, checked_source
from .raw_weights import Piece, RawWeights, part_spec
from .sources import problems_text
from .step_stream import PrepareProgress

__all__ = ["FORMATS", "export_to_file"]

#: What files there are, by name.
FORMATS: dict[str, Callable[[list[ExportWeight], RawWeights, str], ExportFile]] = {
    "safetensors": safetensors_file,
    "gguf": gguf_file,
}

# How names of files end that are not safetensors.
_ENDS = {"safetensors": None, "gguf": ".gguf"}

# Bytes of a weight that are read at once; as much is written behind it.
_PIECE_BYTES = 4 << 20

# What an element takes beside what is read: quantized, three numbers in f32, its integer and what is written; else two numbers.
_QUANTIZING_BYTES, _WIDE_BYTES = 16, 16


def export_to_file(
    manifest: Manifest, format: str, src: object, dst: str | os.PathLike[str] | None, options: PrepareOptions, is_part: bool
) -> PrepareReport:  # fmt: skip
    """Writes the weights for others, all into one file (``is_part`` says that less was asked for); :meth:`Executable.prepare`.

    Raises:
        RelaxError: the format is not known, or cannot hold a weight (all are listed, with what would help), no file or a part
            of one is asked for; or as :meth:`Executable.prepare`.
    """
    if not isinstance(format, str) or format not in FORMATS:
        raise RelaxError(f"expected a format of {', '.join(FORMATS)} or None, got {format!r}")
    if dst is None or is_part or options.share:
        got = "no dst" if dst is None else "share=" if options.share else "only=, rank=, world= or shard_size="
        raise RelaxError(f"expected one file to write whole with format=, got {got}")
    started = time.perf_counter()
    source = checked_source(manifest, src, options)
    path = path_text(dst, "write")
    check_destination(source, path, _ENDS[format])
    weights, notes = export_weights(manifest, source)
    file = FORMATS[format](weights, source, path)
    if file.problems:
        raise RelaxError(problems_text(f"cannot write '{path}' as {format}", file.problems, len(weights)))
    each = max((_memory(source, e) for e in file.exported), default=0)
    jobs = _jobs(options, each + source.ahead_bytes)
    specs = {name: spec for e in file.exported for name, spec in e.specs.items()}
    with StreamWriter(path, specs, file.metadata, resume_key=source.identity, layout=file.layout) as writer:
        todo = [e for e in file.exported if not writer.done.issuperset(e.specs)]
        _Export(source, writer, todo, options).run(jobs)
        source.check_unchanged()
    file.finish()
    raw = total_bytes({w.name: manifest.raw_weights[w.name] for w in weights})
    written = sum(s.nbytes for s in specs.values())
    peak = each * jobs + source.ahead_bytes
    counts = (len(todo), len(file.exported) - len(todo))
    told = (*source.notes, *notes, *file.notes)
    return PrepareReport(path, raw, written, time.perf_counter() - started, *counts, peak, peak, source.extra, told)


class _Export:
    """Weights on their way into a file."""

    def __init__(self, source: RawWeights, writer: StreamWriter, todo: list[Exported], options: PrepareOptions):
        self._source, self._writer, self._todo, self._hook = source, writer, todo, options.progress
        self._lock = threading.Lock()
        self._done = PrepareProgress(0, len(todo), 0, sum(s.nbytes for e in todo for s in e.specs.values()))

    def run(self, jobs: int) -> None:
        """All of them; the first error is raised when those that were begun are done."""
        if jobs == 1:
            for exported in self._todo:
                self._write(exported)
            return
        with ThreadPoolExecutor(jobs) as pool:
            running = [pool.submit(self._write, exported) for exported in self._todo]
            try:
                for one in running:
                    one.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _write(self, exported: Exported) -> None:
        source, name = self._source, exported.weight.name
        source.check_unchanged([name])
        takers = {n: self._writer.begin(n).put for n in exported.specs if n not in self._writer.done}
        for key, array in exported.constants.items():
            if key in takers:
                takers[key](array)
        for piece in _pieces(source, exported):
            made = self._made(exported, source.get(name, None, piece))
            for key, array in made.items():
                if key in takers:
                    takers[key](array)
        source.release(name)
        self._tell(exported)

    def _made(self, exported: Exported, rows: Array) -> Mapping[str, Array]:
        try:
            return exported.made(rows)
        except ContentError as error:
            raise ContentError(f"{self._source.description}: weight '{exported.weight.name}': {error}") from None

    def _tell(self, exported: Exported) -> None:
        with self._lock:
            size = sum(s.nbytes for s in exported.specs.values())
            done, name = self._done, exported.weight.name
            self._done = PrepareProgress(done.steps_done + 1, done.steps_total, done.bytes_done + size, done.bytes_total, name)
            if self._hook is not None:
                self._hook(self._done)


def _pieces(source: RawWeights, exported: Exported) -> Iterator[Piece | None]:
    """Rows that are read at once; all where the source reads no parts."""
    rows = _rows(source, exported)
    if rows is None:
        yield None
        return
    first, last = exported.extent
    for begin in range(first, last, rows):
        yield Piece(0, begin, min(begin + rows, last))


def _rows(source: RawWeights, exported: Exported) -> int | None:
    """How many rows a piece has; None of a weight that is read whole."""
    weight = exported.weight
    if exported.rows is not None:
        return exported.unit
    if not weight.shape or not source.reads_parts(weight.name):
        return None
    size = max(source.part_bytes(weight.name) // max(weight.shape[0], 1), 1)
    return max(_PIECE_BYTES // size // exported.unit, 1) * exported.unit


def _memory(source: RawWeights, exported: Exported) -> int:
    """What writing a weight takes: what is read, what it is converted in, and what is written."""
    rows, weight = _rows(source, exported), exported.weight
    piece = None if rows is None else Piece(0, 0, min(rows, weight.shape[0]))
    count = math.prod(part_spec(weight.spec, piece).shape)
    return source.part_bytes(weight.name, piece) + count * (_QUANTIZING_BYTES if weight.narrow else _WIDE_BYTES)


def _jobs(options: PrepareOptions, each: int) -> int:
    """As many threads as stay within the memory limit. Raises RelaxError where one does not."""
    if options.memory_limit is None:
        return options.jobs
    limit = expect_bytes(options.memory_limit, "a memory limit of 1 byte or more")
    if each > limit:
        raise RelaxError(f"expected a memory limit of {each} bytes or more, got {limit}")
    return min(options.jobs, limit // each)
