"""Modules that several processes run together: real ones of mpiexec, and ranks that are threads where that shows as much."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir import RelaxError
from relaxir.dialect.communicator import ThreadRank, thread_ranks
from relaxir.runtime.collectives import find_communicator
from relaxir.tools.cli import run
from relaxir.weights import write_safetensors
from support import mpi_rank
from support.cached_decoder import Decoder
from support.file_reads import recorded_reads
from support.mpi_rank import generate

Array = np.ndarray[Any, Any]

# Sums of up to 96 products in another order, through 4 layers: 3e-6 was seen.
CLOSE = {"rtol": 2e-5, "atol": 2e-5}


@pytest.fixture(scope="module", params=[2, 4])
def ranks(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(scope="module")
def model() -> Decoder:
    return Decoder()


@pytest.fixture(scope="module")
def raw(model: Decoder, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("raw") / "model.safetensors"
    write_safetensors(path, model.weights())
    return str(path)


@pytest.fixture(scope="module")
def expected(model: Decoder, raw: str) -> list[Array]:
    """What one process gives."""
    executable = rx.compile(model.module())
    return generate(executable.bind(executable.prepare(raw)))


@pytest.fixture(scope="module")
def artifact(model: Decoder, ranks: int, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("artifact") / "model.relax"
    rx.compile(model.module(), mesh=rx.Mesh(tp=ranks)).save(path)
    return str(path)


# Open MPI starts no processes of root, nor more than there are cores, without these.
_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def mpiexec(count: int, *command: str) -> subprocess.CompletedProcess[str]:
    """Processes on this machine, whoever runs them and however few cores it has."""
    launcher = Path(sys.executable).with_name("mpiexec")
    environment = os.environ | _MPI | {"RELAXIR_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    assert shutil.which(launcher), "the extra 'mpi' brings mpiexec"
    return subprocess.run([launcher, "-n", str(count), *command], env=environment, capture_output=True, text=True, timeout=120)


def assert_close(got: list[Array], expected: list[Array]) -> None:
    assert len(got) == len(expected) == 4
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, **CLOSE)


def test_processes_give_what_one_gives(ranks: int, artifact: str, raw: str, expected: list[Array], tmp_path: Path) -> None:
    prepared, results = tmp_path / "x.safetensors", tmp_path / "results.npz"
    done = mpiexec(ranks, sys.executable, mpi_rank.__file__, artifact, raw, str(prepared), str(results))
    assert done.returncode == 0, done.stderr
    with np.load(results) as found:
        assert_close([found[f"arr_{i}"] for i in range(4)], expected)
    files = sorted(p.name for p in tmp_path.glob("x*.safetensors"))
    assert files == [f"x.rank{r}of{ranks}.safetensors" for r in range(ranks)]


@pytest.mark.parametrize("ranks", [2], indirect=True)
def test_the_command_line_under_mpiexec(ranks: int, artifact: str, raw: str, expected: list[Array], tmp_path: Path) -> None:
    relaxir, prepared = [sys.executable, "-m", "relaxir.tools.cli"], str(tmp_path / "x.safetensors")
    np.save(tmp_path / "tokens.npy", mpi_rank.PROMPT)
    done = mpiexec(ranks, *relaxir, "prepare", artifact, raw, "-o", prepared)
    assert done.returncode == 0, done.stderr
    inputs = ["--entry", "prefill", "--input", f"tokens={tmp_path / 'tokens.npy'}", "-o", str(tmp_path / "out.npz")]
    done = mpiexec(ranks, *relaxir, "run", artifact, "--weights", prepared, *inputs)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("wrote") == 1
    with np.load(tmp_path / "out.npz") as found:
        np.testing.assert_allclose(found["logits"], expected[0], **CLOSE)


@pytest.mark.parametrize("how", ["raises", "killed"])
def test_a_rank_that_fails_alone_ends_the_others(ranks: int, artifact: str, raw: str, tmp_path: Path, how: str) -> None:
    """They wait in a collective for it: without an end that it makes, for ever."""
    paths = (artifact, raw, str(tmp_path / "x.safetensors"), str(tmp_path / "results.npz"))
    done = mpiexec(ranks, sys.executable, mpi_rank.__file__, *paths, how)
    assert done.returncode != 0
    if how == "raises":
        message = f"error: rank {ranks - 1} of {ranks} failed, which ends all: its disk is full"
        assert done.stderr.count(message) == 1
    else:  # nothing of ours runs there any more: mpiexec says it
        assert re.search(rf"rank {ranks - 1} .*signal 9", done.stderr, re.DOTALL), done.stderr


@pytest.mark.parametrize("ranks", [2], indirect=True)
def test_a_command_that_fails_on_one_rank_ends_the_others(ranks: int, artifact: str, raw: str, tmp_path: Path) -> None:
    relaxir, prepared = [sys.executable, "-m", "relaxir.tools.cli"], str(tmp_path / "x.safetensors")
    assert mpiexec(ranks, *relaxir, "prepare", artifact, raw, "-o", prepared).returncode == 0
    (tmp_path / "x.rank1of2.safetensors").unlink()
    ends = ("--random", "--dim", "n=5", "-o", str(tmp_path / "out.npz"))
    done = mpiexec(ranks, *relaxir, "run", artifact, "--weights", prepared, "--entry", "prefill", *ends)
    assert done.returncode != 0
    assert done.stderr.count("error: rank 1 of 2 failed, which ends all: ") == 1
    assert "x.rank1of2.safetensors" in done.stderr


def threads(artifact: str, ranks: int, raw: object) -> list[list[Array]]:
    def run(rank: ThreadRank) -> list[Array]:
        executable = rx.load(artifact)
        return generate(executable.bind(executable.prepare(raw)))

    return thread_ranks(ranks, run)


def test_narrow_weights_and_two_projections_in_one(tmp_path: Path) -> None:
    """Each rank quantizes its own part: parts of whole groups of 32 give the integers that one process gets."""
    model = Decoder(layers=1, inner=128, joint=True)
    one = rx.compile(model.module(), weights="int4")
    two = rx.compile(model.module(), weights="int4", mesh=rx.Mesh(tp=2))
    assert re.search(r"0\.gate_up .* axis 0 in 2 pieces", str(two.report))
    two.save(tmp_path / "m.relax")
    expected = generate(one.bind(one.prepare(model.weights())))
    for got in threads(str(tmp_path / "m.relax"), 2, model.weights()):
        assert_close(got, expected)


def test_weights_that_stay_whole_give_the_same(tmp_path: Path) -> None:
    model = Decoder(layers=1, groups=1)  # one head of keys, which all ranks need
    one = rx.compile(model.module())
    two = rx.compile(model.module(), mesh=rx.Mesh(tp=2, keep=("0.k", "0.v", "0.up")))
    assert "0.up" in str(two.report)
    two.save(tmp_path / "m.relax")
    expected = generate(one.bind(one.prepare(model.weights())))
    for got in threads(str(tmp_path / "m.relax"), 2, model.weights()):
        assert_close(got, expected)


def test_one_process_is_nothing_new(model: Decoder) -> None:
    plain, meshed = rx.compile(model.module()), rx.compile(model.module(), mesh=rx.Mesh(tp=1))
    assert plain.manifest.data == meshed.manifest.data
    assert meshed.rank == 0


def test_a_rank_reads_its_bytes_alone(artifact: str, ranks: int, raw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = rx.load(artifact)
    read = recorded_reads(monkeypatch)
    executable.prepare(raw, rank=ranks - 1, world=ranks)
    count = sum(end - begin for begin, end in read)
    assert count == sum(w.array.nbytes for w in executable.manifest.raw_weights.values())
    assert count < 1.1 * os.path.getsize(raw) / ranks


def test_files_of_other_ranks_are_refused(artifact: str, ranks: int, raw: str, tmp_path: Path) -> None:
    executable = rx.load(artifact)
    other = executable.prepare(raw, tmp_path / "x.safetensors", rank=1, world=ranks)
    shutil.copy(other.path, tmp_path / f"x.rank0of{ranks}.safetensors")

    def bind(rank: ThreadRank) -> None:
        if rank.rank == 0:
            rx.load(artifact).bind(tmp_path / "x.safetensors")

    with pytest.raises(RelaxError, match="expected weights prepared for this executable"):
        thread_ranks(ranks, bind)


def test_an_error_in_a_collective_ends_the_call(artifact: str, ranks: int, raw: str) -> None:
    def call(rank: ThreadRank) -> None:
        executable = rx.load(artifact)
        executable.bind(executable.prepare(raw))
        if rank.rank == 1:
            raise RelaxError("lost")
        generate(executable)

    with pytest.raises(RelaxError, match=r"lost|expected all of"):
        thread_ranks(ranks, call)


def test_tokens_beyond_the_vocabulary_are_refused(artifact: str, ranks: int, raw: str) -> None:
    def call(rank: ThreadRank) -> None:
        executable = rx.load(artifact)
        executable.bind(executable.prepare(raw))
        executable(np.array([1, 96]), entry="prefill")

    with pytest.raises(RelaxError, match="run-time check failed"):
        thread_ranks(ranks, call)


def test_without_mpi4py_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(RelaxError, match=r"^expected mpi4py and an MPI, got '.*mpi4py.*': pip install relaxir\[mpi\]$"):
        find_communicator(2)


def test_alone_it_says_how_many_there_must_be(artifact: str, ranks: int, raw: str) -> None:
    message = f"expected {ranks} processes, as of mpiexec -n {ranks}, got 1"
    executable = rx.load(artifact)
    with pytest.raises(RelaxError, match=message):
        executable.prepare(raw)
    with pytest.raises(RelaxError, match=message):
        executable.bind({})
    with pytest.raises(RelaxError, match=f"expected a rank of {ranks}, as many as the executable is for, got rank 1 of 3"):
        executable.prepare(raw, rank=1, world=3)


@pytest.mark.parametrize(
    ("mesh", "options", "message"),
    [
        ("2", {}, "expected a relaxir.Mesh, got str"),
        (rx.Mesh(tp=2), {"pipeline": "cse"}, "expected a mesh or a pipeline, which may have relax-shard, got both"),
        (rx.Mesh(tp=2), {"target": "cuda:sm_80", "device": "emulated"}, "code for CPUs with a mesh of 2 processes"),
        (rx.Mesh(tp=3), {}, r"'relax.attention' op expected heads .* that 3 ranks can share, got 12 and 4 \(weight '0.q'\)"),
        (rx.Mesh(tp=2, keep=("9.*",)), {}, r"expected a weight to keep, got '9\.\*'"),
    ],
)  # fmt: skip
def test_what_cannot_be_shared_is_refused(mesh: Any, options: dict[str, Any], message: str) -> None:
    model = Decoder(layers=1, hidden=96, heads=12, groups=4)
    with pytest.raises(RelaxError, match=message):
        rx.compile(model.module(), mesh=mesh, **options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tp": 0}, "expected 1 process or more for tp, got 0"),
        ({"keep": "k"}, "expected patterns of names as texts for keep, got 'k'"),
    ],
)
def test_a_mesh_that_is_none(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(RelaxError, match=message):
        rx.Mesh(**arguments)


def test_a_collective_is_not_for_gpus() -> None:
    text = """module attributes {relax.ranks = 2 : i64} {
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = "relax.all_reduce"(%x) : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }
    }"""
    with pytest.raises(RelaxError, match="expected code for one GPU or for CPUs, got a collective of several ranks on a GPU"):
        rx.compile(rx.Module.parse(text), "cuda:sm_80", device="emulated")


def test_the_plan_of_a_rank(artifact: str, ranks: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", artifact, "--disk", "1GB/s"]) == 0
    assert f"prepare on each of {ranks} ranks" in capsys.readouterr().out
    assert run(["info", artifact]) == 0
    assert f"runs on {ranks} ranks (mpiexec -n {ranks})" in capsys.readouterr().out
    assert run(["plan", artifact, "--world", "3"]) == 2
    assert f"expected --world {ranks} for an executable of as many ranks, got 3" in capsys.readouterr().err


@pytest.mark.parametrize("shards", ["3 : i64", "{w = array<i64: 0>}", "{w = array<i64: -1, 8>}", "{w = array<i64: 0, 7>}"])
def test_cuts_that_are_none(shards: str) -> None:
    text = f"""module attributes {{relax.ranks = 2 : i64, relax.shards = {shards}}} {{
  func.func @main(%w: tensor<8xf32> {{relax.name = "w"}}) -> tensor<8xf32> attributes {{relax.num_input = 0 : i64}} {{
    return %w : tensor<8xf32>
  }}
}}"""
    module = rx.Module.parse(text)
    with pytest.raises(RelaxError, match=r"expected relax.shards such as .*, with sizes that 2 ranks share, got "):
        rx.compile(module, cache=False)
