"""Artifacts and prepared files of every version there was load and give the same numbers; later ones are refused by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from relaxir.lowering.manifest import VERSION
from relaxir.weights import Checkpoint, write_safetensors
from support.golden import GOLDEN

VERSIONS = sorted(p.name for p in GOLDEN.iterdir())


def test_every_version_is_there():
    assert [f"v{n}" for n in range(1, VERSION + 1)] == VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_loads_binds_and_computes_what_it_did(version: str, tmp_path: Path):
    folder = GOLDEN / version
    exe = rx.load(folder / "model")
    calls = np.load(folder / "calls.npz")
    exe.bind(folder / "prepared.safetensors", verify=True)
    np.testing.assert_array_equal(exe(calls["x"], calls["rows"]), calls["first"])
    np.testing.assert_array_equal(exe(calls["x"], calls["rows"]), calls["second"])
    with pytest.raises(rx.RelaxError, match="expected indices in"):
        exe(calls["x"], calls["rows"] + 1)
    exe.prepare(folder / "raw.safetensors", tmp_path / "again.safetensors")
    old, new = Checkpoint(folder / "prepared.safetensors"), Checkpoint(tmp_path / "again.safetensors")
    assert {n: old.get(n).tobytes() for n in old} == {n: new.get(n).tobytes() for n in new}


def test_artifact_of_a_later_version(tmp_path: Path):
    shutil.copytree(GOLDEN / f"v{VERSION}/model", tmp_path / "model")
    manifest = tmp_path / "model/manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": VERSION + 1, "relaxir": "9.1"}))
    with pytest.raises(
        rx.RelaxError, match=rf"version: expected {VERSION}, got {VERSION + 1}, written by relaxir 9.1: compile again"
    ):
        rx.load(tmp_path / "model")


def test_prepared_file_of_a_later_format(tmp_path: Path):
    folder = GOLDEN / f"v{VERSION}"
    old = Checkpoint(folder / "prepared.safetensors")
    later = {"relaxir.format": "2", "relaxir.version": "9.1", "relaxir.fingerprint": old.metadata["relaxir.fingerprint"]}
    write_safetensors(tmp_path / "p.safetensors", {n: old.get(n) for n in old}, metadata=later)
    exe = rx.load(folder / "model")
    for use in (exe.bind, exe.verify):
        with pytest.raises(
            rx.RelaxError, match=r"expected prepared weights of format 1, got format '2', written by relaxir 9\.1"
        ):
            use(tmp_path / "p.safetensors")
