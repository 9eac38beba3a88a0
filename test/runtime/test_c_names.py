"""Artifacts whose C names do not clash: two in one program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.errors import RelaxError
from relaxir.runtime.threads import find_runtime
from relaxir.tools import cli
from support.c_compiler import c_compiler

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "encoder.relax/module.h"
#include "decoder.relax/module.h"
int main(void) {
  if (sizeof ENCODER_FINGERPRINT < 2 || sizeof DECODER_FINGERPRINT < 2) return 1;
  float x[3] = {1, 2, 3}, encoded[3], y[3];
  void *first[] = {x, encoded}, *second[] = {encoded, y}, *arena = aligned_alloc(64, 1 << 16);
  int64_t status = encoder_main(first, NULL, arena, 1 << 16);
  status |= decoder_main(second, NULL, arena, 1 << 16);
  printf("%d %g %g %g\\n", (int)status, y[0], y[1], y[2]);
  return 0;
}
"""


def module(op: str, *names: str) -> rx.Module:
    b = rx.Builder()
    for name in names or ("main",):
        with b.function(name):
            x = b.input("x", (3,))
            b.output(y=getattr(b, op)(x, x))
    return b.build()


def test_two_artifacts_in_one_program(tmp_path: Path) -> None:
    """The product of sums, by functions of one name."""
    for name, op in (("encoder", "add"), ("decoder", "multiply")):
        rx.compile(module(op), c_prefix=name).save(tmp_path / f"{name}.relax")
    (tmp_path / "main.c").write_text(PROGRAM)
    runtime = find_runtime()
    libraries = ["encoder.relax/module.so", "decoder.relax/module.so", *([] if runtime is None else [runtime])]
    places = [".", *([] if runtime is None else [str(Path(runtime).parent)])]
    flags = [f"-Wl,-rpath,{place}" for place in places]
    subprocess.run(
        [c_compiler(), "-Wall", "-Werror", "-I.", "main.c", *libraries, *flags, "-o", "main"], cwd=tmp_path, check=True
    )
    done = subprocess.run([tmp_path / "main"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "0 4 16 36\n"


def test_a_prefix_changes_names_alone(tmp_path: Path) -> None:
    """Of an artifact that the command line makes: all its entries, and how it computes."""
    module("add", "main", "cuda_x").save(tmp_path / "m.mlir")
    cli.run(["compile", str(tmp_path / "m.mlir"), "--c-prefix", "acme_1", "-o", str(tmp_path / "m.relax")])
    loaded = rx.load(tmp_path / "m.relax")
    assert {e.symbol for e in loaded.manifest.entries.values()} == {"acme_1_main", "acme_1_cuda_x"}
    assert "ACME_1_FINGERPRINT" in loaded.header
    assert loaded(np.ones(3, np.float32)).tolist() == [2, 2, 2]


def test_no_name_is_one_that_an_image_has() -> None:
    executable = rx.compile(module("add", "cuda_ptx", "main"))
    assert {e.symbol for e in executable.manifest.entries.values()} == {"relaxir_cuda_ptx_", "relaxir_main"}
    assert "#define RELAXIR_FINGERPRINT" in executable.header
    other = rx.compile(module("add", "ptx"), c_prefix="relaxir_cuda")
    assert [e.symbol for e in other.manifest.entries.values()] == ["relaxir_cuda_ptx_"]
    assert "#define RELAXIR_CUDA_FINGERPRINT" in other.header


@pytest.mark.parametrize("prefix", ["", "1st", "a-b", "_a", "é", 7])
def test_what_is_no_prefix(prefix: object) -> None:
    with pytest.raises(RelaxError, match=r"expected a prefix of C names, letters, digits and '_' behind a letter, got"):
        rx.compile(module("add"), c_prefix=prefix)  # type: ignore[arg-type]


@pytest.mark.parametrize("prefix", ['"a-b"', "7 : i64"])
def test_what_a_module_says_is_none(prefix: str) -> None:
    text = str(module("add")).replace("module {", f"module attributes {{relax.c_prefix = {prefix}}} {{")
    with pytest.raises(RelaxError, match=r"expected a prefix of C names, letters, digits and '_' behind a letter, got"):
        rx.compile(rx.Module.parse(text))
