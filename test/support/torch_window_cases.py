"""More cases for :mod:`.torch_cases`: convolutions and pooling in all dimensions, bags of embeddings, windows, diagonals."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from .torch_cases import Outputs, case, floats, integers, value

aten = torch.ops.aten

#: Kernel size, stride, padding, output padding, dilation, groups.
_TRANSPOSED = [
    (3, 2, 1, 1, 1, 1),
    (4, 2, 1, 0, 1, 2),
    (2, 3, 0, 2, 1, 1),
    (3, 1, 2, 0, 2, 2),
    (1, 2, 0, 1, 1, 1),
    (1, 1, 2, 0, 1, 1),
]


def _of_rank(name: str, x: Tensor, owner: Any = F) -> Callable[..., Any]:
    """``conv_transpose2d`` for an image: the function for as many dimensions as there are behind batch and channels."""
    return getattr(owner, name.format(x.dim() - 2))


@case(floats(2, 4, 8), floats(2, 4, 5, 6), floats(1, 4, 5, 6, 5), floats(4, 3, 4), floats(6))
def transposed_convolutions(line, image, volume, w, b):
    found: Outputs = {}
    for x, how in itertools.product((line, image, volume), _TRANSPOSED):
        size, stride, padding, extra, dilation, groups = how
        kernel = w[(..., slice(size), *[None] * (x.dim() - 3))].expand(4, 3, *[size] * (x.dim() - 2))
        kernel = kernel + torch.arange(size)
        more = {"stride": stride, "padding": padding, "output_padding": extra, "dilation": dilation, "groups": groups}
        found[f"rank {x.dim() - 2} {how}"] = _of_rank("conv_transpose{}d", x)(x, kernel, b[: 3 * groups], **more)
    found["unbatched"] = F.conv_transpose2d(image[0], w[:, :, :1, None])
    return found


@case(floats(2, 4, 5, 6, 7), floats(6, 4, 3, 2, 2), floats(6, 2, 2, 2, 2), floats(6))
def volumes(x, w, grouped, b):
    return {
        "plain": F.conv3d(x, w, b),
        "strided": F.conv3d(x, w, b, stride=(2, 1, 3), padding=(1, 0, 2)),
        "dilated": F.conv3d(x, grouped, None, dilation=(2, 1, 1), groups=2),
        "same": F.conv3d(x, w, b, padding="same"),
        "unbatched": F.conv3d(x[0], w),
        "grouped, strided": F.conv3d(x, grouped, b, stride=(2, 3, 1), padding=(2, 0, 1), groups=2),
        "one channel each": F.conv3d(x, w[:4, :1], b[:4], stride=(1, 2, 2), padding="valid", dilation=(2, 1, 1), groups=4),
        "one channel each, unbatched": F.conv3d(x[1], w[:4, :1, :1], padding=(0, 1, 1), groups=4),
    }


@case(floats(2, 3, 7), floats(2, 3, 7, 6), floats(1, 3, 7, 6, 5))
def padding_by_edges(line, image, volume):
    given = [((2, 1), line), ((2, 1, 0, 3), image), ((1, 2, -1, 3, 2, 0), volume)]
    found = {f"{mode} {n}": F.pad(x, n, mode=mode) for mode in ("reflect", "replicate", "circular") for n, x in given}
    for n, x in given:
        found[f"reflection_pad {n}"] = _of_rank("reflection_pad{}d", x, aten)(x, n)
        found[f"replication_pad {n}"] = _of_rank("replication_pad{}d", x, aten)(x, n)
    return found


@case(floats(2, 3, 7), floats(2, 3, 7, 6), floats(1, 3, 7, 6, 5))
def pooling(line, image, volume):
    found: Outputs = {}
    for x, (size, stride, padding, ceil) in itertools.product(
        (line, image, volume), [(2, 2, 0, False), (3, 2, 1, True), (3, 1, 1, False)]
    ):
        key = f"{x.dim() - 2} {size} {stride} {padding} {ceil}"
        found[f"max {key}"] = _of_rank("max_pool{}d", x)(x, size, stride, padding, ceil_mode=ceil)
        found[f"dilated {key}"] = _of_rank("max_pool{}d", x)(x, 2, stride, padding, dilation=2, ceil_mode=ceil)
        for padded in (True, False):
            found[f"avg {padded} {key}"] = _of_rank("avg_pool{}d", x)(x, size, stride, padding, ceil, padded)
        if x.dim() > 3:
            found[f"own divisor {key}"] = _of_rank("avg_pool{}d", x)(x, size, stride, padding, ceil, divisor_override=5)
    for size, stride, padding in [(9, 9, 0), (11, 5, 2)]:  # longer than the image, as EfficientNet's: it is cut
        found[f"max long {size}"] = F.max_pool2d(image, size, stride, padding, ceil_mode=True)
        found[f"avg long {size}"] = F.avg_pool2d(image, size, stride, padding, True)
        found[f"avg long {size} unpadded"] = F.avg_pool2d(image, size, stride, padding, True, False)
        found[f"avg long {size} divisor"] = F.avg_pool2d(image, size, stride, padding, True, divisor_override=7)
        found[f"max long {size} volume"] = F.max_pool3d(volume, size, stride, padding, ceil_mode=True)
    found["max long dilated"] = F.max_pool2d(image, (3, 4), (2, 3), 1, dilation=(3, 3), ceil_mode=True)
    found["narrow divisor"] = F.avg_pool2d(image.bfloat16(), 3, 2, 1, True, divisor_override=5)
    found["unbatched"] = F.max_pool3d(volume[0], 2)
    found["adaptive 1"] = F.adaptive_max_pool1d(line, 3)
    found["adaptive 2"] = F.adaptive_max_pool2d(image, (3, 4))
    found["adaptive 2 up"] = F.adaptive_max_pool2d(image, (9, 1))
    found["adaptive mean 3"] = F.adaptive_avg_pool3d(volume, (2, 6, 3))
    found["adaptive mean 3 unbatched"] = F.adaptive_avg_pool3d(volume[0], (None, 1, 8))
    found["adaptive 3"] = F.adaptive_max_pool3d(volume, (2, 6, 3))
    found["aten line"] = aten.max_pool1d(line, 2)
    return found


def _with_equals() -> Tensor:
    """Numbers of which many are equal, and in each row some that are none, or infinite."""
    x = torch.randint(-1, 2, (2, 2, 6, 7)).float()
    x[0, :, 1::3, ::2], x[:, 1, 3, 2:5], x[1, 0] = float("-inf"), float("nan"), float("-inf")
    return x


@case(floats(2, 3, 7), _with_equals, floats(1, 3, 5, 6, 5), integers(1, 6, 7))
def places_of_largest(line, image, volume, numbers):
    found: Outputs = {}
    for x, (size, stride, padding, dilation, ceil) in itertools.product(
        (line, image, volume), [(2, 2, 0, 1, False), (3, 2, 1, 1, True), (3, 1, 1, 2, False), (2, 3, 1, 3, True)]
    ):
        pool, key = _of_rank("max_pool{}d", x), f"{x.dim() - 2} {size} {stride} {padding} {dilation} {ceil}"
        found[f"largest {key}"], found[f"places {key}"] = pool(x, size, stride, padding, dilation, ceil, True)
    for x in (line, image, volume):
        pool, key = _of_rank("adaptive_max_pool{}d", x), f"{x.dim() - 2}"
        found[f"adaptive {key}"], found[f"adaptive places {key}"] = pool(x, (3, 4, 2)[: x.dim() - 2], True)
    found["integers"] = F.max_pool2d(numbers, 3, 2, 1, return_indices=True)[1]
    return found


@case(floats(4, 5), floats(2, 3, 5), floats(2, 1, 5), floats(40, 3))
def distances(x, y, z, many):
    found: Outputs = {}
    for order in (0.0, 0.5, 1.0, 2.0, 3.0, float("inf")):
        found[f"between {order}"] = torch.cdist(x, y, order)
        found[f"between batches {order}"] = torch.cdist(y, z, order)
        found[f"of pairs {order}"] = F.pdist(many, order)
    found["of nothing"] = torch.cdist(x[:, :0], y[0, :, :0])
    found["of one"] = F.pdist(x[:1])
    found["narrow"] = torch.linalg.vector_norm(x.bfloat16(), 3, -1)
    for order in (-1.0, -2.5, 0.0, 0.5, float("-inf")):
        found[f"norm {order}"] = torch.linalg.vector_norm(x, order, dim=1)
    return found


@case(
    lambda: torch.tensor([0, 3, 7, 2, 1, 9, 3]),
    floats(10, 4),
    lambda: torch.rand(7),
    integers(3, 5, low=0, high=10),
    lambda: torch.tensor([0, 2, 2]),
    lambda: torch.tensor([0, 0, 4, 7]),
)
def bags(i, w, scales, rows, offsets, ends):
    found: Outputs = {}
    for mode, padding in itertools.product(("sum", "mean", "max"), (None, 3, -7)):
        key = f"{mode} {padding}"
        found[key] = F.embedding_bag(i, w, offsets, mode=mode, padding_idx=padding)
        found[f"ends {key}"] = F.embedding_bag(i, w, ends, mode=mode, padding_idx=padding, include_last_offset=True)
        found[f"rows {key}"] = F.embedding_bag(rows, w, mode=mode, padding_idx=padding)
    found["one"] = F.embedding_bag(i, w, offsets[:1])
    found["scaled"] = F.embedding_bag(i, w, offsets, per_sample_weights=scales, mode="sum")
    found["scaled rows"] = F.embedding_bag(rows, w, per_sample_weights=scales[:5].expand(3, 5), mode="sum")
    found["narrow"] = F.embedding_bag(i.int(), w, offsets.int())
    found["inner padding"] = aten._embedding_bag(w, i, offsets, False, 1, False, None, False, 3)[0]
    found["outer"] = aten.embedding_bag(w, i, offsets)[0]
    return found


@case(floats(4, 6, 5), floats(3, 4, 6, 5), value(2.0, torch.float32), integers(4, 6))
def parts(x, y, scalar, i):
    found: Outputs = {}
    for offset, axes in itertools.product((0, 1, -2, 9), ((0, 1), (1, 2), (2, 0))):
        found[f"diagonal {offset} {axes}"] = torch.diagonal(x, offset, *axes) + 1
    found["diagonal batch"] = torch.diagonal(y, 1, -1, -2) + 1
    found["trace"] = torch.trace(i)
    for axis, size, step in ((0, 2, 1), (1, 3, 2), (2, 5, 1), (-1, 1, 4), (1, 6, 7)):
        found[f"unfold {axis} {size} {step}"] = x.unfold(axis, size, step) + 1
    found["strided"] = x.as_strided((2, 3), (1, 2))  # by a table of places that torch-mlir's importer writes down
    found["unfold scalar"] = scalar.unfold(0, 1, 1) + 1
    return found


@case(floats(3, 5), floats(2, 3, 4), floats(2, 4, 5), floats(4, 6), floats(4, 5), floats(3, 6, 5), floats(3))
def sums_of_products(x, a, b, left, right, w, bias):
    return {
        "addbmm": torch.addbmm(x, a, b),
        "addbmm scaled": torch.addbmm(x, a, b, beta=2, alpha=0.5),
        "addbmm new": torch.addbmm(x * float("nan"), a, b, beta=0),
        "bilinear": F.bilinear(left, right, w, bias),
    }


@case(
    floats(4, 8, 16),
    floats(4, 1, 16),
    lambda: torch.tensor([[0], [7], [-1], [3]]),
    floats(4, 3),
    lambda: torch.tensor([2, -4, 0]),
)
def writes_at_places(x, rows, i, columns, j):
    def put(*args):
        return aten.index_put(x, *args)

    return {
        "rows": put([torch.arange(4)[:, None], i], rows),
        "later": put([None, j, j + 1], columns),
        "all": put([j[:2], j[:2], i[:2] + 3], columns[:2, :2]),
        "one index": put([None, i], rows[0, 0]),
        "first": put([i % 4], rows[:, :, None].expand(4, 1, 8, 16)),
    }
