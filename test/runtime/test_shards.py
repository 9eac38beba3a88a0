"""Prepared weights in several files, written by one process or by several that know nothing of each other."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaxir import RelaxError
from relaxir.lowering.manifest import Manifest
from relaxir.runtime.ranks import environment_rank
from relaxir.runtime.shards import plan_shards, read_bytes_of, written_bytes_of
from relaxir.weights import Checkpoint, write_safetensors
from relaxir.weights.arrays import ArraySpec
from relaxir.weights.sharded import SOURCE, ShardedWriter, content_digest
from support.hand_compiled import doubling, manifest, tensor

F32 = np.dtype(np.float32)
SHARDS = [{"a": ArraySpec(F32, (4,)), "b": ArraySpec(F32, (2,))}, {"c": ArraySpec(F32, (8,))}, {"d": ArraySpec(F32, (1,))}]


def copying(sizes: list[int], shared: bool = False) -> Manifest:
    """Copies of weights of so many elements, by two and two where they are shared."""
    raw = {f"r{i // (1 + shared)}": sizes[i // (1 + shared) * (1 + shared)] for i in range(len(sizes))}
    steps = [
        {"symbol": "double", "gets": [f"r{i // (1 + shared)}"], "sets": [f"p{i}"], "arena_bytes": 0} for i in range(len(sizes))
    ]
    return Manifest.of(
        manifest(
            raw_weights=[tensor(n, [s]) for n, s in raw.items()],
            prepared_weights=[tensor(f"p{i}", [s], sources=[steps[i]["gets"][0]]) for i, s in enumerate(sizes)],
            steps=steps,
        )
    )


def least_possible(costs: list[int], count: int) -> int:
    """By trying all ways to cut."""
    cuts = itertools.combinations_with_replacement(range(len(costs) + 1), count - 1)
    return min(max(sum(costs[a:b]) for a, b in zip((0, *c), (*c, len(costs)), strict=True)) for c in cuts)


def test_ranks_own_all_steps_once_and_the_busiest_has_as_little_as_possible() -> None:
    rng = random.Random(3)
    for _ in range(100):
        sizes = [rng.choice([0, 1, 2, 5, 50, 1000]) for _ in range(rng.randrange(7))]
        world = rng.randrange(1, 6)
        m = copying(sizes)
        shards = plan_shards(m, world)
        assert [s for shard in shards for s in shard.steps] == list(m.steps)
        assert [s.rank for s in shards] == sorted({s.rank for s in shards})
        assert all(shard.rank < world and shard.steps for shard in shards)
        assert [n for s in shards for n in s.specs] == list(m.prepared_weights)
        costs = [read_bytes_of(m, s.steps) + written_bytes_of(m, s.steps) for s in shards]
        assert max(costs, default=0) == least_possible([8 * s for s in sizes], world)


def test_files_hold_no_more_than_their_size_but_a_step_stays_whole() -> None:
    shards = plan_shards(copying([4, 4, 4, 100, 1]), shard_size=32)
    assert [list(s.specs) for s in shards] == [["p0", "p1"], ["p2"], ["p3"], ["p4"]]
    assert plan_shards(copying([]), 3) == ()


def test_a_weight_that_two_steps_read_counts_once() -> None:
    m = copying([8, 8, 2, 2], shared=True)
    assert read_bytes_of(m, m.steps) == 40
    assert written_bytes_of(m, m.steps) == 80


def write(path: Path, mine: range | list[int], *, source: str | None = "s", fail_after: int | None = None) -> ShardedWriter:
    with ShardedWriter(path, SHARDS, mine, {"k": "v"}, source=source, resume_key=source) as writer:
        todo = [(i, n) for i in mine for n in SHARDS[i] if n not in writer.done]
        for count, (i, name) in enumerate(todo):
            if count == fail_after:
                raise KeyboardInterrupt
            writer.put(name, np.full(SHARDS[i][name].shape, ord(name), np.float32))
    return writer


def values(path: Path) -> dict[str, float]:
    found = Checkpoint(path)
    return {name: float(found.get(name)[0]) for name in found}


ALL = {n: float(ord(n)) for n in "abcd"}


def test_writers_in_any_order_make_one_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    assert write(path, [2]).missing == (0, 1)
    assert write(path, [0]).missing == (1,)
    assert not (tmp_path / "x.safetensors.index.json").exists()
    last = write(path, [1])
    assert last.missing == ()
    assert last.path == str(tmp_path / "x.safetensors.index.json")
    assert values(path) == values(Path(last.path)) == ALL
    assert Checkpoint(path).metadata == {"k": "v", SOURCE: "s"}
    assert sorted(os.listdir(tmp_path)) == [
        "x-00001-of-00003.safetensors", "x-00002-of-00003.safetensors", "x-00003-of-00003.safetensors",
        "x.safetensors.index.json",
    ]  # fmt: skip
    assert json.loads(Path(last.path).read_text())["metadata"] == {"total_size": 60}


def test_what_others_have_not_written_is_named_when_the_checkpoint_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    write(path, [2])
    with pytest.raises(RelaxError, match=r"expected 3 files and their index, got files without number 1, 2: prepare again"):
        Checkpoint(path)


def test_complete_files_of_the_same_are_kept_and_others_are_written_again(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    write(path, range(3))
    before = {p.name: p.stat().st_ino for p in tmp_path.glob("*.safetensors")}
    assert write(path, range(3)).done == set("abcd")
    assert {p.name: p.stat().st_ino for p in tmp_path.glob("*.safetensors")} == before
    assert write(path, [1], source="other").missing == (0, 2)
    assert not (tmp_path / "x.safetensors.index.json").exists()
    assert {p.name for p in tmp_path.glob("*.safetensors") if p.stat().st_ino == before[p.name]} == {
        "x-00001-of-00003.safetensors", "x-00003-of-00003.safetensors",
    }  # fmt: skip


@pytest.mark.parametrize("fail_after", range(4))
def test_an_interrupted_writer_is_continued(tmp_path: Path, fail_after: int) -> None:
    path = tmp_path / "x.safetensors"
    with pytest.raises(KeyboardInterrupt):
        write(path, range(3), fail_after=fail_after)
    again = write(path, range(3))
    assert len(again.done) >= fail_after
    assert values(path) == ALL


def test_without_a_source_that_can_be_told_everything_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    write(path, range(3), source=None)
    assert write(path, range(3), source=None).done == set()
    assert values(path) == ALL


def test_a_file_that_is_damaged_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    write(path, range(3))
    (tmp_path / "x-00002-of-00003.safetensors").write_bytes(b"nothing")
    assert write(path, range(3)).done == set("abd")
    assert values(path) == ALL


def test_a_tensor_of_others_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(RelaxError, match="expected a tensor that is to be written here, got 'c'"),
        ShardedWriter(tmp_path / "x", SHARDS, [0], {}, source=None, resume_key=None) as writer,
    ):
        writer.put("c", np.zeros(8, np.float32))
    assert not os.listdir(tmp_path)


def test_damage_in_any_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    write(path, range(3))
    found = Checkpoint(path)
    known = found.checksums()
    assert known is not None
    assert found.damaged(known, whole=True) == []
    shard = tmp_path / "x-00002-of-00003.safetensors"
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    assert Checkpoint(path).damaged(known, whole=False) == ["c"]


def test_the_digest_of_files_is_the_same_in_another_folder_and_not_for_other_content(tmp_path: Path) -> None:
    for folder, last in (("one", 1), ("two", 1), ("three", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "w").write_bytes(bytes(100_000) + bytes([last]))
    one, two, three = (content_digest([str(tmp_path / f / "w")]) for f in ("one", "two", "three"))
    assert one == two != three


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, (0, 1)),
        ({"RANK": "1", "WORLD_SIZE": "4"}, (1, 4)),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3"}, (2, 3)),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, (0, 2)),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "8"}, (5, 8)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "RANK": "3", "WORLD_SIZE": "4"}, (3, 4)),
        ({"RANK": "3"}, (0, 1)),
    ],
)
def test_launchers_tell_the_rank(environment: dict[str, str], expected: tuple[int, int]) -> None:
    assert environment_rank(environment) == expected


@pytest.mark.parametrize("rank", ["4", "-1", "x", ""])
def test_a_rank_that_is_none_of_the_world_is_refused(rank: str) -> None:
    with pytest.raises(RelaxError, match=f"expected RANK as a rank below WORLD_SIZE, got '{rank}' and '4'"):
        environment_rank({"RANK": rank, "WORLD_SIZE": "4"})


# -- preparing -----------------------------------------------------------------------------------------------------


def doubled_file(folder: Path, count: int = 6) -> Path:
    write_safetensors(folder / "raw.safetensors", {f"w{i}": np.full(8, i, np.float32) for i in range(count)})
    return folder / "raw.safetensors"


def is_doubled(path: str | Path, count: int = 6) -> bool:
    prepared = Checkpoint(path)
    return len(prepared) == count and all((prepared.get(f"p{i}") == 2 * i).all() for i in range(count))


def test_files_of_a_size_are_what_one_file_is(tmp_path: Path) -> None:
    executable = doubling(6, 8)
    report = executable.prepare(doubled_file(tmp_path), tmp_path / "x.safetensors", jobs=2, shard_size=64)
    assert (report.steps_run, report.steps_skipped, report.prepared_bytes, report.notes) == (6, 0, 192, ())
    assert len(list(tmp_path.glob("x-*-of-00003.safetensors"))) == 3
    assert is_doubled(report.path)
    executable.bind(report, verify=True)
    again = executable.prepare(tmp_path / "raw.safetensors", tmp_path / "x.safetensors", shard_size=64)
    assert (again.steps_run, again.steps_skipped) == (0, 6)


def test_numbers_of_numpy_and_whole_floats(tmp_path: Path) -> None:
    """Ranks and jobs are counted, bytes are also written as ``1e6``."""
    executable, raw, dst = doubling(6, 8), doubled_file(tmp_path), tmp_path / "x.safetensors"
    for rank in range(2):
        given = {"rank": np.int64(rank), "world": np.int32(2), "jobs": np.int8(1)}
        executable.prepare(raw, dst, memory_limit=1e6, shard_size=64.0, **given)  # type: ignore[call-overload]
    assert is_doubled(dst)
    refused = [
        ({"rank": 0.0, "world": 2}, "expected a rank from 0 to 1, got 0.0"),
        ({"memory_limit": 1e6 + 0.5}, "expected a memory limit of 1 byte or more, got 1000000.5"),
        ({"memory_limit": float("nan")}, "expected a memory limit of 1 byte or more, got nan"),
        ({"shard_size": float("inf")}, "expected a shard size of 1 byte or more, got inf"),
        ({"jobs": 2.0}, "expected 1 job or more, got 2.0"),
    ]
    for given, message in refused:
        with pytest.raises(RelaxError, match=re.escape(message)):
            executable.prepare(raw, dst, **given)  # type: ignore[call-overload]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2]])
def test_ranks_in_any_order_make_what_one_makes(tmp_path: Path, order: list[int]) -> None:
    raw, dst = doubled_file(tmp_path, 8), tmp_path / "x.safetensors"
    reports = [doubling(8, 8).prepare(raw, dst, rank=rank, world=4) for rank in order]
    assert [(r.steps_run, r.prepared_bytes) for r in reports] == [(2, 64)] * 4
    assert [bool(r.notes) for r in reports] == [True, True, True, False]
    others = ", ".join(str(rank) for rank in range(4) if rank != order[0])
    assert f"3 of 4 files are not there yet, of rank {others}" in str(reports[0])
    assert is_doubled(dst, 8)
    doubling(8, 8).bind(dst, verify=True)


def test_a_rank_that_died_is_named_and_is_run_again(tmp_path: Path) -> None:
    raw, dst = doubled_file(tmp_path), tmp_path / "x.safetensors"
    executable = doubling(6, 8)
    for rank in (0, 2):
        executable.prepare(raw, dst, rank=rank, world=3)
    with pytest.raises(RelaxError, match=r"expected 3 files and their index, got files without number 2"):
        executable.bind(dst)
    executable.prepare(raw, dst, rank=1, world=3)
    executable.bind(dst)
    executable.prepare(raw, dst, rank=0, world=2)  # begun: what there was is a checkpoint no more
    with pytest.raises(RelaxError, match=r"expected 2 files and their index, got files without number 2"):
        executable.bind(dst)
    (tmp_path / "x-00001-of-00002.safetensors").unlink()
    with pytest.raises(RelaxError, match=r"expected 3 files and their index, got the files without it: prepare again"):
        executable.bind(dst)


def test_files_of_another_checkpoint_are_not_put_together(tmp_path: Path) -> None:
    dst = tmp_path / "x.safetensors"
    executable = doubling(6, 8)
    executable.prepare(doubled_file(tmp_path), dst, rank=0, world=2)
    write_safetensors(tmp_path / "raw.safetensors", {f"w{i}": np.full(8, i + 1, np.float32) for i in range(6)})
    report = executable.prepare(tmp_path / "raw.safetensors", dst, rank=1, world=2)
    assert "1 of 2 files are not there yet, of rank 0" in str(report)
    executable.prepare(tmp_path / "raw.safetensors", dst, rank=0, world=2)
    assert [float(Checkpoint(dst).get(f"p{i}")[0]) for i in range(6)] == [2, 4, 6, 8, 10, 12]


def test_more_ranks_than_steps(tmp_path: Path) -> None:
    raw, dst = doubled_file(tmp_path), tmp_path / "x.safetensors"
    for rank in range(8):
        doubling(6, 8).prepare(raw, dst, rank=rank, world=8)
    assert is_doubled(dst)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"rank": 2, "world": 2}, "expected a rank from 0 to 1, got 2"),
        ({"rank": -1, "world": 2}, "expected a rank from 0 to 1, got -1"),
        ({"world": 0}, "expected a world of 1 rank or more, got 0"),
        ({"shard_size": 0}, "expected a shard size of 1 byte or more, got 0"),
        ({"world": 2, "only": ["w0"]}, "expected files to write whole for rank=, world= and shard_size=, got only="),
    ],
)
def test_what_cannot_be_prepared_in_parts(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    with pytest.raises(RelaxError, match=message):
        doubling(6, 8).prepare(doubled_file(tmp_path), tmp_path / "x.safetensors", **more)


def test_ranks_read_files(tmp_path: Path) -> None:
    raw = {f"w{i}": np.full(8, i, np.float32) for i in range(6)}
    with pytest.raises(RelaxError, match="weights: expected files that all of 2 ranks read, got arrays"):
        doubling(6, 8).prepare(raw, tmp_path / "x.safetensors", world=2)
    assert is_doubled(doubling(6, 8).prepare(raw, tmp_path / "x.safetensors", shard_size=64).path)


def test_processes_that_a_launcher_starts(tmp_path: Path) -> None:
    doubling(6, 8).save(tmp_path / "model.relax")
    doubled_file(tmp_path)
    command = [sys.executable, "-m", "relaxir.tools.cli", "prepare", "model.relax", "raw.safetensors", "-o", "x.safetensors"]
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")} | {"WORLD_SIZE": "3"}
    running = [
        subprocess.Popen(command, cwd=tmp_path, env=environment | {"RANK": str(rank)}, stdout=subprocess.PIPE, text=True)
        for rank in range(3)
    ]
    told = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert all("2 steps" in text for text in told)
    assert is_doubled(tmp_path / "x.safetensors")
