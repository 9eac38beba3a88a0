"""Antialiased resampling, along each axis over the window that the filter covers: reference semantics and compiled code."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402
from torch.nn import functional  # noqa: E402

import relaxir as rx  # noqa: E402
from support import models  # noqa: E402

#: Sizes of images, and those wanted: smaller, larger, the same along an axis, by factors.
SIZES = [
    ((20, 31), (7, 4)),
    ((4, 5), (4, 9)),
    ((1, 9), (5, 1)),
    ((10, 12), (0.5, 1.5)),
]


class Resized(nn.Module):
    def __init__(self, wanted, dtype=torch.float32):
        super().__init__()
        self.wanted, self.dtype = wanted, dtype

    def forward(self, x, y):
        given = [y.shape[-2:]] if self.wanted is None else self.wanted
        for size in given:
            kind = {"scale_factor": size} if isinstance(size[0], float) else {"size": size}
            for mode in ("bilinear", "bicubic"):
                for corners in (False, True):
                    image = x[0] if self.wanted is None else x[given.index(size)]
                    yield functional.interpolate(image.to(self.dtype), mode=mode, align_corners=corners, antialias=True, **kind)


class Listed(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, y):
        return list(self.model(x, y))


def assert_agree(module, executable, model, x, y):
    wanted = model(x, y)
    arrays = [t.numpy() for t in (*x, y)]
    for found in (executable(*arrays), rx.evaluate(module, "main", *arrays)):
        for got, expected in zip(found, wanted, strict=True):
            expected = expected.float().numpy()
            np.testing.assert_allclose(np.asarray(got, np.float32), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("dtype", "sizes"), [(torch.float32, SIZES), (torch.float64, SIZES[::3])])
def test_images_are_resampled_with_a_filter(dtype, sizes):
    torch.manual_seed(0)
    x, y = [torch.randn(2, 3, *before) for before, _ in sizes], torch.randn(1)
    model = Listed(Resized([after for _, after in sizes], dtype))
    with torch.no_grad(), models.quiet():
        module = rx.from_torch(torch.export.export(model, (x, y)))
    assert_agree(module, rx.compile(module), model, x, y)


def test_between_sizes_that_a_call_tells():
    torch.manual_seed(0)
    model = Listed(Resized(None))
    dims = [{i + 2: Dim(n, min=2, max=64) for i, n in enumerate(pair)} for pair in ("hw", "ab")]
    x, y = [torch.randn(1, 2, 9, 12)], torch.randn(1, 1, 4, 7)
    with torch.no_grad(), models.quiet():
        module = rx.from_torch(torch.export.export(model, (x, y), dynamic_shapes=([dims[0]], dims[1])))
    executable = rx.compile(module)
    for sizes in ((9, 12, 4, 7), (4, 6, 4, 13), (2, 2, 2, 2), (30, 9, 6, 2)):
        assert_agree(module, executable, model, [torch.randn(1, 2, *sizes[:2])], torch.randn(1, 1, *sizes[2:]))


def test_what_is_no_number_stays_in_its_windows():
    x = torch.randn(1, 1, 16, 16)
    x[0, 0, 3, 5] = float("nan")

    class Smaller(nn.Module):
        def forward(self, x):
            return functional.interpolate(x, size=(4, 4), mode="bicubic", antialias=True)

    with models.quiet():
        module = rx.from_torch(torch.export.export(Smaller(), (x,)))
    (found,) = rx.evaluate(module, "main", x.numpy())
    wanted = Smaller()(x).numpy()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    assert not np.isnan(wanted).all()


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_whose_channels_lie_last(mode):
    """As behind a linear layer: they are resized as they lie."""

    class Behind(nn.Module):
        def forward(self, x):
            image = x.transpose(1, 2).reshape(2, 5, 4, 6)
            return functional.interpolate(image, size=(7, 9), mode=mode)

    x = torch.randn(2, 24, 5, generator=torch.Generator().manual_seed(0))
    module = rx.from_torch(torch.export.export(Behind(), (x,)))
    assert ": (tensor<2x4x6x5xf32>" in str(module)
    torch.testing.assert_close(rx.compile(module)(x), Behind()(x), rtol=1e-5, atol=1e-5)
