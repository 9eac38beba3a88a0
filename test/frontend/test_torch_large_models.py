"""Models that nobody holds: what is imported and compiled of one does not grow with its weights."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import relaxir as rx  # noqa: E402
from support import models  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmark"))

from large_model import exported  # noqa: E402

SMALL = {"hidden_size": 64, "intermediate_size": 224, "num_attention_heads": 8, "num_key_value_heads": 1, "vocab_size": 1002}


def test_nothing_of_a_model_grows_with_its_weights():
    """A layer of 70B parameters' width, 12 GB with its embeddings, beside one of 64 columns: as many lines, digits apart."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with models.quiet():
        large, small = (rx.from_torch(exported(1, **sizes)) for sizes in ({}, SMALL))
    texts = [str(m) for m in (large, small)]
    assert len(texts[0].splitlines()) == len(texts[1].splitlines())
    assert len(texts[0]) < 1.05 * len(texts[1]) + 1000
    weights = {a.name: a.shape for a in large.functions["main"].weights}
    assert weights["model.model.layers.0.mlp.up_proj.weight"] == (28672, 8192)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB


def test_many_layers_of_70b_parameters():
    """Exported, imported, compiled, and what its preparation takes known, with less than a GiB more than before.

    Twenty of 80 layers are as much more than a machine has; ``test/benchmark/large_model.py`` takes all.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with models.quiet():
        module = rx.from_torch(exported(20))
    assert len(str(module)) < 1 << 18
    manifest = rx.compile(module, cache=False).manifest
    assert sum(w.array.nbytes for w in manifest.raw_weights.values()) > 67 << 30
    assert manifest.peak_bytes < 9 << 30  # the largest weight, raw and packed
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB
