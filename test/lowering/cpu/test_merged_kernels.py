"""Kernels that differ in sizes alone are one, and compute what they did."""

from __future__ import annotations

import re

import numpy as np
import pytest

import relaxir as rx

#: Around what vectors, tiles and blocks of panels take at once.
SIZES = [33, 64, 95, 100, 129]


def weights_of(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}


def kernels_of(module: rx.Module, folder) -> list[str]:
    """The kernels that code was made of, by name."""
    rx.compile(module, dump=folder)
    (text,) = [path.read_text() for path in sorted(folder.glob("*-merge-kernels.mlir"))][-1:]
    return [line for line in text.splitlines() if "func.func private @" in line and "relax.kernel" in line]


def products(sizes: list[int], rows: int | str, columns: int = 48) -> tuple[rx.Module, dict[str, np.ndarray]]:
    """A product of each depth, with a weight that lies as PyTorch has it: it is turned and packed ahead."""
    builder, shapes = rx.Builder(), {f"w{n}": (columns, n) for n in sizes}
    with builder.function("main"):
        x = {n: builder.input(f"x{n}", (rows, n), "f32") for n in sizes}
        w = {n: builder.weight(f"w{n}", (columns, n), "f32") for n in sizes}
        sums = [builder.matmul(x[n], builder.permute_dims(w[n], axes=(1, 0))) for n in sizes]
        total = sums[0]
        for more in sums[1:]:
            total = builder.add(total, more)
        builder.output(y=total)
    return builder.build(), weights_of(shapes)


@pytest.mark.parametrize("rows", [1, 5, 24, "n"])
def test_products_of_many_depths(rows, tmp_path):
    module, weights = products(SIZES, rows)
    random = np.random.default_rng(1)
    inputs = [random.standard_normal((rows if isinstance(rows, int) else 7, n), np.float32) for n in SIZES]
    (want,) = rx.evaluate(module, "main", *inputs, weights=weights)
    exe = rx.compile(module)
    exe.bind(exe.prepare(weights))
    np.testing.assert_allclose(exe(*inputs), want, rtol=1e-4, atol=1e-4)  # sums of up to 129 products, in another order
    assert len(kernels_of(module, tmp_path)) < 2 * len(SIZES)


#: Rows, depth and columns: rows beside tiles in every way that these are cut, whole panels.
MATRICES = [(40, 264, 224), (41, 320, 192), (43, 400, 256), (46, 248, 160), (47, 264, 320), (64, 256, 160), (100, 512, 192)]


def layers(sizes: list[tuple[int, int, int]], residual: bool) -> tuple[rx.Module, dict[str, np.ndarray]]:
    """A linear layer of each size, with a bias, what is added and a rectifier."""
    builder, shapes = rx.Builder(), dict[str, tuple[int, ...]]()
    with builder.function("main"):
        x = [builder.input(f"x{i}", (rows, depth), "f32") for i, (rows, depth, _) in enumerate(sizes)]
        more = [builder.input(f"r{i}", (rows, columns), "f32") for i, (rows, _, columns) in enumerate(sizes)]
        results = {}
        for i, (_, depth, columns) in enumerate(sizes):
            shapes |= {f"w{i}": (depth, columns), f"b{i}": (columns,)}
            w, b = builder.weight(f"w{i}", (depth, columns), "f32"), builder.weight(f"b{i}", (columns,), "f32")
            y = builder.add(builder.matmul(x[i], w), b)
            results[f"y{i}"] = builder.relu(builder.add(y, more[i])) if residual else builder.add(builder.relu(y), more[i])
        builder.output(**results)
    return builder.build(), weights_of(shapes)


def inputs_of(sizes: list[tuple[int, int, int]]) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    shapes = [*((m, k) for m, k, _ in sizes), *((m, n) for m, _, n in sizes)]
    return [random.standard_normal(shape, np.float32) for shape in shapes]


def of_any_size(kernels: list[str]) -> list[str]:
    """The arguments of those that read a packed matrix of any size; what packs one has it last."""
    return [k.partition("(")[2] for k in kernels if re.search(r"memref<\?x\?x\d+xf32>,", k)]


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("checked", [True, False])
def test_products_of_many_rows_depths_and_columns(residual, checked, tmp_path):
    module, weights = layers(MATRICES, residual)
    inputs = inputs_of(MATRICES)
    exe = rx.compile(module, checked=checked)
    exe.bind(exe.prepare(weights))
    for got, want in zip(exe(*inputs), rx.evaluate(module, "main", *inputs, weights=weights), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)  # sums of up to 512 products, in another order
    assert len(of_any_size(kernels_of(module, tmp_path))) == 1


def test_a_product_of_other_sizes_is_the_same_kernel(tmp_path):
    """Of another model: sizes are arguments, so its code is there already."""
    texts = []
    for sizes in (MATRICES, [(m + 8, 2 * k, n + 32) for m, k, n in MATRICES[:4]]):
        texts.append(of_any_size(kernels_of(layers(sizes, True)[0], tmp_path / str(len(texts)))))
    assert len(texts[0]) == 1
    assert texts[0] == texts[1]


UNEVEN = [[(41, 256, 200), (40, 264, 232), (48, 272, 168)], [(41, 255, 160), (40, 257, 192), (48, 259, 160)]]


@pytest.mark.parametrize("sizes", UNEVEN)
def test_panels_and_sums_that_are_not_whole_stay(sizes, tmp_path):
    """Code for what is left of them would be longer than the kernels are together."""
    module, weights = layers(sizes, True)
    inputs = inputs_of(sizes)
    exe = rx.compile(module)
    exe.bind(exe.prepare(weights))
    for got, want in zip(exe(*inputs), rx.evaluate(module, "main", *inputs, weights=weights), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)  # sums of up to 272 products, in another order
    assert not of_any_size(kernels_of(module, tmp_path))


def test_plans_that_need_the_depth_stay_as_they_are():
    """Blocks of many rows: their plan says how many steps of the sum a block has."""
    module, weights = products([2048, 2304, 2560, 2816], 96, 256)
    inputs = [np.random.default_rng(1).standard_normal((96, n), np.float32) for n in (2048, 2304, 2560, 2816)]
    (want,) = rx.evaluate(module, "main", *inputs, weights=weights)
    exe = rx.compile(module)
    exe.bind(exe.prepare(weights))
    np.testing.assert_allclose(exe(*inputs), want, rtol=1e-4, atol=1e-2)  # sums of up to 2816 products, in another order


def test_each_preparation_is_what_it_was_alone():
    """Bit by bit: a weight in a module of its own, whose kernel knows its size, and among others."""
    module, weights = products(SIZES, 8)
    together = rx.compile(module).prepare(weights)
    for n in SIZES:
        alone, _ = products([n], 8)
        (prepared,) = rx.compile(alone).prepare({f"w{n}": weights[f"w{n}"]}).values()
        assert any(np.array_equal(prepared, found) for found in together.values() if found.shape == prepared.shape)


@pytest.mark.parametrize("axis", [1, 2])
def test_parts_of_concatenations(axis):
    """Copies whose rows lie apart: of many sizes, one after the other."""
    builder, parts = rx.Builder(), []
    with builder.function("main"):
        for i, n in enumerate([40, 33, 64, 7, 40, 96]):
            shape = [2, 3, 40]
            shape[axis] = n
            parts.append(builder.input(f"x{i}", shape, "f32"))
        whole = builder.concat(parts, axis=axis)
        more = builder.concat([whole, *parts[:3]], axis=axis)
        builder.output(a=whole, b=more, c=builder.concat([more, whole], axis=axis))
    module = builder.build()
    random = np.random.default_rng(2)
    inputs = [random.standard_normal(p.shape, np.float32) for p in parts]
    for got, want in zip(rx.compile(module)(*inputs), rx.evaluate(module, "main", *inputs), strict=True):
        np.testing.assert_array_equal(got, want)
