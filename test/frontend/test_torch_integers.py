"""Convolutions and mean pooling of integers: exact, or wrapped as torch wraps them."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import relaxir as rx  # noqa: E402
from support import models  # noqa: E402

#: Functions of an image [2, 4, 8, 9] and a kernel [4, 4, 3, 3].
WINDOWS = [
    lambda x, w: functional.conv2d(x, w[:, :2], stride=2, padding=1, groups=2),
    lambda x, w: functional.conv2d(x, w, w[0, 0, 0, :1].expand(4), dilation=2),
    lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
    lambda x, w: functional.conv1d(x[:, :, 0], w[:, :, 0], padding="same"),
    lambda x, w: functional.conv3d(torch.stack([x, x + 1, x], 2), torch.stack([w, w], 2)),
    lambda x, w: functional.conv3d(torch.stack([x, x + 1, x], 2), torch.stack([w, w], 2)[:, :2], groups=2),
    lambda x, w: functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    lambda x, w: functional.avg_pool2d(x, (2, 3), 2, (1, 1), count_include_pad=False),
    lambda x, w: functional.avg_pool2d(x, 2, divisor_override=3),
    lambda x, w: functional.avg_pool1d(x[0], 3, ceil_mode=True),
    lambda x, w: functional.avg_pool3d(x[None], 2, padding=1),
]


class Windows(nn.Module):
    def forward(self, x, w):
        return [f(x, w) for f in WINDOWS]


def test_windows_over_integers() -> None:
    """Numbers beyond what floats hold, and sums that wrap."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(-(2**60), 2**60, (2, 4, 8, 9), generator=generator)
    w = torch.randint(-(2**30), 2**30, (4, 4, 3, 3), generator=generator)
    with models.quiet():
        module = rx.from_torch(torch.export.export(Windows(), (x, w)))
    for found in (rx.compile(module)(x, w), rx.evaluate(module, "main", x.numpy(), w.numpy())):
        for got, wanted in zip(found, Windows()(x, w), strict=True):
            np.testing.assert_array_equal(np.asarray(got), wanted.numpy())
