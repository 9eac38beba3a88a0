"""relax-convert-layout: images of whole models are reordered at the edges only, and nothing changes but the order of sums."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import relaxir as rx
from support import models
from support.op_counts import counts

CONVERT = "relax-convert-layout,relax-canonicalize"
LIFT = "relax-lift-transform-params,relax-canonicalize,cse,symbol-dce"


def test_resnet_is_reordered_at_its_input_alone():
    model = models.resnet18()
    program = model.export()
    module = rx.from_torch(program)
    converted = module.run(CONVERT)
    weights, x = models.weights_of(program, module), model.inputs()["x"].numpy()
    # Before the classifier the image is one by one, so putting it back in order moves nothing.
    assert counts(converted.run(LIFT))["permute_dims"] == 1
    want, got = (rx.evaluate(m, "main", x, weights=weights)[0] for m in (module, converted))
    # The reference's sums are a BLAS product's, whose order may depend on the layout: it does on AVX-512, and not on AVX2.
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("first", ["", "relax-fold-batch-norm,"])
def test_resnet_compiled(first):
    model = models.resnet18()
    program = model.export()
    module = rx.from_torch(program)
    executable = rx.compile(module, pipeline=f"relax-inline-private-functions,{first}{CONVERT},{LIFT}")
    executable.bind(executable.prepare(models.weights_of(program, module)))
    for batch, size in ((2, 64), (1, 64)):
        inputs = model.inputs(batch, size)
        (want,) = model.eager(inputs)
        np.testing.assert_allclose(executable(**inputs).numpy(), want, rtol=1e-4, atol=1e-5 * np.abs(want).max())


class Branches(nn.Module):
    """What convolutional models do between convolutions: concatenate, gate, normalise channels last, pool in several ways."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.grouped = nn.Conv2d(8, 4, 3, padding=1, groups=2)
        self.squeeze = nn.Conv2d(12, 12, 1)
        self.norm = nn.LayerNorm(12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.silu(self.stem(x))
        x = torch.cat([x + self.depthwise(x), self.grouped(x)], 1)
        x = x * torch.sigmoid(self.squeeze(x.mean((2, 3), keepdim=True)))
        x = self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return nn.functional.avg_pool2d(nn.functional.max_pool2d(x, 2), 2)


def test_what_convolutional_models_do_in_between():
    torch.manual_seed(0)
    model, x = Branches().eval(), torch.randn(2, 3, 8, 8)
    program = torch.export.export(model, (x,))
    module = rx.from_torch(program)
    # The two around the layer norm are gone: it finds the channels last.
    assert counts(module.run(f"{CONVERT},{LIFT}"))["permute_dims"] == 2
    executable = rx.compile(module, pipeline=f"{CONVERT},{LIFT}")
    executable.bind(executable.prepare(models.weights_of(program, module)))
    np.testing.assert_allclose(executable(x).numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)
