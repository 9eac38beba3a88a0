"""Binding weights: only those prepared for this executable, in full; everything else is refused by name."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from relaxir import RelaxError
from relaxir.runtime.binding import prepared_arrays
from relaxir.runtime.executable import Executable, PreparedWeights
from relaxir.weights import ArraySpec, Checkpoint, write_safetensors
from relaxir.weights.arrays import address
from relaxir.weights.checksums import Checksum
from support.hand_compiled import doubling, entry, executable_of, manifest, scaled_executable, tensor

RAW = {"w": np.array([1, 2, 3, 4], np.float32), "bias": np.zeros(3, np.int8)}
MARK = {"relaxir.fingerprint": "f00d" * 16}
ONES = np.ones((2, 4), np.float32)


def test_file_and_mapping(tmp_path: Path) -> None:
    executable = scaled_executable()
    executable.prepare(RAW, tmp_path / "p.safetensors")
    for weights in (tmp_path / "p.safetensors", str(tmp_path / "p.safetensors"), executable.prepare(RAW)):
        assert executable.bind(weights) is executable
        assert executable(ONES).tolist() == [[2, 4, 6, 8]] * 2
    assert executable.is_bound
    os.unlink(tmp_path / "p.safetensors")  # mapped: the content stays while it is bound
    assert executable(ONES).tolist() == [[2, 4, 6, 8]] * 2


def test_shared_weights_stay_where_the_mapping_has_them(tmp_path: Path) -> None:
    raw = {"w": np.arange(4, dtype=np.float32), "bias": torch.zeros(3, dtype=torch.int8)}
    prepared = scaled_executable().prepare(raw, share=True)
    assert np.shares_memory(prepared["bias"], raw["bias"].numpy())
    assert not np.shares_memory(scaled_executable().prepare(raw)["bias"], raw["bias"].numpy())
    for source, dst in ((raw, tmp_path / "p.safetensors"), (tmp_path, None)):
        with pytest.raises(RelaxError, match="expected a mapping to prepare in memory with share=, got a file"):
            scaled_executable().prepare(source, dst, share=True)


def test_processes_share_bound_weights(tmp_path: Path) -> None:
    """They are the pages of the mapped file, which the system has once: none of them is this process's own."""
    executable = doubling(2, 1 << 18)
    executable.prepare({f"w{i}": np.ones(1 << 18, np.float32) for i in range(2)}, tmp_path / "p.safetensors")
    arrays = prepared_arrays(executable.manifest, tmp_path / "p.safetensors")
    assert all((a == 2).all() for a in arrays.values())  # all pages are touched
    for array in arrays.values():
        private, path = private_bytes(address(array))
        assert (private, path) == (0, str(tmp_path / "p.safetensors"))


def private_bytes(where: int) -> tuple[int, str]:
    """Of the mapping that an address lies in, the bytes that were written by this process, and the file."""
    found, path = -1, ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if "-" in fields[0]:
            begin, end = (int(part, 16) for part in fields[0].split("-"))
            found, path = (0, fields[-1]) if begin <= where < end else (-1, "")
        elif fields[0] in ("Private_Dirty:", "Anonymous:") and found >= 0:
            found += int(fields[1]) << 10
        elif fields[0] == "VmFlags:" and found >= 0:
            return found, path
    raise AssertionError(f"no mapping at {where:#x}")


@pytest.mark.parametrize("as_file", [True, False])
@pytest.mark.parametrize(
    ("weights", "fingerprint", "message"),
    [
        (RAW, None, r"expected weights prepared for this executable .* got raw weights such as 'w': call prepare"),
        ({"v": ONES}, None, "got 1 tensors without a fingerprint: call prepare with the raw weights first and bind its result"),
        (RAW, "beef" * 16, r"\(fingerprint f00df00df00d\), got weights prepared for another one \(fingerprint beefbeefbeef\)"),
        ({"w": RAW["w"]}, "f00d" * 16, r"weight 'bias': expected i8\[3\], got none"),
        ({**RAW, "w": RAW["w"][:3]}, "f00d" * 16, r"weight 'w': expected f32\[4\], got f32\[3\]"),
        ({**RAW, "w": RAW["w"].astype(np.float16)}, "f00d" * 16, r"weight 'w': expected f32\[4\], got f16\[4\]"),
        ({**RAW, "z": ONES}, "f00d" * 16, "weight 'z': expected none of this name, got one"),
        ({"z": ONES}, "f00d" * 16, r"expected 2 weights, got 3 problems\n  weight 'w': .*\n  weight 'bias': .*\n  weight 'z'"),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, as_file: bool, weights: dict[str, Any], fingerprint: str | None, message: str) -> None:
    source: object = weights if fingerprint is None else PreparedWeights(weights, fingerprint)
    if as_file:
        source = tmp_path / "x.safetensors"
        write_safetensors(source, weights, None if fingerprint is None else {"relaxir.fingerprint": fingerprint})
    executable = scaled_executable()
    with pytest.raises(RelaxError, match=message) as caught:
        executable.bind(source)
    assert ("x.safetensors" in str(caught.value)) == as_file
    assert not executable.is_bound


def test_truncated_file(tmp_path: Path) -> None:
    path = tmp_path / "p.safetensors"
    executable = scaled_executable()
    executable.prepare(RAW, path)
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(RelaxError, match=r"'.*p.safetensors': tensor 'bias': .*\(truncated\)"):
        executable.bind(path)


def test_a_refused_bind_keeps_the_old_weights() -> None:
    executable = scaled_executable()
    executable.bind(executable.prepare(RAW))
    with pytest.raises(RelaxError, match="call prepare"):
        executable.bind(RAW)
    assert executable(ONES).tolist() == [[2, 4, 6, 8]] * 2


def test_not_weights() -> None:
    with pytest.raises(
        RelaxError, match="expected weights as a path, a Checkpoint or a mapping from names to arrays, got list"
    ):
        scaled_executable().bind([1])


def unlifted() -> Executable:
    """Preparation copies everything under its own name."""
    record = tensor("w", [], "i16")
    main = entry("main", "relaxir_copy", weights=[record], outputs=[tensor("y", [], "i16")])
    steps = [{"symbol": None, "gets": ["w"], "sets": ["w"], "arena_bytes": 0}]
    data = manifest(entries=[main], raw_weights=[record], prepared_weights=[record], steps=steps)
    return executable_of(data)


def test_raw_weights_bind_where_preparation_changes_nothing(tmp_path: Path) -> None:
    weights = {"w": torch.tensor(7, dtype=torch.int16), "other": torch.zeros(2)}
    assert unlifted().bind(weights)().tolist() == 7
    write_safetensors(tmp_path / "raw.safetensors", weights)
    assert unlifted().bind(tmp_path / "raw.safetensors")().tolist() == 7
    with pytest.raises(RelaxError, match=r"weight 'w': expected i16\[\], got none"):
        unlifted().bind({"other": weights["other"]})
    with pytest.raises(RelaxError, match="got weights prepared for another one"):
        unlifted().bind(PreparedWeights({"w": np.array(7, np.int16)}, "beef"))


def test_misaligned_weights_are_copied(tmp_path: Path) -> None:
    """Files of other writers may put a tensor anywhere."""
    tensors = {"bias": np.zeros(3, np.int8), "w": np.array([1, 1, 2, 2], np.float32)}
    checksums = "".join(str(Checksum.of(n, ArraySpec.of(a), memoryview(a.tobytes()))) for n, a in tensors.items())
    header = {
        "__metadata__": {**MARK, "relaxir.checksums": checksums},
        "bias": {"dtype": "I8", "shape": [3], "data_offsets": [0, 3]},
        "w": {"dtype": "F32", "shape": [4], "data_offsets": [3, 19]},
    }
    text, data = json.dumps(header).encode(), b"".join(a.tobytes() for a in tensors.values())
    (tmp_path / "odd.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    assert scaled_executable().bind(tmp_path / "odd.safetensors")(ONES).tolist() == [[1, 1, 2, 2]] * 2


# -- damage ------------------------------------------------------------------------------------------------------------

LARGE = 5000  # elements of 4 bytes: three pages and more


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """Weights ``p0`` to ``p2`` of five pages each, prepared."""
    path = tmp_path / "p.safetensors"
    doubling(3, LARGE).prepare({f"w{i}": np.full(LARGE, i + 1, np.float32) for i in range(3)}, path)
    return path


def flip(path: Path, at: int, bit: int = 0) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))


def test_damage_is_found_by_verifying_and_at_the_ends_always(prepared: Path) -> None:
    executable = doubling(3, LARGE)
    executable.bind(prepared, verify=True)
    begin = 4096 + 4 * LARGE  # of p1
    cases = {0: True, 4095: True, 4096: False, 2 * LARGE: False, 4 * LARGE - 4097: False, 4 * LARGE - 4096: True}
    for offset, sampled in (cases | {4 * LARGE - 1: True}).items():
        flip(prepared, begin + offset, offset % 8)
        for verify in {True, not sampled}:
            with pytest.raises(RelaxError, match=r"p.safetensors': weight 'p1': expected the bytes that prepare wrote, got"):
                doubling(3, LARGE).bind(prepared, verify=verify or sampled)
        if not sampled:  # as the documentation says
            executable.bind(prepared)
        flip(prepared, begin + offset, offset % 8)
    executable.bind(prepared, verify=True)


def test_all_damaged_weights_are_listed(prepared: Path) -> None:
    flip(prepared, 4096)
    flip(prepared, 4096 + 12 * LARGE - 1)
    text = r"p.safetensors': expected 3 weights, got 2 problems\n  weight 'p0': .*\n  weight 'p2': .* prepare the raw .* again$"
    for weights in (prepared, Checkpoint(prepared)):
        with pytest.raises(RelaxError, match=text):
            doubling(3, LARGE).bind(weights)


def test_damaged_headers_never_bind(prepared: Path) -> None:
    """One bit of the header, anywhere: names, shapes and offsets, the fingerprint, the checksums."""
    executable = doubling(3, LARGE)
    content = prepared.read_bytes()
    length = len(content[8:4096].rstrip())
    text = content[8 : 8 + length]
    free = {text.index(key) + i for key, size in ((b'"format"', 20), (b'"relaxir.version"', 27)) for i in range(size)}
    free |= {text.index(b'"relaxir.format"') + i for i in range(len('"relaxir.format"'))}  # without it a file is of format 1
    for at in range(0, length, 7):
        flip(prepared, 8 + at, at % 7)
        if at not in free:
            with pytest.raises(RelaxError):
                executable.bind(prepared, verify=True)
        flip(prepared, 8 + at, at % 7)
    executable.bind(prepared)


def test_a_file_that_was_cut_off_after_it_was_opened(prepared: Path, tmp_path: Path) -> None:
    """Touching what is mapped and not there any more would end the process."""
    write_safetensors(tmp_path / "raw.safetensors", {f"w{i}": np.zeros(LARGE, np.float32) for i in range(3)})
    executable = doubling(3, LARGE)
    use = {prepared: executable.bind, tmp_path / "raw.safetensors": lambda c: executable.prepare(c, tmp_path / "o")}
    for path, call in use.items():
        checkpoint = Checkpoint(path)
        os.truncate(path, 4200)
        with pytest.raises(
            RelaxError, match=f"{path.name}': expected a file that stays as it is .*, got 4200 bytes instead of"
        ):
            call(checkpoint)


def rewritten(path: Path, rename: dict[str, str], metadata: dict[str, str]) -> Path:
    """The file as another tool may write it again: tensors in another order."""
    checkpoint = Checkpoint(path)
    tensors = {rename.get(n, n): checkpoint.get(n).copy() for n in reversed(list(checkpoint))}
    other = path.with_name("q.safetensors")
    save_file(tensors, other, {**checkpoint.metadata, **metadata})
    return other


def test_what_other_tools_write_again(prepared: Path) -> None:
    executable = doubling(3, LARGE)
    executable.bind(rewritten(prepared, {}, {}), verify=True)
    with pytest.raises(RelaxError, match=r"got 2 problems\n  weight 'p0': expected the bytes .*\n  weight 'p2': expected"):
        executable.bind(rewritten(prepared, {"p0": "p2", "p2": "p0"}, {}))
    for checksums, message in (
        ("0" * 47, "expected checksums of 3 tensors, got 2.9375: the file is damaged"),
        ("x" * 48, "checksums: invalid literal for int.* the file is damaged"),
        ("A" * 48, "checksums: expected 16 hexadecimal digits, got 'A+': the file is damaged"),
    ):
        with pytest.raises(RelaxError, match=message):
            executable.bind(rewritten(prepared, {}, {"relaxir.checksums": checksums}))


@pytest.mark.parametrize("renamed", [False, True])
def test_what_our_writer_writes_again(tmp_path: Path, renamed: bool) -> None:
    """In another order, with the metadata of the first file, whose checksums are not those of the second."""
    executable = scaled_executable()
    executable.prepare(RAW, tmp_path / "p.safetensors")
    checkpoint = Checkpoint(tmp_path / "p.safetensors")
    again = {name + "x" * renamed: np.array(checkpoint.get(name)) for name in reversed(list(checkpoint))}
    write_safetensors(tmp_path / "again.safetensors", again, checkpoint.metadata)
    if renamed:
        with pytest.raises(RelaxError, match=r"again.safetensors'.*\n.*weight 'w': expected f32\[4\], got none"):
            executable.bind(tmp_path / "again.safetensors", verify=True)
    else:
        assert executable.bind(tmp_path / "again.safetensors", verify=True)(ONES).tolist() == [[2, 4, 6, 8]] * 2


def test_files_without_checksums(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "old.safetensors", RAW, MARK)
    with pytest.raises(RelaxError, match=r"old.safetensors': expected checksums of 2 tensors, got none: prepare the raw"):
        scaled_executable().bind(tmp_path / "old.safetensors")
    raw = {"w": np.array(7, np.int16)}
    write_safetensors(tmp_path / "raw.safetensors", raw)
    with pytest.raises(RelaxError, match="expected checksums of 1 tensors, got none"):
        unlifted().bind(tmp_path / "raw.safetensors", verify=True)
    with pytest.raises(RelaxError, match="weights: expected a file to verify, got a mapping, which has no checksums"):
        scaled_executable().bind(scaled_executable().prepare(RAW), verify=True)


def test_binding_looks_at_a_bounded_number_of_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(Checkpoint, "_agrees", lambda self, name, checksum, whole: seen.append(1) or True)
    path = tmp_path / "p.safetensors"
    executable = doubling(700, 4)
    executable.prepare({f"w{i}": np.zeros(4, np.float32) for i in range(700)}, path)
    executable.bind(path)
    assert len(seen) == 234  # every third
    executable.bind(path, verify=True)
    assert len(seen) == 234 + 700
