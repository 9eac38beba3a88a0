"""The comparison of a folder of ONNX files with ONNX Runtime: what it says, and when it fails."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from conformance import onnx_models
from onnx import TensorProto

from support.onnx_models import MODELS


def _write(name: str, folder: Path) -> onnx.ModelProto:
    """ONNX Runtime wants types of results."""
    proto = MODELS[name]()
    for value in proto.graph.output:
        value.type.tensor_type.elem_type = TensorProto.FLOAT
    onnx.save(proto, folder / f"{name}.onnx")
    return proto


def test_files_of_a_folder_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("perceptron", "normalized"):
        _write(name, tmp_path)
    assert onnx_models.main([str(tmp_path), "--size", "batch=3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:2]] == [["normalized.onnx", "right"], ["perceptron.onnx", "right"]]
    assert lines[2] == "2 of 2 right"


def test_differences_beyond_the_tolerance_and_files_that_are_no_models_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write("perceptron", tmp_path)
    (tmp_path / "none.onnx").write_bytes(b"\xff")
    assert onnx_models.main([str(tmp_path), "--tolerance", "1e-30"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("none.onnx                failed ONNX Runtime: ")
    assert lines[1].startswith("perceptron.onnx          WRONG ")
    assert lines[2] == "0 of 2 right"


def test_a_folder_without_models_fails(tmp_path: Path) -> None:
    assert onnx_models.main([str(tmp_path)]) == 1
