"""Arguments of public functions, one of them wrong at a time: a RelaxError, and nothing is written or changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import relaxir as rx
from relaxir import RelaxError
from relaxir.runtime.executable import Executable
from relaxir.weights import ArraySpec, Checkpoint, LazyTensor, StreamWriter, write_safetensors
from support.hand_compiled import scaled_executable

RAW = {"w": np.array([1, 2, 3, 4], np.float32), "bias": np.array([1, 2, 3], np.int8)}
ONES = np.ones((2, 4), np.float32)
SPEC = ArraySpec(np.dtype(np.float32), (4,))
MODULE = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}"""

NOTHING, FLAG, TRUE, HALF, NAN, HUGE = None, False, True, 2.5, float("nan"), 10**30
TEXTS: list[object] = ["nope", "\ud800", "a\0b", ""]
OBJECTS: list[object] = [b"x", [], [1], {}, {"a": 1}, {1: 2}, object(), int, np.zeros(3), np.float32(2), torch.zeros(2)]
NUMBERS: list[object] = [0, -1, HALF, NAN]
ANYTHING: list[object] = [NOTHING, FLAG, TRUE, HUGE, 3, *NUMBERS, *TEXTS, *OBJECTS]


def without(*right: object) -> list[object]:
    return [v for v in ANYTHING if repr(v) not in map(repr, right)]


def setting_threads(executable: Executable) -> Callable[[Any], object]:
    return lambda v: setattr(executable, "threads", v)


def writing(**wrong: Any) -> None:
    """A file with everything right but for what is given."""
    StreamWriter(**({"path": "o", "specs": {"w": SPEC}} | wrong)).abort()


M = rx.Module.parse(MODULE)
CASES: dict[str, tuple[Callable[[Executable], Callable[[Any], object]], list[object]]] = {
    "compile": (lambda e: lambda v: rx.compile(v, cache=False), ANYTHING),
    "compile target": (lambda e: lambda v: rx.compile(M, v, cache=False), ANYTHING),
    "compile pipeline": (lambda e: lambda v: rx.compile(M, pipeline=v), without(None, "")),
    "compile cache": (lambda e: lambda v: rx.compile(M, cache=v), without(True, False)),
    "compile weights": (lambda e: lambda v: rx.compile(M, weights=v), without(None)),
    "compile activations": (lambda e: lambda v: rx.compile(M, activations=v), without(None)),
    "parse": (lambda e: rx.Module.parse, without("", b"x")),
    "parse name": (lambda e: lambda v: rx.Module.parse(MODULE, v), without("nope", "a\0b", "")),
    "run": (lambda e: M.run, without("")),
    "evaluate": (lambda e: lambda v: rx.evaluate(v, "main"), ANYTHING),
    "evaluate function": (lambda e: lambda v: rx.evaluate(M, v, np.zeros(4, np.float32)), ANYTHING),
    "evaluate input": (lambda e: lambda v: rx.evaluate(M, "main", v), ANYTHING),
    "evaluate weights": (lambda e: lambda v: rx.evaluate(M, "main", np.zeros(4, np.float32), weights=v), without(None, {})),
    "prepare": (lambda e: e.prepare, ANYTHING),
    "prepare jobs": (lambda e: lambda v: e.prepare(RAW, jobs=v), without(1, 3, HUGE)),
    "prepare progress": (lambda e: lambda v: e.prepare(RAW, progress=v), without(None, int)),
    "prepare rename": (lambda e: lambda v: e.prepare(RAW, rename=v), without(None, [], {}, "")),
    "prepare cast": (lambda e: lambda v: e.prepare(RAW, cast=v), without(True, False)),
    "prepare only": (lambda e: lambda v: e.prepare("raw", "o", only=v), without(None)),
    "prepare rank": (lambda e: lambda v: e.prepare("raw", "o", rank=v, world=2), without(1, 0)),
    "prepare world": (lambda e: lambda v: e.prepare("raw", "o", world=v), without(1, 3, HUGE)),
    "prepare shard size": (lambda e: lambda v: e.prepare("raw", "o", shard_size=v), without(None, 1, 3, HUGE)),
    "prepare memory limit": (lambda e: lambda v: e.prepare("raw", "o", memory_limit=v), without(None, HUGE)),
    "load weights": (lambda e: e.load_weights, ANYTHING),
    "update": (lambda e: e.update, ANYTHING),
    "verify": (lambda e: e.verify, ANYTHING),
    "bind": (lambda e: e.bind, ANYTHING),
    "bind verify": (lambda e: lambda v: e.bind(e.prepare(RAW), verify=v), without(False)),
    "state": (lambda e: e.new_state, without(None, {})),
    "call": (lambda e: e, ANYTHING),
    "call entry": (lambda e: lambda v: e(ONES, entry=v), without(None)),
    "call state": (lambda e: lambda v: e(ONES, state=v), without(None)),
    "call out": (lambda e: lambda v: e(ONES, out=v), without(None, {})),
    "threads": (setting_threads, without(None, 1, 3, HUGE)),
    "executable": (lambda e: Executable, ANYTHING),
    "executable library": (lambda e: lambda v: Executable(e.manifest.data, v), ANYTHING),
    "executable code": (lambda e: lambda v: Executable(e.manifest.data, object_code=v), ANYTHING),
    "tensor name": (lambda e: Checkpoint("raw").get, ANYTHING),
    "tensors": (lambda e: lambda v: write_safetensors("o", v), without({})),
    "tensors metadata": (lambda e: lambda v: write_safetensors("o", RAW, v), without(None, {})),
    "metadata value": (lambda e: lambda v: write_safetensors("o", RAW, {"a": v}), without("nope", "a\0b", "")),
    "tensor": (lambda e: lambda v: write_safetensors("o", {"w": v}), without(np.zeros(3), np.float32(2), torch.zeros(2))),
    "lazy spec": (lambda e: lambda v: LazyTensor(v, lambda: RAW["w"]), ANYTHING),
    "lazy function": (lambda e: lambda v: LazyTensor(SPEC, v), without(int)),
    "writer specs": (lambda e: lambda v: writing(specs=v), without({})),
    "writer dtype": (lambda e: lambda v: writing(specs={"w": ArraySpec(v, (1,))}), ANYTHING),
    "writer shape": (lambda e: lambda v: writing(specs={"w": ArraySpec(np.dtype(np.int8), v)}), ANYTHING),
    "writer key": (lambda e: lambda v: writing(resume_key=v), without(None, "nope", "a\0b", "")),
    "writer checksums": (lambda e: lambda v: writing(checksums=v), without(True, False)),
    "writer flush": (lambda e: lambda v: writing(flush_bytes=v), without(1, 3, HUGE)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    monkeypatch.chdir(tmp_path)
    write_safetensors("raw", RAW)
    executable = scaled_executable()
    executable.bind(executable.prepare(RAW))
    call, values = CASES[case]
    for value in values:
        try:
            call(executable)(value)
        except RelaxError:
            continue
        pytest.fail(f"{case}: expected {value!r} to be refused")
    assert os.listdir(tmp_path) == ["raw"]
    assert executable(ONES).tolist() == [[2, 4, 6, 8]] * 2


def test_more_jobs_than_steps() -> None:
    assert scaled_executable().prepare(RAW, jobs=HUGE)["w"].tolist() == [2, 4, 6, 8]
    assert scaled_executable().prepare(RAW, jobs=np.int64(2))["w"].tolist() == [2, 4, 6, 8]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rx.compile(M, checked=1), "expected checked as True or False, got int"),
        (lambda: rx.compile(M, pipeline="\ud800"), r"got '\\ud800', which is not Unicode text"),
    ],
)
def test_what_is_wrong_is_said(call: Callable[[], object], message: str) -> None:
    with pytest.raises(RelaxError, match=message):
        call()
