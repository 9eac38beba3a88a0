"""Measured plans: what ``tune`` writes changes what compilation chooses, and no result."""

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cuda.emulator.findings import Finding
from relaxir.lowering.cuda.emulator.machine import Machine
from relaxir.lowering.cuda.plan_choices import collecting_choices
from relaxir.lowering.cuda.plan_table import MeasuredPlan, PlanTable
from relaxir.tuning import tune
from support.device_cases import Case, product
from support.emulated_cuda import TARGET, plans, random
from support.naive import assert_close

_ROWS, _DEPTH, _COLUMNS = 24, 64, 128
_WIDE = "tile=64x64x32 warps=2x2 stages=4 by=bf16 copies=16:16 raster=8 store=8"
# Of shared memory, by the plan that differs least from the chosen one: tiles of 16 and 64 rows of 64 bytes.
_BYTES_OF_3_STAGES = 3 * (16 + 64) * 64


@functools.cache
def _module(rows: int = _ROWS) -> rx.Module:
    return Case(product(rows, _DEPTH, _COLUMNS, epilogue=True)).module()


def _inputs(executable: rx.Executable) -> tuple[str, list[Any]]:
    return "main", [random((_ROWS, _DEPTH), "bf16")]


def _longer_each_time(until: int) -> Callable[..., Mapping[str, float]]:
    """A timer by which all plans but one take a second."""
    rounds = iter(range(100))

    def timer(executable: rx.Executable, call: Callable[[], Any]) -> Mapping[str, float]:
        with executable.kernel_times() as times:
            call()
        assert all(seconds > 0 for seconds in times.values())
        return dict.fromkeys(times, 0.25 if next(rounds) == until else 1.0)

    return timer


def _tuned(folder: Path, module: rx.Module, **options: Any) -> Any:
    return tune(module, TARGET, _inputs, str(folder), device="emulated", candidates=3, told=lambda text: None, **options)


@functools.cache
def _key() -> str:
    """That of the module's product."""
    with collecting_choices() as choices:
        rx.compile(_module(), TARGET, cache=False, device="emulated")
    (choice,) = choices.found.values()
    return choice.key


def _written(folder: Path, plan: str = _WIDE) -> Path:
    """A folder with a plan for the module's product."""
    PlanTable.of("sm_80", [MeasuredPlan(_key(), plan, 1.0, "nowhere")]).write(str(folder))
    return folder


def test_the_fastest_plan_is_what_is_compiled_from_then_on(tmp_path: Path):
    (found,) = _tuned(tmp_path, _module(), timer=_longer_each_time(until=2))
    assert (found.chosen_seconds, found.seconds, found.measured) == (1.0, 0.25, 3)
    assert found.best != found.chosen
    before, after = (rx.compile(_module(), TARGET, device="emulated", plan_table=t) for t in (None, tmp_path))
    assert plans(before) == [found.chosen]
    assert plans(after) == [found.best]
    weights = {"w": random((_COLUMNS, _DEPTH), "bf16", 1), "b": random((_COLUMNS,), "bf16", 2)}
    x = random((_ROWS, _DEPTH), "bf16")
    results = [np.asarray(e.bind(e.prepare(weights))(x)) for e in (before, after)]
    assert_close(results[1], results[0])


def test_the_emulators_clock_tunes_as_well(tmp_path: Path):
    (found,) = _tuned(tmp_path, _module())
    assert 0 < found.seconds <= found.chosen_seconds
    content = json.loads((tmp_path / "sm_80.json").read_text())
    assert [(p["key"], p["plan"]) for p in content["plans"]] == [(found.key, found.best)]
    assert content["plans"][0]["device"] == "emulated sm_80 (compute capability 8.0)"


def test_rows_of_a_class_share_a_plan_and_others_do_not(tmp_path: Path):
    _written(tmp_path)
    chosen = {
        rows: plans(rx.compile(_module(rows), TARGET, device="emulated", cache=False, plan_table=tmp_path)) for rows in (32, 33)
    }
    assert chosen[32] == [_WIDE]
    assert chosen[33] != [_WIDE]


def test_few_rows_are_tuned_and_the_table_grows(tmp_path: Path):
    (found,) = tune(
        _module(1), TARGET, lambda e: ("main", [random((1, _DEPTH), "bf16")]), str(_written(tmp_path)), device="emulated",
        candidates=2, timer=_longer_each_time(until=1), told=lambda text: None,
    )  # fmt: skip
    assert found.key.startswith("matvec rows=1 ")
    assert len(json.loads((tmp_path / "sm_80.json").read_text())["plans"]) == 2
    assert plans(rx.compile(_module(1), TARGET, device="emulated", plan_table=tmp_path)) == [found.best] != [found.chosen]


def test_a_table_of_another_architecture_is_not_asked(tmp_path: Path):
    (tmp_path / "sm_90a.json").write_text("no table")
    executable = rx.compile(_module(), TARGET, device="emulated", cache=False, plan_table=tmp_path)
    assert plans(executable) == plans(rx.compile(_module(), TARGET, device="emulated"))


def test_the_environment_says_where_plans_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAXIR_PLAN_TABLE", str(_written(tmp_path)))
    assert plans(rx.compile(_module(), TARGET, device="emulated")) == [_WIDE]
    rx.compile(_module(), "cpu")
    monkeypatch.setenv("RELAXIR_PLAN_TABLE", str(tmp_path / "nowhere"))
    rx.compile(_module(), "cpu")
    with pytest.raises(RelaxError, match=r"expected a folder with measured plans in RELAXIR_PLAN_TABLE, got '.*nowhere'"):
        rx.compile(_module(), TARGET, device="emulated")


def _compiled(folder: Path, target: str = TARGET) -> rx.Executable:
    return rx.compile(_module(), target, plan_table=folder, **({} if target == "cpu" else {"device": "emulated"}))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (_WIDE.replace("store=8", "store=3"), r"expected store to divide 8, got 3: measured for 'product .*', measure again"),
        ("columns=4 warps=2x2 steps=8 loads=2", r"expected a plan of .*: measured for 'product .*', measure again"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(tmp_path: Path, plan: str, message: str):
    with pytest.raises(RelaxError, match=message):
        _compiled(_written(tmp_path, plan))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"sm_80\.json: expected JSON, got "),
        ('{"version": 2}', r"sm_80\.json\.version: expected 1, got 2"),
        ('{"version": 1, "architecture": "sm_90a"}', r"sm_80\.json\.architecture: expected 'sm_80', got 'sm_90a'"),
        (
            '{"version": 1, "architecture": "sm_80", "plans": [{"key": "", "plan": "", "device": "", "seconds": -1}]}',
            r"sm_80\.json\.plans\[0\]\.seconds: expected a number of 0 or more, got -1",
        ),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: str, message: str):
    (tmp_path / "sm_80.json").write_text(content)
    with pytest.raises(RelaxError, match=message):
        _compiled(tmp_path)


def test_what_else_is_refused(tmp_path: Path):
    with pytest.raises(RelaxError, match=r"^expected a folder with measured plans, got '.*none'$"):
        _compiled(tmp_path / "none")
    (tmp_path / 'a"b').mkdir()
    with pytest.raises(RelaxError, match=r"^expected a folder of measured plans without quotes in its name, got '"):
        _compiled(tmp_path / 'a"b')
    with pytest.raises(RelaxError, match=r"^expected code for GPUs with a table of measured plans, got target 'cpu'$"):
        _compiled(tmp_path, "cpu")
    with pytest.raises(RelaxError, match=r"^expected a target for GPUs, whose kernels can be timed one by one, got 'cpu'$"):
        tune(_module(), "cpu", _inputs, str(tmp_path))
    with pytest.raises(RelaxError, match=r"^expected a number of candidates from 1 on, got 0$"):
        tune(_module(), TARGET, _inputs, str(tmp_path), candidates=0)


def test_an_entry_without_products_is_refused(tmp_path: Path):
    builder = rx.Builder()
    with builder.function("main"):
        builder.output(builder.relu(builder.input("x", (_ROWS, _DEPTH), "bf16")))
    with pytest.raises(RelaxError, match=r"^expected an entry that launches products with plans, got one that launches none$"):
        _tuned(tmp_path, builder.build())


def test_other_results_are_told(tmp_path: Path):
    inputs = iter(range(100))

    def changing(executable: rx.Executable) -> tuple[str, list[Any]]:
        return "main", _Changing(inputs)

    (found,) = tune(_module(), TARGET, changing, str(tmp_path), device="emulated", candidates=2, told=lambda text: None)
    assert [f.reason for f in found.failed] == ["expected the results that other plans give, got other ones"]
    assert found.best == found.chosen


def _two_products() -> rx.Module:
    builder = rx.Builder()
    with builder.function("main"):
        x = builder.input("x", (_ROWS, _DEPTH), "bf16")
        hidden = builder.matmul(x, builder.weight("w", (_DEPTH, _COLUMNS), "bf16"))
        builder.output(builder.matmul(hidden, builder.weight("v", (_COLUMNS, 192), "bf16")))
    return builder.build()


def _refusing(monkeypatch: pytest.MonkeyPatch, refused: Callable[[tuple[int, ...], int], bool]) -> None:
    """An emulated device without resources for launches of some grids and bytes of shared memory."""
    check = Machine.check

    def checked(machine: Machine, kernel: Any, grid: Any, block: Any, shared: int) -> None:
        if refused(grid, shared):
            raise Finding("launch", "expected fewer registers", kernel.name)
        check(machine, kernel, grid, block, shared)

    monkeypatch.setattr(Machine, "check", checked)


def test_a_plan_that_fails_is_told_and_the_others_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    told: list[str] = []
    _refusing(monkeypatch, lambda grid, shared: grid[0] == 4 and shared == _BYTES_OF_3_STAGES)
    first, second = tune(_two_products(), TARGET, _inputs, str(tmp_path), device="emulated", candidates=3, told=told.append)
    (failed,) = first.failed
    assert (failed.key, "columns=128" in failed.key, " stages=3 " in failed.plan) == (first.key, True, True)
    assert "expected fewer registers" in failed.reason
    assert "contraction" in failed.reason
    assert (first.measured, second.measured, second.failed) == (2, 3, ())
    assert first.best != failed.plan
    assert [line.partition(":")[0] for line in told[1:]] == ["round 1 of 2", "round 2 of 2"]


def test_a_device_that_fails_from_then_on_ends_the_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    broken: list[int] = []

    def refused(grid: tuple[int, ...], shared: int) -> bool:
        broken.extend([shared] if shared == _BYTES_OF_3_STAGES else [])
        return bool(broken)

    told: list[str] = []
    _refusing(monkeypatch, refused)
    (found,) = tune(_module(), TARGET, _inputs, str(tmp_path), device="emulated", candidates=4, told=told.append)
    assert len(found.failed) == found.measured == len(json.loads((tmp_path / "sm_80.json").read_text())["plans"]) == 1
    assert told[1] == "round 1 of 3: failed"
    assert told[2].startswith("the device does not work any more behind the plan that failed last: ")
    assert len(told) == 3


class _Changing(list[Any]):
    """Inputs that are others whenever they are asked for."""

    def __init__(self, seeds: Any):
        super().__init__()
        self._seeds = seeds

    def __iter__(self) -> Any:
        return iter([random((_ROWS, _DEPTH), "bf16", next(self._seeds))])


def test_launches_of_a_cpu_are_not_timed_and_those_of_a_gpu_once():
    with pytest.raises(RelaxError, match=r"^expected code for GPUs, whose launches are timed, got code of a CPU$"):
        rx.compile(_module(), "cpu").kernel_times()
    executable = rx.compile(_module(), TARGET, device="emulated")
    with (
        pytest.raises(RelaxError, match=r"^expected one that times launches, got another one meanwhile$"),
        executable.kernel_times(),
        executable.kernel_times(),
    ):
        pass


def test_times_are_of_calls_within_the_block_and_graphs_go_on_behind_it():
    executable = rx.compile(_module(), TARGET, device="emulated")
    executable.bind(executable.prepare({"w": random((_COLUMNS, _DEPTH), "bf16", 1), "b": random((_COLUMNS,), "bf16", 2)}))
    x = random((_ROWS, _DEPTH), "bf16")
    first = executable(x)
    with executable.kernel_times() as once:
        executable(x)
    with executable.kernel_times() as twice:
        results = [executable(x) for _ in range(2)]
    assert once.keys() == twice.keys()
    assert all(twice[name] == pytest.approx(2 * once[name], rel=0.01) for name in once)
    for result in (*results, executable(x), executable(x), executable(x)):
        np.testing.assert_array_equal(result, first)
