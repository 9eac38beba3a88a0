"""Artifacts whose manifest or code was edited, exchanged or moved: none runs code with shapes that it was not compiled for."""

from __future__ import annotations

import copy
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from support.guard_pages import in_child

TEXT = """
func.func @main(%x: tensor<?x4xf32, {sym = ["n"]}> {relax.name = "x"}, %s: tensor<4xf32> {relax.name = "s"},
    %w: tensor<3x4xf32> {relax.name = "w"})
    -> (tensor<?x3xf32, {sym = ["n"]}> {relax.name = "y"}, tensor<4xf32> {relax.name = "s"})
    attributes {relax.num_input = 2 : i64, relax.state = {s = dense<0.0> : tensor<4xf32>}} {
  %t = "relax.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %y = "relax.matmul"(%x, %t) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x3xf32>) -> tensor<?x3xf32, {sym = ["n"]}>
  %u = "relax.add"(%s, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y, %u : tensor<?x3xf32, {sym = ["n"]}>, tensor<4xf32>
}
func.func @twice(%x: tensor<5x4xf32> {relax.name = "x"}) -> (tensor<5x4xf32> {relax.name = "y"})
    attributes {relax.num_input = 1 : i64} {
  %y = "relax.add"(%x, %x) : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}
"""
X = np.ones((5, 4), np.float32)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("edited") / "a.relax"
    rx.compile(rx.Module.parse(TEXT)).save(path)
    return path


@pytest.fixture
def edited(artifact: Path, tmp_path: Path) -> Path:
    """A copy to edit."""
    return Path(shutil.copytree(artifact, tmp_path / "e.relax"))


def manifest_of(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text())


def write(folder: Path, data: object) -> None:
    (folder / "manifest.json").write_text(json.dumps(data))


def refuses(folder: Path) -> str:
    with pytest.raises(rx.RelaxError) as caught:
        rx.load(folder)
    message = str(caught.value)
    assert "\n" not in message
    return message


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field and element, outer ones first."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def test_every_field_removed_or_of_another_value_is_refused(edited: Path) -> None:
    """Of the report, which says nothing about the code, edits may be accepted."""
    right = manifest_of(edited)
    values = (None, True, -1, 0, 2**63, 10**30, 1.5, "", "n", "x" * 1000, [], [0], {}, {"name": "x"})
    tried = 0
    for number, path in enumerate(places(right)):
        # Each is removed, and given five of the values, which go round.
        for value in (..., *(values[(5 * number + i) % len(values)] for i in range(5))):
            data = copy.deepcopy(right)
            inner = data
            for key in path[:-1]:
                inner = inner[key]
            if value is ...:
                del inner[path[-1]]
            else:
                inner[path[-1]] = value
            if data == right or path[0] == "report":
                continue
            write(edited, data)
            assert refuses(edited), (path, value)
            tried += 1
    assert tried > 500


def test_other_reports_do_not_matter(edited: Path) -> None:
    data = manifest_of(edited)
    del data["report"]
    write(edited, data)
    assert rx.load(edited)(X, entry="twice").tolist() == (X + X).tolist()


@pytest.mark.parametrize(
    ("entry", "field", "shape"),
    [(1, "inputs", [4, 4]), (1, "outputs", [1, 4]), (1, "outputs", [5, 4, 2]), (0, "outputs", [1, 3]), (0, "inputs", ["n", 3])],
)
def test_edited_shapes(edited: Path, entry: int, field: str, shape: list[int | str]) -> None:
    """Compiled code would write beyond a result of one row: it writes five."""
    data = manifest_of(edited)
    data["entries"][entry][field][0]["shape"] = shape
    write(edited, data)
    message = refuses(edited)
    assert "module.so': expected the manifest it was compiled with" in message or "object code: expected the" in message
    assert "it was edited, or belongs to other code" in message


def test_exchanged_entry_names(edited: Path) -> None:
    data = manifest_of(edited)
    first, second = data["entries"]
    first["name"], second["name"] = second["name"], first["name"]
    write(edited, data)
    assert "expected the manifest it was compiled with" in refuses(edited)
    first["symbol"], second["symbol"] = second["symbol"], first["symbol"]
    write(edited, data)
    assert "expected the manifest it was compiled with" in refuses(edited)


def test_the_manifest_of_other_code_with_its_digest(edited: Path, tmp_path: Path) -> None:
    """The digest of the code in the manifest can be put right by hand; that of the manifest in the code cannot."""
    rx.compile(rx.Module.parse(TEXT.replace("5x4", "6x4"))).save(tmp_path / "b.relax")
    other = manifest_of(tmp_path / "b.relax")
    other["code"] = manifest_of(edited)["code"]
    write(edited, other)
    assert "it was edited, or belongs to other code" in refuses(edited)


def test_formatting_does_not_matter(edited: Path) -> None:
    data = manifest_of(edited)
    text = json.dumps(dict(reversed(data.items())), separators=(",", ":"))
    (edited / "manifest.json").write_text(text)
    assert rx.load(edited)(X, entry="twice").shape == (5, 4)


def test_altered_code(edited: Path) -> None:
    (code,) = edited.glob("module.so") if (edited / "module.so").exists() else edited.glob("module.a")
    content = bytearray(code.read_bytes())
    content[len(content) // 2] ^= 1
    code.write_bytes(content)
    assert "the artifact is damaged" in refuses(edited)


def test_moved_and_read_only(edited: Path, tmp_path: Path) -> None:
    moved = edited.rename(tmp_path / "a place of its own.relax")
    for file in moved.iterdir():
        file.chmod(0o444)
    moved.chmod(0o555)
    try:
        assert rx.load(moved)(X, entry="twice").tolist() == (X + X).tolist()
    finally:
        moved.chmod(0o755)


def test_loaded_by_eight_threads_at_once(artifact: Path) -> None:
    results: list[Any] = []
    start = threading.Barrier(8)

    def run() -> None:
        start.wait()
        results.append(rx.load(artifact)(X, entry="twice").tolist())

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [(X + X).tolist()] * 8


def test_forked_after_it_was_loaded(artifact: Path) -> None:
    executable = rx.load(artifact)
    executable(X, entry="twice")
    assert in_child(lambda: executable(X, entry="twice").tolist()) == (X + X).tolist()
