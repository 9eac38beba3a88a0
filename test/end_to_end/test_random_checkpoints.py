"""Random quantized checkpoints: both ways to take them compute what their weights mean, and the report tells of each weight."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.reports.checkpoint import CheckpointWeights
from support.random_checkpoints import FORMATS, RandomCheckpoint, random_checkpoint


def check(exe: rx.Executable, drawn: RandomCheckpoint, rows: int) -> None:
    inputs = drawn.inputs(np.random.default_rng(rows), rows)
    for got, (want, bound) in zip(exe(*inputs), drawn.expected(inputs), strict=True):
        assert (np.abs(got - want) <= bound).all(), drawn.said


@pytest.mark.parametrize("seed", range(3 * len(FORMATS)))
def test_what_a_checkpoint_means_is_computed(tmp_path: Path, seed: int) -> None:
    drawn = random_checkpoint(seed, tmp_path)
    narrow = rx.compile(drawn.module, checkpoint=drawn.path)
    narrow.bind(narrow.prepare(drawn.path))
    check(narrow, drawn, 1)
    check(narrow, drawn, 13)
    (section,) = [s for s in narrow.report.sections if isinstance(s, CheckpointWeights)]
    assert {w.name for w in (*section.kept, *section.decoded)} == set(drawn.quantized), drawn.said
    for kept in section.kept:  # no matrix of floats
        prefix, size = kept.name.removesuffix("weight"), drawn.weights[kept.name].size
        own = [w.array for w in narrow.manifest.prepared_weights.values() if any(s.startswith(prefix) for s in w.sources)]
        assert own
        assert all(a.dtype != np.float32 or 2 * a.nbytes <= 4 * size for a in own), drawn.said


@pytest.mark.parametrize("seed", range(2 * len(FORMATS)))
def test_prepared_weights_are_those_that_a_checkpoint_means(tmp_path: Path, seed: int) -> None:
    drawn = random_checkpoint(100 + seed, tmp_path)
    exe = rx.compile(drawn.module)
    decoded, plain = exe.prepare(drawn.path), exe.prepare(drawn.weights)
    for name, array in decoded.items():
        np.testing.assert_array_equal(array, plain[name], err_msg=drawn.said)
