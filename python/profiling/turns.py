"""How long calls take, of one model run by several programs: in alternating turns, so that all see the same machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dialect.errors import RelaxError
from ..dialect.reports.report import aligned
from ..weights.files import open_regular
from .texts import seconds_text

__all__ = ["TimedCalls", "framework_call", "table_of", "timed_in_turns"]

Array = np.ndarray[Any, Any]
Call = Callable[[], Sequence[Array]]

#: Seconds of a turn, if a call is shorter: threads of the one before have gone to sleep by then.
_TURN = 0.02
_LEAST_TURNS = 5


@dataclass(frozen=True)
class TimedCalls:
    """The calls of one program.

    Attributes:
        name: what runs the model.
        seconds: of each call, in order.
        error: the largest difference to the first program's results, relative to their largest element; None of the first, and
            where results are not of the same weights.
    """

    name: str
    seconds: tuple[float, ...]
    error: float | None = None

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self.seconds)

    def as_json(self) -> dict[str, Any]:
        """What ``json.dumps`` takes."""
        low, ninth = min(self.seconds), _percentile(self.seconds, 90)
        times = {"median_seconds": self.median, "least_seconds": low, "p90_seconds": ninth}
        return {"name": self.name, "calls": len(self.seconds), **times, "error": self.error}


def timed_in_turns(calls: Mapping[str, Call], seconds: float) -> list[TimedCalls]:
    """Times all of them for so many seconds together, in turns of some calls; each is called before, once."""
    results = {name: call() for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    end, turns = time.perf_counter() + seconds, 0
    while turns < _LEAST_TURNS or time.perf_counter() < end:
        for name, call in calls.items():
            call()  # its threads wake, its data comes into caches
            times[name] += _turn(call)
        turns += 1
    first = next(iter(results.values()))
    errors = {name: None if found is first else _error(first, found) for name, found in results.items()}
    return [TimedCalls(name, tuple(times[name]), errors[name]) for name in calls]


def _turn(call: Call) -> list[float]:
    found, total = list[float](), 0.0
    while total < _TURN:
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
        total += found[-1]
    return found


def _error(expected: Sequence[Array], found: Sequence[Array]) -> float:
    if [a.shape for a in expected] != [a.shape for a in found]:
        return float("inf")
    pairs = [(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in zip(expected, found, strict=True)]
    return max((float(np.abs(a - b).max(initial=0) / (np.abs(a).max(initial=0) or 1)) for a, b in pairs), default=0.0)


def _percentile(seconds: Sequence[float], percent: int) -> float:
    return float(np.percentile(np.asarray(seconds), percent))


def table_of(timed: Sequence[TimedCalls]) -> list[str]:
    """Lines for people; ratios are of medians, to the first one."""
    rows = [["", "calls", "median", "least", "90% below", "calls/s", "of the first", "differs by"]]
    for t in timed:
        ratio = f"{t.median / timed[0].median:.2f} x"
        error = "" if t.error is None else f"{t.error:.1e}"
        times = [seconds_text(s) for s in (t.median, min(t.seconds), _percentile(t.seconds, 90))]
        rows.append([t.name, str(len(t.seconds)), *times, f"{1 / t.median:.1f}", ratio, error])
    return aligned(rows, range(1, len(rows[0])))


def framework_call(path: str, inputs: Sequence[Array], threads: int) -> tuple[str, Call]:
    """A .pt2 file run by torch as it is, or an .onnx file by ONNX Runtime with its optimizations: its name, and the call.

    Raises:
        RelaxError: it is neither, or what runs it is not installed.
    """
    if path.endswith(".pt2"):
        return _torch_call(path, inputs, threads)
    if path.endswith(".onnx"):
        return _onnxruntime_call(path, inputs, threads)
    raise RelaxError(f"expected a .pt2 or .onnx file to compare with, got '{path}'")


def _torch_call(path: str, inputs: Sequence[Array], threads: int) -> tuple[str, Call]:
    import torch
    from torch.utils import _pytree as pytree

    from ..frontend.saved_program import load_exported_program

    torch.set_num_threads(threads)
    program: Any = load_exported_program(path)
    model: Any = program.module()
    # Dictionaries, tuples and keywords as the model was exported with them; ours are the tensors in them, in their order.
    spec, tensors = program.call_spec.in_spec, [torch.from_numpy(np.array(x)) for x in inputs]
    if spec.num_leaves != len(tensors):
        raise RelaxError(f"expected '{path}' to take {len(tensors)} tensors and nothing else, got {spec.num_leaves} values")
    args, kwargs = pytree.tree_unflatten(tensors, spec)

    def call() -> list[Array]:
        with torch.no_grad():
            found: Any = model(*args, **kwargs)
        return [x.numpy() for x in pytree.tree_leaves(found)]

    return f"torch {torch.__version__}", call


def _onnxruntime_call(path: str, inputs: Sequence[Array], threads: int) -> tuple[str, Call]:
    try:
        import onnxruntime
    except ImportError as error:
        raise RelaxError("expected onnxruntime to be installed: pip install onnxruntime") from error
    runtime: Any = onnxruntime
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    open_regular(path).close()  # its own messages first
    try:
        session: Any = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its classes have no name of their own to import
        raise RelaxError(f"'{path}': expected a model that onnxruntime loads, got {error}") from error
    feeds = {i.name: x for i, x in zip(session.get_inputs(), inputs, strict=True)}
    return f"onnxruntime {runtime.__version__}", lambda: list(session.run(None, feeds))
