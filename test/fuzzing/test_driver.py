"""The driver of ``make fuzz`` on generators that find, refuse, crash and hang on purpose."""

from __future__ import annotations

import mmap
import os
import signal
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fuzzing import __main__ as command
from fuzzing import reduction, targets
from fuzzing.driver import Tally, fuzz
from fuzzing.generators import GENERATORS, Generator
from fuzzing.worker import MEMORY, Outcome, outcomes
from relaxir.lowering.target import TARGETS


def made_up(seed: int) -> str | None:
    """Every fifth seed is of another kind."""
    if seed % 5 == 1:
        return "it is odd"
    if seed % 5 == 2:
        raise AssertionError(f"expected 1, got {seed}\nmore")
    if seed % 5 == 3:
        print("last words", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if seed % 5 == 4:
        while True:
            pass
    return None


@pytest.fixture(autouse=True)
def _made_up_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("made_up")
    module.check = made_up  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_up", module)


@pytest.fixture
def finds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds of finds. The driver's time is up when there are two: how fast a machine is decides nothing."""
    found, add = list[int](), Tally.add

    def noted(self: Tally, outcome: Outcome) -> None:
        add(self, outcome)
        found.extend([outcome.seed] * outcome.is_find)

    monkeypatch.setattr(Tally, "add", noted)
    monkeypatch.setattr("fuzzing.driver.time", SimpleNamespace(monotonic=lambda: 1e9 * (len(found) >= 2)))
    monkeypatch.setattr("fuzzing.worker._WAITING", 1000)
    return found


def test_outcomes_are_told_apart_and_deaths_do_not_end_the_run() -> None:
    found = list(outcomes(made_up, range(6), seconds=1))
    assert [(o.seed, o.kind, o.reason) for o in found] == [
        (0, "equal", ""),
        (1, "refused", "it is odd"),
        (2, "mismatch", "AssertionError: expected 1, got 2"),
        (3, "death", "SIGSEGV"),
        (4, "death", "out of time"),
        (5, "equal", ""),
    ]
    assert "last words" in found[3].detail
    assert "in made_up" in found[2].detail


def test_seeds_are_consecutive_and_finds_are_counted_with_their_seeds(finds: list[int]) -> None:
    told = []
    (tally,) = fuzz([Generator("made-up", "made_up", budget=1, seconds=1)], 0.5, 10, found=lambda g, f: told.append(f.seed))
    assert told == finds
    assert tally.runs == tally.next_seed - 10 >= 3
    assert tally.refusals["it is odd"] >= 1
    assert told[:2] == [12, 13]
    lines = str(tally).splitlines()
    assert lines[0].startswith(f"made-up: {tally.runs} runs, ")
    assert "  mismatch: make fuzz ONLY=made-up SEED=12: AssertionError: expected 1, got 12" in lines
    assert "  death: make fuzz ONLY=made-up SEED=13: SIGSEGV" in lines


@pytest.mark.parametrize(("seed", "code"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_one_seed_can_be_run_again(
    seed: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(GENERATORS, "made-up", Generator("made-up", "made_up", budget=1, seconds=1))
    assert command.main(["--only", "made-up", "--seed", str(seed)]) == code
    assert f"made-up, seed {seed}: " in capsys.readouterr().out


@pytest.mark.usefixtures("finds")
def test_a_find_is_an_exit_code_of_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(GENERATORS, "made-up", Generator("made-up", "made_up", budget=1, seconds=1))
    assert command.main(["--only", "made-up", "--minutes", "0.005", "--from", "12"]) == 1
    assert "mismatch: make fuzz ONLY=made-up SEED=12: " in capsys.readouterr().out


def test_an_unknown_generator_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(["--only", "nothing"])
    assert "expected generators out of modules, " in capsys.readouterr().err


def test_seeds_may_map_as_much_whatever_the_parent_has() -> None:
    def check(seed: int) -> None:
        mmap.mmap(-1, MEMORY // 2 if seed == 0 else 2 * MEMORY, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ).close()

    with mmap.mmap(-1, MEMORY, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ):
        assert [o.kind for o in outcomes(check, [0, 1], seconds=10)] == ["equal", "mismatch"]


def test_each_graph_meets_all_cpus_on_seeds_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    met = list[tuple[Any, str]]()
    sys.modules["made_up"].check = targets.compiled  # type: ignore[attr-defined]
    monkeypatch.setattr(targets, "compile_for", lambda module, name, checked: met.append((module, name)))
    (everywhere,) = (g for g in Generator("made-up", "made_up", 1, gpu_budget=1).elsewhere() if g.name == "made-up-cpus")
    for seed in range(2 * everywhere.budget):
        everywhere.check(seed)
    assert met == [(graph, name) for graph in (0, 1) for name in TARGETS]


@pytest.mark.usefixtures("finds")
def test_finds_of_modules_are_reduced_once_for_each_kind(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def check_seeded(text: str, seed: int) -> None:
        assert seed % 2 == 0 or "needle" not in text, f"{seed} is odd"

    made = sys.modules["made_up"]
    made.text = lambda seed: f"hay {seed}\na needle\n"  # type: ignore[attr-defined]
    made.check_seeded = check_seeded  # type: ignore[attr-defined]
    made.check = lambda seed: check_seeded("needle", seed)  # type: ignore[attr-defined]
    monkeypatch.setitem(GENERATORS, "made-up", Generator("made-up", "made_up", budget=1, seconds=5))
    monkeypatch.setattr(reduction, "FOLDER", tmp_path)
    assert command.main(["--only", "made-up", "--minutes", "0.001", "--from", "12"]) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["made-up-13.mlir"]
    assert (tmp_path / "made-up-13.mlir").read_text() == "needle"
    assert f"made-up, seed 13, reduced: {tmp_path / 'made-up-13.mlir'}" in capsys.readouterr().out
