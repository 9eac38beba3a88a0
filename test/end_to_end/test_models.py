"""Whole models from PyTorch through import, compile, prepare, bind and call, against eager torch, at several sizes."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
import torch

import relaxir as rx
from relaxir.compiler import default_pipeline
from support import models

#: The issue's bound in f32, relative to the output's scale; what is seen is below 1e-5.
F32 = 1e-4


def compiled(model: models.Model, pipeline: str | None = None) -> rx.Executable:
    """The model's executable with its weights prepared and bound."""
    program = model.export()
    module = rx.from_torch(program)
    executable = rx.compile(module, pipeline=pipeline)
    return executable.bind(executable.prepare(models.weights_of(program, module)))


@functools.cache
def tiny(name: str) -> tuple[models.Model, rx.Executable]:
    """A small model as it is, compiled once for all tests."""
    model = getattr(models, name)()
    return model, compiled(model)


def outputs(executable: rx.Executable, inputs: dict[str, torch.Tensor]) -> list[np.ndarray]:
    """Every result, floats as f32."""
    found = executable(**inputs)
    found = found if isinstance(found, tuple) else (found,)
    return [t.float().numpy() if t.is_floating_point() else t.numpy() for t in found]


def distance(want: list[np.ndarray], got: list[np.ndarray]) -> float:
    """The largest difference over all outputs, each relative to its scale."""
    assert [w.shape for w in want] == [g.shape for g in got]
    pairs = [(w.astype(np.float64), g.astype(np.float64)) for w, g in zip(want, got, strict=True)]
    for want_, got_ in pairs:
        assert np.isfinite(got_).all() == np.isfinite(want_).all()
    return max(float(np.abs(w - g).max() / np.abs(w).max()) for w, g in pairs)


def check_sizes(model: models.Model, sizes: list[tuple[int, int]], executable: rx.Executable | None = None) -> None:
    executable = executable or compiled(model)
    for batch, length in sizes:
        inputs = model.inputs(batch, length)
        error = distance(model.eager(inputs), outputs(executable, inputs))
        assert error < F32, f"{model.name} at {batch} x {length}: {error:.1e}"


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_one_executable_serves_every_batch_and_length(name: str) -> None:
    model, executable = tiny(name)
    check_sizes(model, [(2, 16), (1, 2), (3, 33), (2, 64)], executable)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_padded_batches(name: str) -> None:
    check_sizes(getattr(models, name)(masked=True), [(2, 16), (3, 33)])


def test_convolutions_with_dynamic_batch() -> None:
    check_sizes(models.resnet18(), [(2, 64), (1, 64), (5, 64)])


def test_tied_embeddings() -> None:
    check_sizes(models.llama(tied=True), [(2, 16), (1, 7)])


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "resnet18"])
def test_bf16_is_as_near_to_the_exact_result_as_torch_in_bf16(name: str) -> None:
    """Both round to bf16 after each op, in another order: the distances from f32 arithmetic on the same weights compare."""
    narrow = getattr(models, name)().to(torch.bfloat16)
    inputs = {k: v.to(torch.bfloat16) if v.is_floating_point() else v for k, v in narrow.inputs().items()}
    narrow = replace(narrow, make_inputs=lambda *_: inputs)
    ours, theirs = outputs(compiled(narrow), inputs), [t.astype(np.float32) for t in narrow.eager(inputs)]
    wide = narrow.to(torch.float32)
    exact = wide.eager({k: v.float() if v.is_floating_point() else v for k, v in inputs.items()})
    assert distance(exact, ours) < 2 * distance(exact, theirs) + 2**-8


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_lifted_layout_changes_keep_every_bit(name: str) -> None:
    model, lifted = tiny(name)
    assert "relax-lift-transform-params" in default_pipeline()
    unlifted = compiled(model, pipeline="relax-inline-private-functions,relax-canonicalize,cse,symbol-dce")
    inputs = model.inputs()
    assert len(lifted.manifest.steps) > sum(step.symbol is None for step in lifted.manifest.steps)
    for a, b in zip(outputs(lifted, inputs), outputs(unlifted, inputs), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize(
    ("name", "options", "sizes"),
    [
        ("bert", {"layers": 2}, [(1, 128), (2, 37)]),
        ("gpt2", {"layers": 2}, [(2, 16), (1, 61)]),
        ("llama", {"layers": 1}, [(1, 64), (2, 21)]),
        ("resnet18", {"dynamic": False}, [(1, 224)]),
    ],
)
def test_real_sizes(name: str, options: dict[str, int], sizes: list[tuple[int, int]]) -> None:
    """Layers of BERT-base, of GPT-2 small and of Llama with hidden 2048, which are all alike; the whole of ResNet-18."""
    check_sizes(getattr(models, name)(tiny=False, **options), sizes)
