"""Operators along dimensions whose sizes are symbols, at several sizes: reference semantics and compiled code against torch."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402
from torch.nn import functional  # noqa: E402

import relaxir as rx  # noqa: E402
from support import models  # noqa: E402

INF, NAN = float("inf"), float("nan")
SIZES = (6, 2, 3, 13)

#: Functions of one tensor [2, n]; n is 2 to 50.
ALONG_ROWS = {
    "roll by less than a size": lambda x: torch.roll(x, 2, 1),
    "roll back": lambda x: torch.roll(x, (-2, 1), (1, 0)),
    "roll by more than a size": lambda x: torch.roll(x, 7, 1),
    "roll back by more": lambda x: torch.roll(x, -107, 1),
    "roll by half": lambda x: torch.roll(x, x.shape[1] // 2, 1),
    "roll all": lambda x: torch.roll(x, 5),
    "pad to even": lambda x: functional.pad(x, (0, x.shape[1] % 2)),
    "pad to a multiple": lambda x: functional.pad(x, (0, -x.shape[1] % 4), value=1.5),
    "pad and crop": lambda x: functional.pad(x, (x.shape[1] % 3, 1, -1, 2)),
    "nearest": lambda x: functional.interpolate(x[None, None], scale_factor=(3, 2)),
    "nearest by size": lambda x: functional.interpolate(x[None, None], size=(2, x.shape[1] * 2)),
    "nearest in one dimension": lambda x: functional.interpolate(x[None], scale_factor=2),
    "nearest in one by size": lambda x: functional.interpolate(x[None], size=11),
    "nearest in three": lambda x: functional.interpolate(x[None, None, None], scale_factor=(1, 3, 2)),
    "nearest in three by size": lambda x: functional.interpolate(x[None, None, None], size=(2, 3, 9)),
    "nearest exact": lambda x: functional.interpolate(x[None, None], scale_factor=(3, 2), mode="nearest-exact"),
    "nearest exact by size": lambda x: functional.interpolate(x[None, None], size=(3, 7), mode="nearest-exact"),
    "nearest exact in one": lambda x: functional.interpolate(x[None], scale_factor=1.25, mode="nearest-exact"),
    "nearest exact in three": lambda x: functional.interpolate(x[None, None, None], size=(2, 1, 5), mode="nearest-exact"),
    "groups": lambda x: functional.group_norm(x[None].expand(x.shape[1], 2, -1) * x[0][:, None, None], 2),
    "groups of channels": lambda x: functional.group_norm((x * x[0][:, None, None]).expand(-1, 2, -1), 1, x[0, :1].expand(2)),
    "logcumsumexp": lambda x: torch.logcumsumexp(x * 30, 1),
    "cummax": lambda x: torch.cummax(x, 1)[1],
    "cummin": lambda x: torch.cummin(x, 1)[0],
    "replicate": lambda x: functional.pad(x, (2, 1), mode="replicate"),
    "largest": lambda x: functional.adaptive_max_pool1d(x, 1),
    "largest of parts": lambda x: functional.adaptive_max_pool1d(x, 3),
    "diagonal": lambda x: x.diagonal() + 1,
    "diagonal of a square": lambda x: (x[0] * x[1][:, None]).diagonal() + 1,
    "trace": lambda x: torch.trace(x[0] * x[1][:, None]),
    "twice in einsum": lambda x: torch.einsum("ii->i", x[0] * x[1][:, None]),
    "diagonal written": lambda x: x.diagonal_scatter(torch.ones(2)),
    "diagonal of a square written": lambda x: (x[0] * x[1][:, None]).diagonal_scatter(x[1]),
}

#: The same of n from 4 on, which torch asks for.
BESIDE_DIAGONALS = {
    "above": lambda x: (x[0] * x[1][:, None]).diagonal(1) + 1,
    "below, of outer ones": lambda x: (x[None, :1] * x[1][:, None, None]).diagonal(-2, 0, 2) + 1,
    "written": lambda x: (x[0] * x[1][:, None]).diagonal_scatter(x[1, 1:], -1),
    "written to outer ones": lambda x: (x[None] * x[1][:, None, None]).diagonal_scatter(x[:, 1:], 1, 0, 2),
}


class Functions(nn.Module):
    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, x, *others):
        return [f(x, *others) for f in self.functions]


def imported(functions, x, dynamic=None):
    with torch.no_grad(), models.quiet():
        return rx.from_torch(torch.export.export(Functions(functions), (x,), dynamic_shapes=dynamic))


def close(got, wanted, names):
    for name, g, w in zip(names, got, wanted, strict=True):
        np.testing.assert_allclose(g, w.numpy(), rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(("cases", "least"), [(ALONG_ROWS, 2), (BESIDE_DIAGONALS, 4)])
def test_operators_along_symbolic_sizes(cases, least):
    functions = list(cases.values())
    module = imported(functions, torch.randn(2, 6), ({1: Dim("n", min=least, max=50)},))
    exe = rx.compile(module)
    for size in (s for s in SIZES if s >= least):
        x = torch.randn(2, size)
        wanted = [f(x) for f in functions]
        close(rx.evaluate(module, "main", x.numpy()), wanted, cases)
        close(exe(x.numpy()), wanted, cases)


@pytest.mark.parametrize("count", [2, 3])
def test_chunks_of_a_size_that_is_no_multiple(count):
    """As many parts as the example had; a size of fewer is refused, as by the exported program."""
    functions = [lambda x, i=i: (x * 2).chunk(count, 1)[i].sum(1) for i in range(count)]
    module = imported(functions, torch.randn(2, 6), ({1: Dim.AUTO},))
    exe = rx.compile(module)
    for size in (size for size in (2, 3, 5, 7, 8, 9, 31) if len(torch.empty(size).chunk(count)) == count):
        x = torch.randn(2, size)
        close(exe(x.numpy()), [f(x) for f in functions], range(count))
    if count == 3:
        with pytest.raises(rx.RelaxError, match=r"expected sizes as torch\.export has assumed them"):
            exe(np.ones((2, 4), np.float32))


def _places_read_by_what_nobody_reads(x):
    largest, places = functional.adaptive_max_pool2d(x[..., 0], 2, return_indices=True)
    (places + 1).float()
    return largest


def test_places_that_nothing_is_made_of():
    """torch.export leaves reads of them, of open sizes, which have no form."""
    functions = [
        lambda x: functional.adaptive_max_pool2d(x[..., 0], 4),
        lambda x: functional.adaptive_max_pool3d(x, 1),
        lambda x: functional.adaptive_max_pool3d(x, (3, 2, 5)),
        _places_read_by_what_nobody_reads,
    ]
    sizes = {axis: Dim(name, min=1, max=50) for axis, name in ((0, "n"), (2, "d"), (3, "h"), (4, "w"))}
    module = imported(functions, torch.randn(2, 3, 5, 6, 7), (sizes,))
    exe = rx.compile(module)
    for shape in [(1, 3, 9, 2, 1), (4, 3, 3, 8, 5)]:
        x = torch.randn(shape)
        close(exe(x.numpy()), [f(x) for f in functions], "2134")


def test_rows_that_are_not_a_factor_apart_are_those_of_torch():
    scales = (1.1, 2.1, 2.5, 3.2, 0.5, 41.0)
    functions = [lambda x, s=s: functional.interpolate(x, scale_factor=(1, s)) for s in scales]
    x = torch.arange(9.0).reshape(1, 1, 1, 9).repeat(1, 1, 2, 100)
    wanted = [f(x) for f in functions]
    for name, g, w in zip(scales, rx.evaluate(imported(functions, x), "main", x.numpy()), wanted, strict=True):
        np.testing.assert_array_equal(g, w.numpy(), err_msg=str(name))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_sums_of_logarithms_keep_infinities_and_what_is_no_number(dtype):
    rows = [[-INF, -INF, 1, INF, 2, -INF], [NAN, 1, 2, 3, 4, 5], [-INF, 3, NAN, INF, 1, 1], [-500, -600, -100, 3, 88, 89]]
    functions = [
        lambda x: torch.logcumsumexp(x, 1),
        lambda x: torch.logcumsumexp(x[:, :0], 1),
        lambda x: torch.logcumsumexp(x[0, 2], 0),
    ]
    x = torch.tensor(rows, dtype=dtype)
    module = imported(functions, x)
    tolerance = {torch.float32: 1e-6, torch.float64: 1e-14, torch.float16: 2e-3}[dtype]
    for got in (rx.evaluate(module, "main", x.numpy()), rx.compile(module)(x.numpy())):
        for g, f in zip(got, functions, strict=True):
            np.testing.assert_allclose(g, f(x).numpy(), rtol=tolerance, atol=0)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(
    ("mode", "shape", "wanted"),
    [
        ("bilinear", (3, 4), (3, 4)),
        ("bilinear", (3, 4), (3, 7)),
        ("bilinear", (3, 4), (2, 4)),
        ("trilinear", (3, 4, 5), (3, 6, 7)),
        ("trilinear", (3, 4, 5), (5, 4, 5)),
        ("trilinear", (3, 4, 5), (2, 4, 6)),
        ("trilinear", (3, 4, 5), (3.1 / 3, 1.5, 1.0)),
    ],
)
def test_images_are_copied_along_axes_whose_size_stays(mode, shape, wanted, align_corners):
    """Neighbours times 0 would be no numbers; NNSmith found it (seeds 96, 647)."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, *shape)
    x[torch.rand(x.shape) < 0.1] = NAN
    given = {"scale_factor": wanted} if isinstance(wanted[0], float) else {"size": wanted}

    def resized(x):
        return functional.interpolate(x, mode=mode, align_corners=align_corners, **given)

    (y,) = rx.evaluate(imported([resized], x), "main", x.numpy())
    np.testing.assert_allclose(y, resized(x).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("align_corners", [False, True])
def test_images_are_resized_between_sizes_that_are_known_at_run_time(align_corners):
    """Also where a size stays by chance: PyTorch copies then, and so does this."""
    torch.manual_seed(0)
    options = {"mode": "bilinear", "align_corners": align_corners}
    functions = [
        lambda x, y: functional.interpolate(x, size=y.shape[-2:], **options),
        lambda x, y: functional.interpolate(x, size=(5, y.shape[-1]), **options),
        lambda x, y: functional.interpolate(x.bfloat16(), scale_factor=(1, 2), **options),
        lambda x, y: functional.interpolate(x[..., 0], size=y.shape[-1], mode="linear", align_corners=align_corners),
    ]
    names = [{i + 2: Dim(n, min=2, max=64) for i, n in enumerate(pair)} for pair in ("hw", "ab")]
    args = torch.randn(1, 2, 5, 6), torch.randn(1, 1, 7, 9)
    with torch.no_grad(), models.quiet():
        module = rx.from_torch(torch.export.export(Functions(functions), args, dynamic_shapes=(names[0], (names[1],))))
    for sizes in ((5, 6, 7, 9), (4, 6, 4, 9), (2, 2, 2, 2), (3, 9, 6, 2)):
        x, y = torch.randn(1, 2, *sizes[:2]), torch.randn(1, 1, *sizes[2:])
        x[0, 0, 1, 1] = NAN
        for f, got in zip(functions, rx.evaluate(module, "main", x.numpy(), y.numpy()), strict=True):
            wanted = f(x, y)
            tolerance = 1e-5 if wanted.dtype == torch.float32 else 1e-2
            np.testing.assert_allclose(np.asarray(got, np.float32), wanted.float().numpy(), rtol=tolerance, atol=tolerance)


#: Of two images: to the size of the second one, along one axis to a known one, and by factors.
RESIZED = {
    "nearest": lambda x, y: functional.interpolate(x, size=y.shape[-2:]),
    "nearest, one axis": lambda x, y: functional.interpolate(x, size=(5, y.shape[-1])),
    "nearest by factors": lambda x, y: functional.interpolate(x, scale_factor=(41, 2)),
    "nearest by fractions": lambda x, y: functional.interpolate(x, scale_factor=(2.5, 0.75)),
    "linear by fractions": lambda x, y: functional.interpolate(x, scale_factor=(2.5, 0.75), mode="bilinear"),
    "cubic": lambda x, y: functional.interpolate(x, size=y.shape[-2:], mode="bicubic"),
    "cubic by corners": lambda x, y: functional.interpolate(x, size=(8, y.shape[-1]), mode="bicubic", align_corners=True),
    "cubic by factors": lambda x, y: functional.interpolate(x.double(), scale_factor=(2, 1.5), mode="bicubic"),
}


def test_images_are_copied_or_resized_by_cubes_between_sizes_that_are_known_at_run_time() -> None:
    torch.manual_seed(0)
    functions = list(RESIZED.values())
    names = [{i + 2: Dim(n, min=3, max=64) for i, n in enumerate(pair)} for pair in ("hw", "ab")]
    args = torch.randn(1, 2, 5, 6), torch.randn(1, 1, 7, 9)
    with torch.no_grad(), models.quiet():
        module = rx.from_torch(torch.export.export(Functions(functions), args, dynamic_shapes=(names[0], (names[1],))))
    executable = rx.compile(module)
    for sizes in ((5, 6, 7, 9), (4, 6, 4, 12), (3, 3, 3, 3), (23, 9, 6, 31)):
        x, y = torch.randn(1, 2, *sizes[:2]), torch.randn(1, 1, *sizes[2:])
        wanted = [f(x, y) for f in functions]
        for got in (executable(x.numpy(), y.numpy()), rx.evaluate(module, "main", x.numpy(), y.numpy())):
            for (name, _), g, w in zip(RESIZED.items(), got, wanted, strict=True):
                np.testing.assert_allclose(g, w.numpy(), rtol=1e-5, atol=1e-5, err_msg=name)


class Extremes(nn.Module):
    """The smaller and the larger one of two sizes, as numbers of elements and as bounds."""

    def forward(self, x):
        rows, columns = x.shape
        few = torch.topk(x, torch.sym_min(columns, 4), dim=1)[0]
        return few, x[:, : torch.sym_min(rows, columns)], torch.zeros(torch.sym_max(rows, columns - 3)), x[: min(rows, 3)]


def test_the_smaller_one_of_two_sizes() -> None:
    model, dynamic = Extremes(), {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
    module = rx.from_torch(torch.export.export(model, (torch.randn(5, 9),), dynamic_shapes=(dynamic,)))
    executable = rx.compile(module)
    executable.bind(executable.prepare({}))
    for shape in ((5, 9), (5, 4), (3, 2), (20, 6), (7, 7), (3, 50), (4, 3)):
        x = torch.randn(shape)
        want = [y.numpy() for y in model(x)]
        for got in (executable(x.numpy()), rx.evaluate(module, "main", x.numpy())):
            for expected, found in zip(want, got, strict=True):
                np.testing.assert_array_equal(found, expected)


class Blocks(nn.Module):
    """Sizes that are rounded up to whole blocks, in other words by each operator, and what lies beyond a limit cut off."""

    def __init__(self):
        super().__init__()
        self.register_buffer("bias", torch.randn(3, 16))

    def forward(self, x, y):
        n = x.shape[1]
        blocks = functional.pad(x, (0, -n % 4)).reshape(x.shape[0], -1, 4)
        twice = functional.pad(y, (0, 8 - n % 8))
        parts = twice.view(y.shape[0], twice.shape[1] // 8, 8)
        last = self.bias[max(0, 1 - n) :, max(0, 16 - n) :]
        return blocks.sum(1), blocks * 2, parts.transpose(1, 2).softmax(1), (x[:, None] + last).sum(1)


def test_sizes_that_are_rounded_up_and_cut_off() -> None:
    model, dynamic = Blocks(), {0: Dim.AUTO, 1: Dim.AUTO}
    args = (torch.randn(2, 6), torch.randn(2, 6))
    module = rx.from_torch(torch.export.export(model, args, dynamic_shapes=(dynamic, dynamic)))
    executable = rx.compile(module)
    weights = {"bias": model.get_buffer("bias").numpy()}
    executable.bind(executable.prepare(weights))
    for shape in ((2, 6), (5, 4), (3, 2), (2, 8), (7, 16), (3, 13)):
        args = (torch.randn(shape), torch.randn(shape))
        want = [y.numpy() for y in model(*args)]
        for got in (executable(*args), rx.evaluate(module, "main", *(a.numpy() for a in args), weights=weights)):
            for expected, found in zip(want, got, strict=True):
                np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-5)


def test_cubic_resampling_beside_what_is_no_number() -> None:
    """Along an axis that stays, too, PyTorch adds neighbours times 0."""

    class Cubic(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.interpolate(x, size=(4, 7), mode="bicubic")

    x = torch.arange(21.0).reshape(1, 1, 3, 7)
    x[0, 0, 1, 2], x[0, 0, 2, 6] = torch.nan, torch.inf
    found = rx.compile(rx.from_torch(torch.export.export(Cubic(), (x,))))(x)
    torch.testing.assert_close(found, Cubic()(x), equal_nan=True)
