"""Where checks run, a GPU or the emulator, and how times are taken there."""

from __future__ import annotations

import contextlib
import functools
import statistics
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass

import torch

import relaxir as rx
from relaxir.lowering.cuda.cuda_target import ARCHITECTURES
from support.device_cases import Build, Case

__all__ = ["ROUNDS", "Place", "no_gpu"]

#: In how many calls are timed, and for how many seconds in each.
ROUNDS, _SECONDS = 7, 0.02

# Calls before any is timed, by which all is as it stays: ours launches once and is recorded by the second call; torch.compile
# compiles by the first, once more by the second (what the first one left is guarded), then warms up and records its graph.
_WARM = 6


def no_gpu() -> str | None:
    """Why nothing can be checked on a GPU; None where it can."""
    if not torch.cuda.is_available():
        kind = "without CUDA" if torch.version.cuda is None else "for CUDA, but no driver or no GPU"
        return f"torch {torch.__version__} is {kind}"
    major, minor = torch.cuda.get_device_capability()
    if (major, minor) not in {a.capability for a in ARCHITECTURES.values()}:
        return f"{torch.cuda.get_device_name()} has compute capability {major}.{minor}, for which there is no target"
    return None


@functools.cache
def _stream() -> torch.cuda.Stream:
    """Where times are taken: the default stream cannot be recorded as a graph, and every call would launch kernel by kernel."""
    return torch.cuda.Stream()


@dataclass(frozen=True)
class Place:
    """A device.

    Attributes:
        device: ``"cuda:0"`` or ``"emulated"``.
        target: what to compile for.
    """

    device: str
    target: str

    @staticmethod
    def named(device: str, target: str | None = None) -> Place:
        """The place, by default for the GPU that is there, or for sm_90a."""
        if target is None and device != "emulated":
            capability = torch.cuda.get_device_capability()
            target = next(f"cuda:{a.name}" for a in ARCHITECTURES.values() if a.capability == capability)
        return Place(device, target or "cuda:sm_90a")

    @property
    def is_emulated(self) -> bool:
        return self.device == "emulated"

    @property
    def torch_device(self) -> str:
        """Where torch's side computes."""
        return "cpu" if self.is_emulated else self.device

    def size(self, size: int, emulated: int) -> int:
        """A size; on the emulator a smaller one, which shows that the check works and nothing else."""
        return emulated if self.is_emulated else size

    def random(self, *shape: int, dtype: torch.dtype = torch.bfloat16, seed: int = 0) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(*shape, generator=generator).to(self.torch_device, dtype)

    def compiled(self, build: Build, weights: dict[str, torch.Tensor], precision: str | None = None) -> rx.Executable:
        """A module's executable with its weights, which are on the CPU while they are prepared."""
        executable = rx.compile(Case(build).module(), target=self.target, device=self.device, weights=precision)
        if weights:
            executable.bind(executable.prepare({name: w.cpu() for name, w in weights.items()}))
        return executable

    def times(self, *calls: Callable[[], object], most: int = 20_000) -> list[float]:
        """Seconds of each call: medians of rounds in which all take turns, each as often as fits 20 ms, but not more often.

        A call is made at most ``ROUNDS * (most + 1) + _WARM + 2`` times.
        """
        if self.is_emulated:
            return [_seconds_here(call) for call in calls]
        with _measuring():
            for call in calls:
                for _ in range(_WARM):
                    call()
            counts = [max(1, min(most, int(_SECONDS / max(_seconds_there(call, 1), 1e-6)))) for call in calls]
            found = [[_seconds_there(call, n) for call, n in zip(calls, counts, strict=True)] for _ in range(ROUNDS)]
        return [statistics.median(one) for one in zip(*found, strict=True)]


@contextlib.contextmanager
def _measuring() -> Generator[None]:
    """Makes the stream for measurements the current one, behind all that was begun before."""
    torch.cuda.synchronize()
    with torch.cuda.stream(_stream()):
        yield


def _seconds_here(call: Callable[[], object]) -> float:
    call()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _seconds_there(call: Callable[[], object], count: int) -> float:
    call()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(count):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3 / count
