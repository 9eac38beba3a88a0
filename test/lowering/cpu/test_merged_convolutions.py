"""Convolutions that differ in image, channels and strides are one kernel, which gives the bits that each had alone."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir.lowering.cpu import merge_kernels

Layer = dict[str, Any]


def layers(rng: random.Random, count: int, **same: Any) -> list[Layer]:
    """Random convolutions: what ``same`` says is the same in all."""
    drawn: list[Layer] = []
    for _ in range(count):
        groups = rng.choice([1, 1, 1, 2])
        layer: Layer = {
            "image": rng.choice([(1, 1), (7, 7), (14, 14), (16, 16), (8, 12), (13, 13), (9, 28), (5, 56)]),
            "inputs": groups * rng.choice([8, 16, 24, 32, 3]), "outputs": groups * rng.choice([32, 64, 96, 40]),
            "window": rng.choice([1, 3, 3, 3, 5]), "strides": rng.choice([1, 1, 2, 3]), "dilation": rng.choice([1, 1, 1, 2]),
            "padding": rng.choice([0, 1, 2]), "groups": groups, "batch": 1,
        }  # fmt: skip
        layer |= same
        reach = (layer["window"] - 1) * layer["dilation"] + 1
        layer["padding"] = max(layer["padding"], -(-(reach - min(layer["image"])) // 2))
        drawn.append(layer)
    return drawn


def module_of(drawn: list[Layer], element: str, functions: int = 1, residual: bool = True, shared: bool = False) -> rx.Module:
    """A result for each layer: a convolution, a bias, a rectifier, and what is added; in turns in several functions."""
    builder = rx.Builder()
    for f in range(functions):
        with builder.function(f"main{f}" if f else "main"):
            results, mine = {}, list(enumerate(drawn))[f::functions]
            images = [builder.input(f"x{i}", (d["batch"], d["inputs"], *d["image"]), element) for i, d in mine]
            for x, (i, layer) in zip(images, mine, strict=True):
                shape = (layer["outputs"], layer["inputs"] // layer["groups"], layer["window"], layer["window"])
                w = builder.weight("w" if shared else f"w{i}", shape, element)
                pads, step, apart = [layer["padding"]] * 4, [layer["strides"]] * 2, [layer["dilation"]] * 2
                y = builder.conv2d(x, w, padding=pads, strides=step, dilation=apart, groups=layer["groups"])
                y = builder.add(y, builder.weight(f"b{i}", (layer["outputs"], 1, 1), element))
                results[f"y{i}"] = builder.relu(builder.add(y, builder.relu(y))) if residual and i % 2 else builder.relu(y)
            builder.output(**results)
    return builder.build()


def drawn_arrays(module: rx.Module, drawn: list[Layer], functions: int) -> tuple[dict[str, np.ndarray], list[list[np.ndarray]]]:
    """Raw weights, and what each function is called with; a batch that is not known is 2."""
    exe, numbers = rx.compile(module), np.random.default_rng(0)
    specs = {name: weight.array for name, weight in exe.manifest.raw_weights.items()}
    weights = {name: numbers.standard_normal(spec.shape).astype(spec.dtype) for name, spec in specs.items()}
    element = next(iter(weights.values())).dtype
    shapes = [(2 if layer["batch"] == "n" else layer["batch"], layer["inputs"], *layer["image"]) for layer in drawn]
    return weights, [[numbers.standard_normal(s).astype(element) for s in shapes[f::functions]] for f in range(functions)]


def results(
    module: rx.Module, weights: dict[str, np.ndarray], inputs: list[list[np.ndarray]], checked: bool
) -> list[np.ndarray]:
    exe = rx.compile(module, checked=checked, convolutions="direct")
    exe.bind(exe.prepare(weights))
    found = []
    for f, given in enumerate(inputs):
        got = exe(*given, entry=f"main{f}" if f else "main")
        found += got if isinstance(got, tuple) else (got,)
    return found


def check(monkeypatch, drawn: list[Layer], element: str = "f32", functions: int = 1, checked: bool = False, **of: bool) -> None:
    """Merged as often as possible, and not at all, convolutions give the same bits, and right ones."""
    module = module_of(drawn, element, functions, **of)
    weights, inputs = drawn_arrays(module, drawn, functions)
    found = []
    for worth in (1, len(drawn) + 1):
        monkeypatch.setattr(merge_kernels, "_WORTH_OF_CONVOLUTIONS", worth)
        found.append(results(module, weights, inputs, checked))
    wanted: list[np.ndarray] = []
    for f, given in enumerate(inputs):
        numbers, name = [i for i, _ in list(enumerate(drawn))[f::functions]], f"main{f}" if f else "main"
        own = {key: w for key, w in weights.items() if key == "w" or int(key[1:]) in numbers}
        wanted += rx.evaluate(module, name, *given, weights=own)
    for merged, alone, want in zip(*found, wanted, strict=True):
        np.testing.assert_array_equal(merged, alone)
        rough = 1e-4 if element == "f32" else 3e-2  # sums of up to 25 * 64 products, in another order
        want = want.astype(np.float32)
        np.testing.assert_allclose(merged.astype(np.float32), want, rtol=rough, atol=rough * float(np.abs(want).max(initial=1)))


def kernels_of(module: rx.Module, folder: Path) -> list[str]:
    """The kernels of any image that code was made of."""
    rx.compile(module, dump=folder, convolutions="direct")
    (text,) = [path.read_text() for path in sorted(folder.glob("*-merge-kernels.mlir"))][-1:]
    return [line for line in text.splitlines() if "func.func private @" in line and "strided<[?, ?, ?, 1]>" in line]


@pytest.mark.parametrize("element", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("seed", range(2))
def test_random_convolutions_give_the_same_bits(element, seed, monkeypatch):
    check(monkeypatch, layers(random.Random(f"{element}{seed}"), 6), element)


@pytest.mark.parametrize("same", [{"batch": 3}, {"batch": "n"}, {"image": (1, 1)}, {"groups": 4, "inputs": 32, "outputs": 128}])
def test_what_stays_as_it_is(same, monkeypatch):
    check(monkeypatch, layers(random.Random(7), 4, **same))


ALIKE = {"groups": 1, "dilation": 1, "window": 3, "padding": 1, "inputs": 32, "outputs": 160}


@pytest.mark.parametrize("residual", [True, False])
def test_several_functions_and_shared_weights(residual, monkeypatch):
    drawn = layers(random.Random(3), 6, **ALIKE)
    check(monkeypatch, drawn, functions=2, residual=residual, shared=True)


def test_checked_code_sees_the_image_inside_of_its_buffer(monkeypatch):
    check(monkeypatch, layers(random.Random(4), 4, **ALIKE, image=(14, 14)), checked=True)


def test_strides_images_and_channels_are_one_kernel(tmp_path):
    drawn = [
        layer | {"image": image, "strides": strides, "inputs": inputs, "outputs": outputs}
        for layer, image, strides, inputs, outputs in zip(
            layers(random.Random(5), 4, **ALIKE), [(14, 14), (7, 7), (28, 28), (14, 14)], [1, 1, 2, 2], [32, 64, 40, 96],
            [160, 192, 160, 256], strict=True)
    ]  # fmt: skip
    kernels = [kernels_of(module_of(d, "f32", residual=False), tmp_path / str(i)) for i, d in enumerate((drawn, drawn[:2]))]
    assert len(kernels[0]) == 1
    assert kernels[0] == kernels[1]  # another model's, too


@pytest.mark.parametrize(
    "different",
    [{"image": (13, 13)}, {"image": (4, 4)}, {"inputs": 3}, {"outputs": 168}, {"dilation": 2, "padding": 2}, {"batch": 2}],
)
def test_convolutions_that_would_be_slower_stay(different, tmp_path):
    """Rows that fill no tiles, few of them; sums and panels that are not whole; no line of a window; several images."""
    drawn = layers(random.Random(6), 3, **({**ALIKE, "image": (14, 14), "strides": 1, "batch": 1} | different))
    drawn = [layer | {"inputs": layer["inputs"] * (i + 1)} for i, layer in enumerate(drawn)]
    assert not kernels_of(module_of(drawn, "f32", residual=False), tmp_path)
