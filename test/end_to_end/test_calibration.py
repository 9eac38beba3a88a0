"""``rx.calibrate``: what it makes of a small network of images, by which ranges, and what it refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import relaxir as rx

RNG = np.random.default_rng(0)
WEIGHTS = {
    "a": RNG.standard_normal((16, 3, 3, 3)).astype(np.float32) * 0.2,
    "b": RNG.standard_normal((16, 16, 3, 3)).astype(np.float32) * 0.1,
    "c": RNG.standard_normal((10, 16)).astype(np.float32),
}
SAMPLES = [{"x": RNG.standard_normal((2, 3, 12, 12)).astype(np.float32)} for _ in range(3)]


def network() -> rx.Module:
    """A layer, one with a residual, whose input is a result, too, and a product."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", 3, 12, 12), "f32")
        y = b.relu(b.conv2d(x, b.weight("a", (16, 3, 3, 3), "f32"), padding=[1, 1, 1, 1]))
        z = b.relu(b.add(b.conv2d(y, b.weight("b", (16, 16, 3, 3), "f32"), padding=[1, 1, 1, 1]), y))
        weight = b.permute_dims(b.weight("c", (10, 16), "f32"), axes=[1, 0])
        b.output(logits=b.matmul(b.mean(z, axis=[2, 3]), weight), features=y)
    return b.build()


@pytest.mark.parametrize("percentile", [100, 99.9])
def test_a_calibrated_network_computes_on_bytes(percentile: float) -> None:
    module = network()
    before, calibrated = str(module), rx.calibrate(module, iter(SAMPLES), WEIGHTS, percentile=percentile)
    assert str(module) == before
    executable = rx.compile(calibrated)
    executable.bind(executable.prepare(WEIGHTS))
    text = executable.module_text
    assert [text.count(f'"relax.{op}"') for op in ("packed_quantized_conv2d", "quantized_matmul")] == [2, 1]
    x = SAMPLES[0]["x"][:1]
    wanted, features = rx.evaluate(module, "main", x, weights=WEIGHTS)
    stated, _ = rx.evaluate(calibrated, "main", x, weights=WEIGHTS)
    found, found_features = executable(x)
    largest = np.abs(wanted).max()
    assert np.abs(found - stated).max() <= 1e-3 * largest
    assert 0 < np.abs(found - wanted).max() <= 3e-2 * largest
    assert np.abs(found_features - features).max() <= 3e-2 * features.max()
    assert len(np.unique(found_features)) > 256  # results are not rounded to what the next layer reads


def test_scales_are_of_all_samples() -> None:
    b = rx.Builder()
    with b.function("f"):
        b.output(b.matmul(b.input("x", (1, 4), "f32"), b.weight("w", (4, 4), "f32")))
    samples = [{"x": np.array([[-1, 0, 0, 0.5]], np.float32)}, {"x": np.array([[0, 0, 0, 4.1]], np.float32)}]
    text = str(rx.calibrate(b.build(), samples, {"w": np.eye(4, dtype=np.float32)}, function="f"))
    numbers = [float(n) for n in re.findall(r"value = ([-+.e\d]+)", text)]
    assert any(abs(n - 5.1 / 255) < 1e-8 for n in numbers)
    assert 50 in numbers


def test_samples_of_torch_and_samples_without_elements() -> None:
    """What is empty says nothing beside others; a tensor may want a gradient."""
    module, expected = network(), str(rx.calibrate(network(), SAMPLES, WEIGHTS))
    empty = {"x": SAMPLES[0]["x"][:0]}
    tensors = [{"x": torch.from_numpy(sample["x"]).requires_grad_()} for sample in SAMPLES]
    assert str(rx.calibrate(module, [empty, *tensors, empty], WEIGHTS)) == expected


def test_refusals() -> None:
    module, empty = network(), rx.Builder()
    with empty.function("main"):
        empty.output(empty.relu(empty.input("x", (3,), "f32")))
    for expected, arguments, options in (
        ("expected at least one sample, got none", (module, [], WEIGHTS), {}),
        ("expected a sample with x, got y", (module, [{"y": 1}], WEIGHTS), {}),
        ("expected a percentile in \\(50, 100\\], got 0", (module, SAMPLES, WEIGHTS), {"percentile": 0}),
        ("expected samples that can be gone through, .* got NoneType", (module, None, WEIGHTS), {}),
        ("expected a number as percentile, got str", (module, SAMPLES, WEIGHTS), {"percentile": "99"}),
        ("has elements, got empty ones alone", (module, [{"x": SAMPLES[0]["x"][:0]}], WEIGHTS), {}),
        ("expected dtype f32, got bf16", (module, [{"x": torch.from_numpy(SAMPLES[0]["x"]).bfloat16()}], WEIGHTS), {}),
        ("expected convolutions or products of f32 with weights in @main, got none", (empty.build(), SAMPLES), {}),
        ("is finite, got values from", (module, [{"x": SAMPLES[0]["x"] * np.inf}], WEIGHTS), {}),
        ("expected one of the functions @main, got @other", (module, SAMPLES, WEIGHTS), {"function": "other"}),
    ):
        with pytest.raises(rx.RelaxError, match=expected):
            rx.calibrate(*arguments, **options)
