"""The parts of torch_peers.py: cases, what is said of results, which cases are drawn, and relaxir's own column."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parent))  # as scripts they import one another by name

import torch_peers  # noqa: E402
from model_runs import MEMORY  # noqa: E402
from peer_process import PeerProcess  # noqa: E402

RUNNERS = Path(torch_peers.__file__).with_name("torch_runners.py")


class Scaled(torch.nn.Module):
    def __init__(self, factor: float):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.factor = factor

    def forward(self, x):
        return [self.linear(x) * self.factor, x.argmax(-1)]


class Unordered(torch.nn.Module):
    """Of equal numbers torch leaves open which are taken."""

    def forward(self, x):
        return list(torch.topk(x, 2))


class Random(torch.nn.Module):
    def forward(self, x):
        return [x + torch.rand(3, 4)]


class Refused(torch.nn.Module):
    def forward(self, x):
        return [torch.special.bessel_j0(x)]


def build(name):
    torch.manual_seed(0)
    makers = {"scaled": lambda: Scaled(2.0), "unordered": Unordered, "random": Random, "refused": Refused}
    return makers[name.split("|")[0]]().eval(), (torch.tensor([[0.5, 1.0, 1.0, 1.0]] * 3),)


@pytest.fixture
def suite(monkeypatch):
    monkeypatch.setitem(torch_peers.SUITES, "own", (lambda: [], build))
    return "own"


class Known:
    """Stands for a process: writes what it is told to for a case, or answers so."""

    def __init__(self, results):
        self.results, self.asked = results, 0

    def ask(self, folder):
        self.asked += 1
        if isinstance(self.results, tuple):
            return self.results
        torch.save(self.results(Path(folder)), Path(folder, "known.pt"))
        return "ran", ""


def wanted(folder):
    return torch.load(folder / "wanted.pt")[0]


def test_results_are_compared_in_torchs_dtype(tmp_path):
    assert torch_peers.made(build, "scaled", tmp_path)
    for results, kind in (
        (lambda first, places: [first.double(), places.int()], "right"),
        (lambda first, places: [first + 1e-2, places], "wrong"),
        (lambda first, places: [first, places + 1], "wrong"),
        (lambda first, places: [first], "wrong"),
    ):
        torch.save(results(*wanted(tmp_path)), tmp_path / "known.pt")
        assert torch_peers.judged("known", tmp_path)[0] == kind


def test_of_equals_the_first_ones_are_right_too(tmp_path):
    assert torch_peers.made(build, "unordered", tmp_path)
    torch.save([torch.ones(3, 2), torch.tensor([[1, 2]] * 3)], tmp_path / "known.pt")
    assert torch_peers.judged("known", tmp_path) == ("right", "")
    torch.save([torch.ones(3, 2), torch.tensor([[0, 1]] * 3)], tmp_path / "known.pt")
    assert torch_peers.judged("known", tmp_path)[0] == "wrong"


def test_a_case_has_its_memory_beside_what_is_mapped_already(tmp_path):
    with mmap.mmap(-1, 2 * MEMORY, flags=mmap.MAP_PRIVATE, prot=0):  # no memory behind it
        assert torch_peers.made(build, "scaled", tmp_path)


def test_random_results_are_no_case(tmp_path):
    assert not torch_peers.made(build, "random", tmp_path)


def test_cases_are_counted_until_there_are_enough_and_kept(suite, tmp_path):
    names = ["scaled|0", "random", "scaled|1", "scaled|2"]
    good, bad = Known(wanted), Known(("died", "the process ended with -11"))
    peers = {"known": good, "other": bad}
    keep = tmp_path / "kept.jsonl"
    row = {"known": "right", "other": "died"}
    assert torch_peers.outcomes(suite, names, 2, peers, keep) == {"scaled|0": row, "scaled|1": row}
    assert good.asked == bad.asked == 2
    assert torch_peers.outcomes(suite, names, 3, peers, keep) == {n: row for n in ("scaled|0", "scaled|1", "scaled|2")}
    assert good.asked == 3


def test_relaxirs_column(suite, tmp_path):
    process = PeerProcess([sys.executable, str(RUNNERS), "relaxir"], 300, 300)
    try:
        found = torch_peers.outcomes(
            suite, ["scaled", "unordered", "refused"], 3, {"relaxir": process}, tmp_path / "kept.jsonl"
        )
    finally:
        process.close()
    assert {name: row["relaxir"] for name, row in found.items()} == {
        "scaled": "right",
        "unordered": "right",
        "refused": "refused",
    }


ANSWERS = """
import sys, os, time
print("ready", flush=True)
for line in sys.stdin:
    {"end": lambda: os._exit(3), "wait": lambda: time.sleep(60)}.get(line.strip(), lambda: print('["ran", ""]', flush=True))()
"""


def test_a_process_is_started_again_behind_what_ended_it():
    process = PeerProcess([sys.executable, "-c", ANSWERS], 60, 5)
    try:
        found = [process.ask(line) for line in ("a", "end", "b", "wait", "c")]
    finally:
        process.close()
    assert [kind for kind, _ in found] == ["ran", "died", "ran", "late", "ran"]
    assert found[1][1] == "the process ended with 3"
