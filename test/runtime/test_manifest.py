"""Manifests: every wrong field is told by its path."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from relaxir import RelaxError
from relaxir.lowering.manifest import Manifest
from relaxir.lowering.manifest_specs import total_bytes
from support.hand_compiled import manifest, scaled_manifest, tensor


def changed(path: str, value: object) -> dict[str, Any]:
    """The scaled manifest with one field replaced; ``...`` removes it."""
    data: Any = copy.deepcopy(scaled_manifest())
    keys = [int(k) if k.isdigit() else k for k in path.split(".")]
    inner = data
    for key in keys[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[keys[-1]]
    else:
        inner[keys[-1]] = value
    return data


def test_reads_all_fields() -> None:
    read = Manifest.of(scaled_manifest())
    assert str(read.entries["main"]) == "main(x: f32[n, 4]) -> (y: f32[n, 4])"
    assert read.symbols == ("relaxir_main", "relaxir_step", "relaxir_manifest_sha256")
    assert total_bytes(read.prepared_weights) == 19
    assert read.prepared_weights["w"].sources == ("w",)
    assert not read.is_identity
    assert Manifest.of(manifest()).is_identity


FIELDS = {
    "format": ("gguf", "manifest.format: expected 'relaxir', got 'gguf'"),
    "version": (2, "manifest.version: expected 1, got 2"),
    "fingerprint": (..., "manifest.fingerprint: expected a value, got none"),
    "target": (3, "manifest.target: expected an object, got int"),
    "target.cpu": (None, "manifest.target.cpu: expected a string, got None"),
    "entries": ({}, r"manifest.entries: expected a list, got \{\}"),
    "entries.0": ("main", r"manifest.entries\[0\]: expected an object, got str"),
    "entries.0.symbol": ("a b", r"manifest.entries\[0\].symbol: expected a C identifier, got 'a b'"),
    "entries.0.checks": ([1], r"manifest.entries\[0\].checks: expected a list of strings, got \[1\]"),
    "entries.0.symbols.0.min": ("1", r"manifest.entries\[0\].symbols\[0\].min: expected a number or null, got '1'"),
    "entries.0.symbols.0.name": ("n*/", r"symbols\[0\].name: expected a C identifier, got 'n\*/'"),
    "entries.0.inputs.0.dtype": ("f31", r"manifest.entries\[0\].inputs\[0\].dtype: expected an element type .* got f31"),
    "entries.0.inputs.0.shape": (["n", -1], r"inputs\[0\].shape: expected a size or a symbolic expression, got -1"),
    "entries.0.inputs.0.shape.0": ("n +", "expected a symbolic dimension such as 'n \\* 2 \\+ 1', got 'n \\+'"),
    "entries.0.outputs.0.shape.0": ("?", "expected a size or a symbolic expression, got '?'"),
    "entries.0.weights.0.shape": (["n"], r"weights\[0\].shape: expected static dimensions for a weight, got \[n\]"),
    "entries.0.weights.0.name": ("v", r"weight 'v' of entry 'main': expected a prepared weight f32\[4\], got none"),
    "entries.0.weights.0.dtype": ("f16", r"weight 'w' of entry 'main': expected a prepared weight f16\[4\], got f32\[4\]"),
    "raw_weights.1.name": ("w", "manifest.raw_weights: expected names that differ, got 'w' twice"),
    "report": ([], "manifest.report.sections: expected a list, got None"),
    "peak_bytes": (-1, "manifest.peak_bytes: expected a number of 0 or more, got -1"),
    "steps.0.arena_bytes": (True, r"manifest.steps\[0\].arena_bytes: expected a number of 0 or more, got True"),
    "steps.0.symbol": (3, r"manifest.steps\[0\].symbol: expected a string, got 3"),
    "steps.0.gets": (["q"], r"manifest.steps\[0\]: expected names of weights, got 'q'"),
    "steps.0.sets": (["q"], r"manifest.steps\[0\]: expected names of weights, got 'q'"),
    "steps.1.gets": (["w"], r"manifest.steps\[1\]: expected a copy between equal shapes and dtypes"),
    "steps.1": (..., "manifest.steps: expected to make every prepared weight once, got 1 results for 2 prepared weights"),
}


@pytest.mark.parametrize("path", FIELDS)
def test_wrong_field(path: str) -> None:
    value, message = FIELDS[path]
    with pytest.raises(RelaxError, match=message):
        Manifest.of(changed(path, value))


STATE = {"name": "s", "shape": [2], "dtype": "f32", "argument": 1, "first": "AAAAAA=="}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": ["n"]}, r"entries\[0\].state\[0\].shape: expected static dimensions for a weight, got \[n\]"),
        ({"argument": -1}, r"state\[0\].argument: expected a number of 0 or more, got -1"),
        ({"argument": 2}, r"manifest: entry 'main': expected a position of its own for each state, got \{2\}"),
        ({"first": "?"}, r"state\[0\].first: expected base64, got '\?'"),
        ({"first": "AAA="}, r"state\[0\].first: expected 8 bytes or one element, got 2 bytes"),
    ],
)
def test_wrong_state(change: dict[str, Any], message: str) -> None:
    assert Manifest.of(changed("entries.0.state", [STATE])).state["s"].first == bytes(4)
    with pytest.raises(RelaxError, match=message):
        Manifest.of(changed("entries.0.state", [STATE | change]))


def test_entries_agree_about_state() -> None:
    data = changed("entries.0.state", [STATE])
    data["entries"].append(data["entries"][0] | {"name": "other", "state": [STATE | {"first": "AACAPw=="}]})
    with pytest.raises(
        RelaxError, match=r"manifest: state 's': expected f32\[2\] and one first value in all entries, got f32\[2\]"
    ):
        Manifest.of(data)


def test_a_weight_made_twice() -> None:
    data = scaled_manifest(prepared_weights=[tensor("w", [4])])
    data["steps"] = [data["steps"][0]] * 2
    with pytest.raises(RelaxError, match="expected to make every prepared weight once, got 2 results for 1"):
        Manifest.of(data)


def test_what_a_report_says_is_checked_when_it_is_asked_for() -> None:
    manifest = Manifest.of(changed("report", {"sections": [{"kind": 5}]}), "a.relax/manifest")
    with pytest.raises(RelaxError, match=r"a\.relax/manifest\.report\.sections\[0\]\.kind: expected a string, got 5"):
        _ = manifest.report


def test_no_object() -> None:
    with pytest.raises(RelaxError, match="manifest: expected an object, got list"):
        Manifest.of([])
