"""Images of bytes in other sizes: to the last bit what PyTorch computes in whole numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402
from torch.nn import functional  # noqa: E402

import relaxir as rx  # noqa: E402
from support import models  # noqa: E402

#: Mode, whether antialiased, whether corners are those of the operand.
WAYS = list(itertools.product(("bilinear", "bicubic"), (False, True), (False, True)))


class Resized(nn.Module):
    """Of each way, to the given sizes and by factors; to the size of the second operand where there is none."""

    def __init__(self, ways, sizes=(), factors=()):
        super().__init__()
        self.ways, self.sizes, self.factors = ways, sizes, factors

    def forward(self, x, y):
        wanted = [{"size": s} for s in self.sizes or ([] if self.factors else [y.shape])]
        wanted += [{"scale_factor": f} for f in self.factors]
        return [
            functional.interpolate(x, mode=mode, antialias=antialias, align_corners=corners, **kind)
            for mode, antialias, corners in self.ways
            for kind in wanted
        ]


def assert_equal(found, wanted):
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(got), expected.numpy())


def image(*shape):
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("ways", "known"), [(WAYS, {"sizes": ((4, 9),)}), (WAYS[1::3], {"factors": ((1.7, 0.6),)})])
def test_to_known_sizes(ways, known):
    x, y = image(1, 3, 7, 6), torch.ones(1)
    model = Resized(ways, **known)
    with models.quiet():
        module = rx.from_torch(torch.export.export(model, (x, y)))
    assert_equal(rx.compile(module, cache=False)(x, y), model(x, y))
    assert_equal(rx.evaluate(module, "main", x.numpy(), y.numpy()), model(x, y))


def test_between_sizes_that_a_call_tells():
    model, places = Resized([WAYS[0], WAYS[6]]), ([(2, "h"), (3, "w")], [(0, "a"), (1, "b")])
    dims = [{i: Dim(n, min=2, max=64) for i, n in pairs} for pairs in places]
    with models.quiet():
        module = rx.from_torch(torch.export.export(model, (image(1, 3, 9, 12), torch.ones(4, 7)), dynamic_shapes=dims))
    executable = rx.compile(module, cache=False)
    for h, w, a, b in ((9, 12, 4, 7), (2, 2, 2, 2), (30, 9, 6, 2)):
        x, y = image(1, 3, h, w), torch.ones(a, b)
        assert_equal(executable(x, y), model(x, y))
