"""``relaxir plan``: what each rank of a preparation reads, writes and takes, without weights."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

import relaxir
from relaxir.tools import cli
from relaxir.tools.cli_plan import Rates, plan_lines
from relaxir.tools.llama import LlamaConfig, build_llama
from relaxir.tools.sizes import byte_count, byte_rate
from support.hand_compiled import executable_of, scaled_manifest


@pytest.fixture(scope="module")
def llama() -> relaxir.Executable:
    """Two layers of a model with the sizes of Llama 3.1 405B: https://huggingface.co/meta-llama/Llama-3.1-405B."""
    return relaxir.compile(build_llama(LlamaConfig(layers=2, hidden=16384, heads=128, kv_heads=8, ffn=53248, vocab=128256)))


def test_a_model_that_no_machine_holds_is_planned_without_its_weights(llama: relaxir.Executable) -> None:
    text = "\n".join(plan_lines(llama.manifest, world=4, shard_size=5 * 10**9, rates=Rates(3e9)))
    assert "prepare on 4 ranks, 1 job each: " in text
    rows = re.findall(r"^ *(\d+) +(\d+) +(\S+ GiB) +(\S+ GiB) +(\d+) +(\S+ GiB) +([0-9.]+)$", text, re.MULTILINE)
    assert [int(r[0]) for r in rows] == [0, 1, 2, 3]
    assert sum(int(r[1]) for r in rows) == len(llama.manifest.steps)
    assert f"predicted: {max(float(r[-1]) for r in rows)} s for the slowest rank" in text
    assert "all: reads 15.8 GiB of 15.8 GiB raw weights, writes " in text


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    executable_of(scaled_manifest()).save(tmp_path / "model.relax")
    arguments = ["plan", str(tmp_path / "model.relax"), "--world", "3", "--jobs", "2", "--disk", "4B/s", "--network", "16bit/s"]
    assert cli.run(arguments) == 0
    assert capsys.readouterr().out.splitlines() == [
        "prepare on 3 ranks, 2 jobs each: 2 files",
        "rank  steps  reads  writes  files  peak memory  seconds",
        "   0      1   16 B    16 B      1        288 B      8.0",
        "   1      1    3 B     3 B      1          6 B      1.5",
        "   2      0    0 B     0 B      0          0 B      0.0",
        "all: reads 19 B of 19 B raw weights, writes 19 B",
        "predicted: 8.0 s for the slowest rank, moving bytes alone; computing goes on meanwhile",
    ]


def test_a_disk_that_holds_both_moves_both() -> None:
    assert Rates(2.0).seconds(6, 4) == 5
    assert Rates(2.0, 1.0).seconds(6, 4) == 6
    assert Rates(1.0, 100.0).seconds(6, 4) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--world", "0"], "expected a world of 1 rank or more, got 0"),
        (["--jobs", "0"], "expected 1 job or more, got 0"),
        (["--network", "1GB/s"], "expected --disk with --network, got none"),
        (["--shard-size", "5Gbit"], "argument --shard-size: expected a size such as 5GB or 512MiB, got '5Gbit'"),
        (["--disk", "3GB"], "argument --disk: expected a rate such as 3GB/s or 25Gbit/s, got '3GB'"),
    ],
)
def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    executable_of(scaled_manifest()).save(tmp_path / "model.relax")
    code, error = cli.run(["plan", str(tmp_path / "model.relax"), *arguments]), capsys.readouterr().err
    assert code == (2 if "(see 'relaxir plan --help')" in error else 1)
    assert message in error


@pytest.mark.parametrize(
    ("text", "count"),
    [("4096", 4096), ("1KiB", 1024), ("2 kB", 2000), ("5GB", 5 * 10**9), ("1.5 GiB", 3 << 29), ("0.5MiB", 1 << 19), ("7B", 7)],
)
def test_sizes(text: str, count: int) -> None:
    assert byte_count(text) == count


@pytest.mark.parametrize("text", ["", "0", "-1GB", "5gb", "GB", "1e9", "5GB/s", "٣GB", "0.1B"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        byte_count(text)


@pytest.mark.parametrize(("text", "rate"), [("3GB/s", 3e9), ("25Gbit/s", 25e9 / 8), ("100MiB/s", 100 * 2**20), ("8bit/s", 1)])
def test_rates(text: str, rate: float) -> None:
    assert byte_rate(text) == rate


@pytest.mark.parametrize("text", ["3GB", "0GB/s", "/s", "3/h", "GB/s"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        byte_rate(text)
