"""relax-fold-batch-norm: what it computes, what is left at run time, and that it fires on what torch exports."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import relaxir as rx
from relaxir.dialect.analysis.work import work
from relaxir.dialect.functions import body_of, find_function, num_input
from relaxir.dialect.struct_info import TensorInfo
from support import models
from support.op_counts import counts

MODULE = Path(__file__).with_name("fold-batch-norm.mlir")
FOLD = "relax-fold-batch-norm"
COMPILE = (
    f"relax-inline-private-functions,{FOLD},relax-canonicalize,relax-lift-transform-params,relax-canonicalize,cse,symbol-dce"
)
FUNCTIONS = ["conv", "bias", "one_dimension", "linear", "in_front", "in_front_of_linear", "narrow", "region", "weight_as_bias"]
SIZES = {"n": 2}


def arrays_for(module: rx.Module, name: str, dtype: type) -> list[np.ndarray]:
    """Random arguments: all positive, so that as a variance each is one."""
    rng = np.random.default_rng(0)
    arguments = body_of(find_function(module.ir.operation, name)).arguments
    infos = [TensorInfo.of(a) if "tensor" in str(a.type) else None for a in arguments]
    shapes = [() if i is None else tuple(d if isinstance(d, int) else SIZES["n"] for d in i.shape) for i in infos]
    values = [rng.uniform(0.5, 2, s) for s in shapes]
    return [np.array(True) if i is None else v.astype(dtype) for i, v in zip(infos, values, strict=True)]


def evaluated(module: rx.Module, name: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
    function = find_function(module.ir.operation, name)
    split = num_input(function)
    names = [w.name for w in module.functions[name].weights]
    found = rx.evaluate(module, name, *arrays[:split], weights=dict(zip(names, arrays[split:], strict=True)))
    return [np.asarray(f, np.float64) for f in found]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_f64_results_are_equal_but_for_its_rounding(name):
    text = MODULE.read_text().replace("xf32", "xf64").replace("xbf16", "xf64").replace("tensor<f32>", "tensor<f64>")
    module = rx.Module.parse(text)
    arrays = arrays_for(module, name, np.float64)
    want, got = (evaluated(m, name, arrays) for m in (module, module.run(FOLD)))
    for a, b in zip(want, got, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12 * np.abs(a).max())


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "narrow"])
def test_in_f32_results_differ_by_rounding(name):
    """Each of at most 36 products of a sum is rounded three times (scale, weight, product), and the sum once for each; the
    shift adds less than ten roundings. All terms are positive and below the largest result's 64-fold."""
    module = rx.Module.parse(MODULE.read_text())
    arrays = arrays_for(module, name, np.float32)
    want, got = (evaluated(m, name, arrays) for m in (module, module.run(FOLD)))
    for a, b in zip(want, got, strict=True):
        assert np.abs(a - b).max() <= (3 + 36 + 10) * 2**-24 * 64 * np.abs(a).max()


@pytest.mark.parametrize("name", ["conv", "bias", "in_front"])
def test_in_nhwc_as_in_nchw(name):
    module = rx.Module.parse(MODULE.read_text().replace("xf32", "xf64").replace("tensor<f32>", "tensor<f64>"))
    moved = module.run("relax-convert-layout,relax-canonicalize")
    folded = moved.run(FOLD)
    assert "NHWC" in str(folded)
    assert counts(folded, name)["batch_norm"] == 0
    arrays = arrays_for(module, name, np.float64)
    for a, b in zip(evaluated(module, name, arrays), evaluated(folded, name, arrays), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12 * np.abs(a).max())


def test_resnet_has_no_batch_norm_left_and_a_bias_add_for_each_at_run_time():
    model = models.resnet18()
    program = model.export()
    module = rx.from_torch(program)
    before, (folded, plain) = counts(module), (module.run(f"{first}relax-lift-transform-params") for first in (f"{FOLD},", ""))
    after = counts(folded)
    assert before["batch_norm"] == 20
    assert before + Counter(add=20) - Counter(batch_norm=20, permute_dims=1) == after
    flops = [work(find_function(m.ir.operation, "main")).at({"batch": 2}).flops for m in (folded, plain)]
    assert flops[0] < flops[1]
    inputs = model.inputs()
    executable = rx.compile(module, pipeline=COMPILE)
    executable.bind(executable.prepare(models.weights_of(program, module)))
    (want,) = model.eager(inputs)
    np.testing.assert_allclose(executable(**inputs).numpy(), want, rtol=1e-4, atol=1e-5 * np.abs(want).max())


class Mixed(nn.Module):
    """What torch has batch norms around: convolutions with bias, in one dimension, depthwise, and linear layers."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.depthwise = nn.Conv2d(6, 12, 3, groups=6, bias=False)
        self.second = nn.BatchNorm2d(12, affine=False)
        self.line = nn.Conv1d(12, 4, 3)
        self.third = nn.BatchNorm1d(4)
        self.linear = nn.Linear(4, 5)
        self.last = nn.BatchNorm1d(5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.conv(x)))
        x = torch.relu(self.second(self.depthwise(x))).mean(3)
        x = torch.relu(self.third(self.line(x))).mean(2)
        return self.last(self.linear(x))


def test_every_kind_of_layer_that_torch_puts_one_behind():
    torch.manual_seed(0)
    model = Mixed().eval()
    for part in model.modules():
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2)
    x = torch.randn(2, 3, 8, 8)
    program = torch.export.export(model, (x,))
    module = rx.from_torch(program)
    assert counts(module)["batch_norm"] == 4
    assert counts(module.run(FOLD))["batch_norm"] == 0
    executable = rx.compile(module, pipeline=COMPILE)
    executable.bind(executable.prepare(models.weights_of(program, module)))
    np.testing.assert_allclose(executable(x).numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)
