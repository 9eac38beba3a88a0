"""torchvision's operators, under stand-ins for them where it is not installed: what NumPy says by their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.export import Dim  # noqa: E402

import relaxir as rx  # noqa: E402
from support import models  # noqa: E402

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, "
    "bool aligned) -> Tensor",
)


@pytest.fixture(scope="module", autouse=True)
def stand_ins():
    """Operators without what computes them: importing needs their names and the shapes of their results."""
    if hasattr(torch.ops.torchvision, "nms"):
        yield
        return
    with torch.library._scoped_library("torchvision", "FRAGMENT") as library:
        for schema in _SCHEMAS:
            library.define(schema)

        def kept(boxes, scores, limit):
            return scores.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)

        def pooled(x, regions, scale, height, width, samples, aligned):
            return x.new_empty(regions.shape[0], x.shape[1], height, width)

        torch.library.register_fake("torchvision::nms", kept, lib=library)
        torch.library.register_fake("torchvision::roi_align", pooled, lib=library)
        yield


def suppressed(boxes, scores, limit):
    """The definition: in the order of scores, each that no kept one covers by more than the limit."""
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        ratios = [overlap(boxes[i], boxes[j]) for j in kept]
        kept += [int(i)] if all(r <= limit for r in ratios) else []
    return kept


def overlap(a, b):
    shared = np.prod(np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0))
    return shared / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared)


class Best(torch.nn.Module):
    def forward(self, boxes, scores):
        kept = torch.ops.torchvision.nms(boxes, scores, 0.4)
        return kept, boxes[kept]


def test_boxes_that_no_better_one_covers():
    n = Dim("n", min=2, max=200)
    with models.quiet():
        program = torch.export.export(Best(), (torch.rand(5, 4), torch.rand(5)), dynamic_shapes=({0: n}, {0: n}))
    executable = rx.compile(rx.from_torch(program))
    rng = np.random.default_rng(0)
    for count in (2, 30, 120):
        corners = rng.random((count, 2)).astype(np.float32) * 4
        boxes = np.concatenate([corners, corners + rng.random((count, 2)).astype(np.float32) * 3 + 0.1], 1)
        scores = rng.integers(0, 20, count).astype(np.float32)
        places, chosen = executable(boxes, scores)
        assert places.tolist() == suppressed(boxes, scores, 0.4)
        np.testing.assert_array_equal(chosen, boxes[places])


def sampled(image, y, x):
    """Between elements, the last ones repeated; 0 beyond one place outside."""
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(len(image))
    y, x = (min(max(p, 0.0), n - 1.0) for p, n in ((y, height), (x, width)))
    (top, left), (dy, dx) = (math.floor(y), math.floor(x)), (y % 1, x % 1)
    below, right = min(top + 1, height - 1), min(left + 1, width - 1)
    rows = [image[:, r, left] * (1 - dx) + image[:, r, right] * dx for r in (top, below)]
    return rows[0] * (1 - dy) + rows[1] * dy


def pooled(x, regions, scale, size, samples, aligned):
    result = np.zeros((len(regions), x.shape[1], *size))
    for k, (image, *sides) in enumerate(regions):
        left, top, right, bottom = (s * scale - (0.5 if aligned else 0) for s in sides)
        extents = [bottom - top, right - left] if aligned else [max(bottom - top, 1), max(right - left, 1)]
        parts = [e / n for e, n in zip(extents, size, strict=True)]
        counts = [samples if samples > 0 else math.ceil(p) for p in parts]
        for i in np.ndindex(*size):
            for at in np.ndindex(*counts):
                y, z = (s + (i[d] + (at[d] + 0.5) / counts[d]) * parts[d] for d, s in enumerate((top, left)))
                result[(k, slice(None), *i)] += sampled(x[int(image)], y, z) / max(counts[0] * counts[1], 1)
    return result


@pytest.mark.parametrize(("samples", "aligned", "images"), [(2, True, 2), (0, False, 1), (-1, True, 2)])
def test_regions_of_images(samples, aligned, images):
    class Pooled(torch.nn.Module):
        def forward(self, x, regions):
            return torch.ops.torchvision.roi_align(x, regions, 0.5, 3, 2, samples, aligned)

    rng = np.random.default_rng(1)
    x = rng.standard_normal((images, 3, 9, 11)).astype(np.float32)
    with models.quiet():
        inputs = torch.from_numpy(x), torch.rand(4, 5)
        program = torch.export.export(Pooled(), inputs, dynamic_shapes=(None, {0: Dim("k", min=2, max=99)}))
    executable = rx.compile(rx.from_torch(program))
    for count in (4, 7):
        corners = rng.random((count, 2)) * 16 - 2
        regions = np.concatenate([rng.integers(0, images, (count, 1)), corners, corners + rng.random((count, 2)) * 14 + 1], 1)
        regions = regions.astype(np.float32)
        got = executable(x, regions)
        np.testing.assert_allclose(got, pooled(x, regions, 0.5, (3, 2), samples, aligned), rtol=1e-4, atol=1e-4)
