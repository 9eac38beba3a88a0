"""Winograd's filtering means what a direct convolution does, up to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from relaxir.dialect.packed_layout import PackedLayout
from relaxir.dialect.reference.registry import reference_of
from relaxir.dialect.winograd import OF_FILTER, OF_IMAGE, OF_RESULT


def test_the_matrices_are_those_of_minimal_filtering() -> None:
    """Exactly, of integers that f64 holds: the sum of three products for each of two results."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        d, g = rng.integers(-9, 9, 4), rng.integers(-9, 9, 3)
        found = np.array(OF_RESULT) @ ((np.array(OF_FILTER) @ g) * (np.array(OF_IMAGE) @ d))
        np.testing.assert_array_equal(found, [d[:3] @ g, d[1:] @ g])


@pytest.mark.parametrize(
    ("image", "filters", "padding"),
    [
        ((2, 8, 8, 5), 20, [1, 1, 1, 1]),
        ((1, 7, 9, 4), 16, [1, 0, 2, 1]),
        ((1, 3, 3, 3), 8, [0, 0, 0, 0]),
        ((3, 1, 2, 7), 9, [4, 3, 5, 2]),
        ((0, 5, 5, 2), 3, [0, 0, 0, 0]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_means_what_a_direct_one_does(image: tuple[int, ...], filters: int, padding: list[int], dtype: type) -> None:
    rng = np.random.default_rng(1)
    x, g = (rng.standard_normal(shape).astype(dtype) for shape in (image, (3, 3, image[3], filters)))
    along = np.array(OF_FILTER, dtype)
    transformed = np.einsum("iy,yxco,jx->ijco", along, g, along).reshape(16 * image[3], filters).astype(dtype)
    layout = PackedLayout(16)
    packed = reference_of("pack_weight").function(transformed, layout=layout)
    got = reference_of("winograd_conv2d").function(x, packed, layout=layout, channels=filters, padding=padding)
    attributes = {"strides": [1, 1], "dilation": [1, 1], "groups": 1, "data_layout": "NHWC", "kernel_layout": "HWIO"}
    want = reference_of("conv2d").function(x, g, padding=padding, **attributes)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    tolerance = 4e-6 if dtype is np.float32 else 4e-15  # 16 times 7 products, added in another order
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * np.abs(want).max(initial=1))
