"""Layers as Python objects: their parameters are weights, named by the attributes that hold them."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype


class Linear(rx.Layer):
    def __init__(self, inputs: int, outputs: int):
        self.weight, self.bias = rx.Parameter((outputs, inputs), "bf16"), rx.Parameter((outputs,))

    def __call__(self, x):
        return x @ self.weight.astype("f32").T + self.bias


class Model(rx.Layer):
    """Blocks in a list, a layer that is there twice, norms by name, and what is no layer."""

    def __init__(self):
        self.scale = 0.5
        self.blocks = [Linear(4, 8), Linear(8, 4)]
        self.again = self.blocks[0]
        self.norms = {"last": (rx.Parameter((8,)),)}

    def __call__(self, x):
        for block in (*self.blocks, self.again):
            x = block(x) * self.scale
        return x * self.norms["last"][0]


NAMES = ["blocks.0.weight", "blocks.0.bias", "blocks.1.weight", "blocks.1.bias", "norms.last.0"]


@pytest.mark.parametrize("name", ["", "model"])
def test_parameters_are_named_by_attribute(name):
    model, b = Model(), rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", 4))
        b.output(b.layer(model, name)(x))
    module = b.build()
    weights = module.functions["main"].weights
    assert [w.name for w in weights] == [f"{name}.{n}" if name else n for n in NAMES]
    assert isinstance(model.again.weight, rx.Parameter)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal([int(d) for d in w.shape]).astype(numpy_dtype(w.dtype)) for w in weights]
    x, (w0, b0, w1, b1, norm) = rng.standard_normal((3, 4), np.float32), (a.astype(np.float32) for a in arrays)
    want = (((x @ w0.T + b0) / 2 @ w1.T + b1) / 2 @ w0.T + b0) / 2 * norm
    given = dict(zip((w.name for w in weights), arrays, strict=True))
    exe = rx.compile(module, cache=False)
    exe.bind(exe.prepare(given))
    for got in (exe(x), rx.evaluate(module, "main", x, weights=given)[0]):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_what_is_no_layer_is_refused_at_its_line():
    b = rx.Builder()
    with pytest.raises(rx.RelaxError, match="expected a layer") as caught, b.function("main"):
        b.layer([rx.Parameter((2,))])
    assert str(caught.value.location).startswith(__file__)
    layer = Linear(2, 2)
    layer.bias = rx.Parameter((2,), 3)
    with pytest.raises(rx.RelaxError, match="expected a dtype such as") as caught, b.function("main"):
        b.layer(layer)
    assert str(caught.value.location).startswith(__file__)
