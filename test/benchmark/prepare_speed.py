"""``prepare`` beside ``cp`` of the same bytes and beside scripts in NumPy and torch, through the same disk, in turns.

``python test/benchmark/prepare_speed.py [--gib 4] [--rounds 3] [--cases f32,bf16,int4] [--only prepare,floor] [--folder DIR]``
writes synthetic checkpoints of equal matrices, prepares them (f32 to packed f32, bf16 to packed bf16, f32 to packed int4), and
prints for a warm and a cold page cache the median seconds of each, the least and the most, how many times as fast ``prepare``
is, and how many times as long it takes as the floor: moving these bytes with nothing computed (``prepare_floor.py``). Where
another run is less than 3 times the floor, nothing on this machine is 3 times as fast. Then its peak memory beside what it
predicted. All of them end with ``fsync``. Where less is written than read, ``cp`` copies as much as is written, and the rest is
read. That the scripts write the same bytes is checked first. Each case says how long it took as a whole.

Takes three times ``--gib`` on the disk, which is looked at first, and removes it. A cold file has no page in the cache, by
``mincore``.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import hashlib
import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import ml_dtypes
import numpy as np

HERE = Path(__file__).parent
CASES = {"f32": ("f32", None), "bf16": ("bf16", None), "int4": ("f32", "int4")}
RUNS = ("prepare", "floor", "cp", "numpy", "torch")

#: What is on the disk at once, in checkpoints: raw, what ``cp`` copies, what is written, and some room.
_COPIES = 3.1

#: What a preparation may take beyond its prediction: allocator, Python's objects, libraries loaded meanwhile.
SLACK = 64 << 20

#: Different matrices of a checkpoint: random numbers take longer to make than all else that is measured.
_DIFFERENT = 8


@dataclass
class Case:
    """One preparation: files, and what was measured by run and by state of the page cache."""

    name: str
    folder: Path
    matrices: int
    side: int
    jobs: int
    seconds: dict[tuple[str, str], list[float]] = field(default_factory=dict[tuple[str, str], list[float]])
    processor: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    peak: int = 0
    predicted: int = 0

    def path(self, name: str) -> Path:
        return self.folder / f"{self.name}.{name}"

    def build(self) -> None:
        """The checkpoint, and an executable in whose products every matrix is packed."""
        import relaxir as rx
        from relaxir.weights import ArraySpec, LazyTensor, write_safetensors

        dtype, weights = CASES[self.name]
        kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bf16" else np.float32)
        rng = np.random.default_rng(0)

        shape, different = (self.side, self.side), min(self.matrices, _DIFFERENT)
        made = [rng.standard_normal(shape, np.float32).astype(kind) for _ in range(different)]
        names, spec = [f"layer{i:05}" for i in range(self.matrices)], ArraySpec(kind, shape)
        lazy = [LazyTensor(spec, functools.partial(made.__getitem__, i)) for i in range(different)]
        write_safetensors(self.path("raw"), {name: lazy[i % different] for i, name in enumerate(names)})
        builder = rx.Builder()
        with builder.function("main"):
            x = builder.input("x", ("n", self.side), dtype)
            for i in range(self.matrices):
                weight = builder.weight(f"layer{i:05}", (self.side, self.side), dtype)
                x = builder.matmul(x, builder.permute_dims(weight, axes=[1, 0]))
            builder.output(x)
        rx.compile(builder.build(), weights=weights).save(self.path("relax"))

    def run(self, what: str, cache: str) -> None:
        """One run; what it wrote goes."""
        raw, out = self.path("raw"), self.path("out")
        (forget if cache == "cold" else warm)(raw)
        if what == "cp":
            seconds = self._copy(raw, out)
        else:
            found = self._child(what, raw, out)
            seconds = found["seconds"]
            self.processor.setdefault(what, []).append(found["processor"])
            if what == "prepare":
                self.peak, self.predicted = max(self.peak, int(found["peak"])), int(found["predicted"])
        self.seconds.setdefault((what, cache), []).append(seconds)

    def _child(self, what: str, raw: Path, out: Path) -> dict[str, float]:
        mine = ["prepare_measure.py", str(self.path("relax")), str(raw), str(out), str(self.jobs)]
        others = {
            "prepare": mine,
            "floor": ["prepare_floor.py", str(raw), str(out), str(self.written)],
        }
        script, *arguments = others.get(what, ["prepare_rivals.py", what, self.name, str(raw), str(out)])
        command = [sys.executable, str(HERE / script), *arguments]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def _copy(self, raw: Path, out: Path) -> float:
        """Reads what ``prepare`` reads and writes as much as it writes, with the tools of the system."""
        part = self.written * raw.stat().st_size // self.read
        source = self.path("part") if part < raw.stat().st_size else raw
        began = time.perf_counter()
        subprocess.run(["cp", "--reflink=never", str(source), str(out)], check=True)
        if source != raw:
            rest = ["dd", f"if={raw}", "of=/dev/null", "bs=1M", f"skip={part}", "iflag=skip_bytes", "status=none"]
            subprocess.run(rest, check=True)
        sync(out)
        return time.perf_counter() - began

    def cut(self) -> None:
        """A file of as many bytes as are written, where these are fewer: what ``cp`` copies."""
        raw, part = self.path("raw"), self.path("part")
        count = self.written * raw.stat().st_size // self.read
        if count < raw.stat().st_size:
            subprocess.run(
                ["dd", f"if={raw}", f"of={part}", "bs=1M", f"count={count}", "iflag=count_bytes", "status=none"], check=True
            )

    @property
    def read(self) -> int:
        return self._total("raw_weights")

    @property
    def written(self) -> int:
        return self._total("prepared_weights")

    def _total(self, key: str) -> int:
        from relaxir.lowering.manifest_specs import total_bytes
        from relaxir.runtime.artifact import read_manifest

        return total_bytes(getattr(read_manifest(self.path("relax")), key))

    def check(self, runs: list[str]) -> None:
        """Compares what the scripts write with what ``prepare`` does."""
        from relaxir.weights import Checkpoint

        raw, out = self.path("raw"), self.path("out")
        self._child("prepare", raw, out)
        checkpoint = Checkpoint(out)
        names = [name for step in self._sets() for name in step]
        wanted = hashlib.sha256()
        for name in names:
            wanted.update(checkpoint.get(name).reshape(-1).view(np.uint8).data)
            checkpoint.release(name)
        out.unlink()
        for rival in [r for r in runs if r in ("numpy", "torch")]:
            self._child(rival, raw, out)
            with open(out, "rb") as file:
                found = hashlib.file_digest(file, "sha256")
            out.unlink()
            assert found.digest() == wanted.digest(), f"{rival} writes other bytes than prepare for {self.name}"

    def _sets(self) -> list[tuple[str, ...]]:
        from relaxir.runtime.artifact import read_manifest

        return [step.sets for step in read_manifest(self.path("relax")).steps]


def sync(path: Path) -> None:
    """Waits until the disk has a file."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def warm(path: Path) -> None:
    """Brings a file into the page cache."""
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 24):
            pass


def forget(path: Path) -> None:
    """Drops a file from the page cache; says so when the system keeps some of it."""
    sync(path)
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        left = _resident(file.fileno(), path.stat().st_size)
    if left:
        print(f"note: {left:.1%} of {path.name} stayed in the page cache", file=sys.stderr)


def _resident(descriptor: int, size: int) -> float:
    """The share of a file's pages that are in the page cache."""
    pages = -(-size // mmap.PAGESIZE)
    found = (ctypes.c_ubyte * pages)()
    with mmap.mmap(descriptor, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as mapped:
        begin = ctypes.c_char.from_buffer(mapped)
        ctypes.CDLL(None).mincore(ctypes.c_void_p(ctypes.addressof(begin)), ctypes.c_size_t(size), found)
        del begin
    return float((np.frombuffer(found, np.uint8) & 1).mean())


def missing_space(folder: str | None, gib: float) -> str | None:
    """What is wrong with the disk for checkpoints of this size; None where there is room."""
    where = folder or tempfile.gettempdir()
    free, wanted = shutil.disk_usage(where).free, int(_COPIES * gib * 2**30)
    return None if free >= wanted else f"{where}: {wanted / 2**30:.1f} GiB are needed, {free / 2**30:.1f} are free"


def measure(case: Case, runs: list[str], rounds: int, check: bool) -> None:
    """All runs in turn, as often."""
    case.build()
    case.cut()
    if check:
        case.check(runs)
    for number in range(rounds):
        for cache in ("warm", "cold"):
            for what in runs[number % len(runs) :] + runs[: number % len(runs)]:
                case.run(what, cache)
                case.path("out").unlink()


def report(case: Case, runs: list[str]) -> None:
    """Prints medians, and the median of the ratios of each round."""
    read, written = case.read, case.written
    print(
        f"{case.name}: {case.matrices} matrices of {case.side} x {case.side}, {read / 2**30:.2f} to {written / 2**30:.2f} GiB"
    )
    for cache in ("warm", "cold"):
        for what in runs:
            taken = case.seconds[what, cache]
            moved = f"{(read + written) / median(taken) / 1e9:5.2f} GB/s moved"
            cpu = f", {median(case.processor[what]):.2f} s of processor" if what in case.processor else ""
            spread = f"{median(taken):7.2f} s ({min(taken):.2f} to {max(taken):.2f})"
            print(f"  {cache} {what:8} {spread}, {moved}{cpu}{_compared(case, what, cache)}")
    above = case.peak - case.predicted
    print(f"  peak memory {case.peak / 2**20:.1f} MiB, predicted {case.predicted / 2**20:.1f} MiB: {above / 2**20:+.1f} MiB")


def _compared(case: Case, what: str, cache: str) -> str:
    """How a run stands to ``prepare``, and to the floor where that was measured; each by the median of the rounds."""
    taken, mine, least = (case.seconds.get((name, cache), []) for name in (what, "prepare", "floor"))
    ratios = [other / own for own, other in zip(mine, taken, strict=True)]
    times = f"; prepare {median(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})"
    above = [own / other for own, other in zip(taken, least, strict=False)]
    floor = f"; {median(above):.2f} times the floor" if above and what != "floor" else ""
    return (times if what not in ("prepare", "floor") else "") + floor


def case_holds(name: str, gib: float, runs: list[str], options: argparse.Namespace) -> bool:
    """Measures a case and prints it; whether memory was what was predicted, and 64 MiB."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        itemsize = 2 if CASES[name][0] == "bf16" else 4
        matrices = max(1, round(gib * 2**30 / itemsize / options.side**2))
        case, began = Case(name, Path(folder), matrices, options.side, options.jobs), time.perf_counter()
        measure(case, runs, options.rounds, not options.no_check)
        report(case, runs)
        print(f"  measured in {time.perf_counter() - began:.0f} s", flush=True)
        return case.peak <= case.predicted + SLACK


def main() -> int:
    """Measures; the exit code is 1 when memory was more than predicted and 64 MiB."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", default="4", help="sizes of checkpoints")
    parser.add_argument("--side", type=int, default=2048, help="rows and columns of each matrix")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="of prepare, whose steps use all cores by themselves")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--only", default=",".join(RUNS), help="runs to make; prepare is always one of them")
    parser.add_argument("--no-check", action="store_true", help="not to compare what the scripts write")
    parser.add_argument("--folder", default=None, help="where the files go: the disk to measure")
    options = parser.parse_args()
    runs = ["prepare", *(r for r in options.only.split(",") if r != "prepare")]
    sizes = [float(size) for size in options.gib.split(",")]
    missing = missing_space(options.folder, max(sizes))
    if missing is not None:
        print(missing, file=sys.stderr)
        return 2
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    good = [
        case_holds(name, gib, runs, options)  # all are measured, whatever one of them says
        for gib in sizes
        for name in options.cases.split(",")
    ]
    print(f"load {os.getloadavg()[0]:.1f}")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
