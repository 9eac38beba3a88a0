"""A reproducer is left by whatever ends a pass, a bug in it too, and fails the same way again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from relaxir.dialect.bindings import ir
from relaxir.dialect.passes import manager
from relaxir.dialect.passes.base import Pass
from relaxir.tools import relax_opt


@dataclass(frozen=True)
class HasABug(Pass):
    """Has a bug."""

    name: ClassVar[str] = "test-has-a-bug"

    def run(self, op: ir.Operation) -> None:
        raise TypeError("a bug")


manager.register("test-has-a-bug", lambda: HasABug)


def test_a_bug_in_a_pass_leaves_a_reproducer_that_shows_it_again(tmp_path):
    source, saved = tmp_path / "in.mlir", tmp_path / "saved.mlir"
    source.write_text("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")
    with pytest.raises(TypeError, match="a bug") as caught:
        relax_opt.run([str(source), "--cse", "--test-has-a-bug", f"--mlir-pass-pipeline-crash-reproducer={saved}"])
    assert caught.value.__notes__ == [f"reproducer generated at '{saved}'"]
    assert 'pipeline: "builtin.module(cse,test-has-a-bug)"' in saved.read_text()
    with pytest.raises(TypeError, match="a bug"):
        relax_opt.run([str(saved), "--run-reproducer"])


def test_names_in_a_pipeline_survive(tmp_path, capsys):
    source, saved = tmp_path / "in.mlir", tmp_path / "saved.mlir"
    source.write_text("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")
    flags = ['--relax-inline=functions={"a\\0A b"}', f"--mlir-pass-pipeline-crash-reproducer={saved}"]
    for arguments in ([str(source), *flags], [str(saved), "--run-reproducer"]):
        assert relax_opt.run(arguments) == 1
        assert "expected functions of the module for option 'functions', got @a\n   b" in capsys.readouterr().err
