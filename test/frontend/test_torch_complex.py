"""Complex numbers become pairs of reals at import; what has no such form is refused with its line."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import save_file  # noqa: E402

import relaxir as rx  # noqa: E402
from support import models  # noqa: E402


class Rotary(torch.nn.Module):
    """As Llama's first code has it: pairs of neighbours as complex numbers, turned by a table of complex weights."""

    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(32.0), 1 / 10000 ** (torch.arange(4) / 4))
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles), persistent=False)

    def forward(self, x):
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * self.turns[: x.shape[1], None]).flatten(-2)


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def as_complex(x):
    return torch.complex(x, x.flip(0) * 0.5)


def spectrum(x):
    """As Fourier layers do it: some frequencies are written into zeros."""
    found = torch.zeros(3, 4, dtype=torch.complex64)
    found[:, :2] = torch.fft.rfft(x)[:, :2] * (1 - 0.5j)
    return found


FUNCTIONS = {
    "polar": lambda x: torch.view_as_real(torch.polar(x.abs(), x) * as_complex(x)),
    "sums": lambda x: torch.view_as_real((as_complex(x) + 1.5 - x) - as_complex(x).conj() * (2 - 1j)),
    "moves": lambda x: torch.view_as_real(torch.cat([as_complex(x).T.unsqueeze(0), as_complex(x).T[None] / 2], 1).sum(1)),
    "products": lambda x: (as_complex(x) @ as_complex(x).T).real * as_complex(x)[0, 0].imag,
    "lengths": lambda x: as_complex(x).abs() * 2,
    "quotients": lambda x: torch.view_as_real(as_complex(x) / as_complex(x + 1).conj() + x / as_complex(x)),
    "quotient of a number": lambda x: torch.view_as_real(as_complex(x) / (2 - 1j)),
    "dtypes": lambda x: torch.view_as_real(as_complex(x).to(torch.complex64) * 2j),
    "indices": lambda x: torch.view_as_real(as_complex(x)[torch.tensor([2, 0, 2])]),
    "indices of two dimensions": lambda x: torch.view_as_real(as_complex(x)[torch.tensor([2, 0]), torch.tensor([1, 3])]),
    "index_select": lambda x: torch.view_as_real(as_complex(x).index_select(1, torch.tensor([3, 1]))),
    "masks": lambda x: torch.view_as_real(as_complex(x).masked_fill(x > 0, 2 - 1j)),
    "choices": lambda x: torch.view_as_real(torch.where(x > 0, as_complex(x), as_complex(x).conj() * 2)),
    "choices of numbers": lambda x: torch.view_as_real(torch.where(x > 0, as_complex(x), 0)),
    "gathers": lambda x: torch.view_as_real(as_complex(x).gather(1, torch.tensor([[3], [0], [1]]))),
    "rolls": lambda x: torch.view_as_real(as_complex(x).roll(1, 0)),
    "shifts of frequencies": lambda x: torch.view_as_real(torch.fft.fftshift(torch.fft.fft(x))),
    "parts": lambda x: torch.view_as_real(as_complex(x).split([1, 3], 1)[1] * as_complex(x).unbind(1)[0][:, None]),
    "writes": lambda x: torch.view_as_real(spectrum(x)),
    "adds at places": lambda x: torch.view_as_real(as_complex(x).index_add(0, torch.tensor([1, 1]), as_complex(x)[:2] * 2)),
    "real beside complex": lambda x: torch.view_as_real(torch.cat([as_complex(x), x.to(torch.complex64)]).cumsum(0)),
    "powers": lambda x: torch.view_as_real(as_complex(x) ** 3 + as_complex(x) ** 2),
    "negative powers": lambda x: torch.view_as_real(as_complex(x + 3) ** -2 + 1 / as_complex(x + 3)),
    "reciprocals": lambda x: torch.view_as_real(as_complex(x + 3).reciprocal()),
    "full": lambda x: torch.view_as_real(torch.full((3, 4), 1 + 2j) + torch.ones_like(as_complex(x)) * 1j),
    "norms": lambda x: as_complex(x).norm() + as_complex(x).norm(dim=1),
    "casts": lambda x: torch.view_as_real(x.to(torch.complex64) * 1j + as_complex(x)),
}


def exported(model, *args, dims=None):
    with models.quiet(), torch.no_grad():
        return torch.export.export(model.eval(), args, dynamic_shapes=dims)


def assert_equal(program, *args):
    module = rx.from_torch(program)
    module.verify()
    found = rx.evaluate(module, "main", *(a.numpy() for a in args), weights=models.weights_of(program, module))
    wanted = torch.utils._pytree.tree_leaves(program.module()(*args))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operators_equal_eager_torch(name):
    torch.manual_seed(0)
    assert_equal(exported(Function(FUNCTIONS[name]), torch.randn(3, 4)), torch.randn(3, 4))


def test_numbers_that_are_complex_between_operators_that_all_have_a_form():
    """No operator asks for the program to be decomposed there."""
    functions = [lambda x: x.to(torch.complex64).abs(), lambda x: (x.cfloat() + 1).angle(), lambda x: x.cfloat().sum().abs()]
    x = torch.randn(3, 4)
    for function in functions:
        module = rx.from_torch(torch.export.export(Function(function), (x,)))
        np.testing.assert_allclose(rx.compile(module)(x.numpy()), function(x).numpy(), rtol=1e-6, atol=1e-6)


def test_quotients_of_large_and_small_numbers_and_by_zero():
    """Squares of these numbers leave the range; by zero PyTorch divides both parts by 0."""
    numbers = [complex(1e30, 2e30), complex(1e-30, -3e-30), 0j, complex(0, 2), complex(-3, 0)]
    a, b = (torch.tensor(list(n)) for n in zip(*[(x, y) for x in numbers for y in numbers if x or y], strict=True))
    function = Function(lambda a, b: torch.view_as_real(torch.view_as_complex(a) / torch.view_as_complex(b)))
    program = exported(function, torch.view_as_real(a), torch.view_as_real(b))
    module = rx.from_torch(program)
    with np.errstate(all="ignore"):
        (found,) = rx.evaluate(module, "main", torch.view_as_real(a).numpy(), torch.view_as_real(b).numpy())
    wanted = torch.view_as_real(a / b).numpy()
    finite = np.isfinite(wanted).all(-1)
    found_, wanted_ = (y[finite].astype(np.float64).view(np.complex128) for y in (found, wanted))
    assert (np.abs(found_ - wanted_) <= 1e-6 * np.abs(wanted_)).all()
    assert np.array_equal(np.isnan(found), np.isnan(wanted))


def test_rotary_by_complex_weights_at_all_lengths(tmp_path):
    torch.manual_seed(0)
    program = exported(Rotary(), torch.randn(2, 5, 3, 8), dims=({1: torch.export.Dim("length", min=2, max=32)},))
    for length in (5, 17):
        assert_equal(program, torch.randn(2, length, 3, 8))
    assert [(w.name, w.shape) for w in rx.from_torch(program).functions["main"].weights] == [("turns", (32, 4, 2))]
    rx.save_weights(program, tmp_path / "w.safetensors")


def test_padded_by_sizes_of_any_batch():
    """torch pads by the sizes of the example, and takes them for the only ones, where its kernel is run."""

    def forward(x, y):
        spectrum = torch.fft.rfft(x)
        padded = torch.nn.functional.pad(spectrum[..., :3], (0, spectrum.shape[-1] - 3))
        return torch.view_as_real(padded), torch.fft.irfft(torch.view_as_complex(y), n=20)

    batch, time = torch.export.Dim("batch"), torch.export.Dim("time", min=8, max=99)
    dims = (({0: batch, 2: time}, {0: batch}),)
    program = exported(Function(forward), torch.randn(2, 4, 16), torch.randn(2, 5, 2), dims=dims)
    for size, length in ((2, 16), (7, 9)):
        assert_equal(program, torch.randn(size, 4, length), torch.randn(size, 5, 2))


class Filter(torch.nn.Module):
    """A complex factor of each frequency, and a complex number."""

    def __init__(self):
        super().__init__()
        self.factors = torch.nn.Parameter(torch.randn(4, 9, dtype=torch.complex64))
        self.register_buffer("shift", torch.tensor(1 - 2j))

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x) * self.factors + self.shift, n=16)


@pytest.mark.parametrize("end", ["", ".pt", ".npz", ".safetensors"])
@pytest.mark.parametrize("target", [None, "prepared.safetensors"])
def test_weights_of_complex_numbers_are_prepared_as_they_are_stored(end, target, tmp_path):
    torch.manual_seed(0)
    module, x = Filter(), torch.randn(4, 16)
    tensors = {n: t.detach() for n, t in module.state_dict().items()}
    tensors["factors"] = tensors["factors"].T.contiguous().T  # as a mapping's, or those of a .pt file, may lie
    source = tensors if end == "" else str(tmp_path / f"weights{end}")
    if end == ".pt":
        torch.save(tensors, source)
    if end == ".npz":
        np.savez(source, **{n: t.numpy() for n, t in tensors.items()})
    if end == ".safetensors":
        save_file({n: t.contiguous() for n, t in tensors.items()}, source)
    exe = rx.compile(rx.from_torch(exported(module, x)))
    exe.bind(exe.prepare(source, *([] if target is None else [tmp_path / target])))
    torch.testing.assert_close(exe(x), module(x))
    with pytest.raises(rx.RelaxError, match=r"weight 'shift': expected f32\[2\], got f64\[2\]: cast=True rounds$"):
        exe.prepare({**tensors, "shift": tensors["shift"].to(torch.complex128)})


def test_torch_compile_has_them_too():
    function, x, before = FUNCTIONS["sums"], torch.randn(3, 4), len(rx.torch_graphs())
    torch.testing.assert_close(torch.compile(function, backend="relaxir")(x), function(x))
    assert [g.runs_in for g in rx.torch_graphs()[before:]] == ["relaxir"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: as_complex(x).sin().real, "aten.sin: expected tensors of real numbers"),
        (lambda x: as_complex(x).prod().real, "aten.prod: expected tensors of real numbers"),
        (lambda x: as_complex(x) * 2, "aten.mul.Tensor: expected tensors of real numbers"),
    ],
)
def test_what_has_no_rule_is_refused_with_its_line(function, message):
    with pytest.raises(rx.RelaxError, match=message) as caught:
        rx.from_torch(exported(Function(function), torch.randn(3, 4)))
    assert "got 1 that cannot be imported" in str(caught.value)
    assert "test_torch_complex.py" in caught.value.location


def test_a_complex_input_is_refused_by_its_name():
    with pytest.raises(rx.RelaxError, match=r"argument 'args_0': expected tensors of real numbers, got complex<f32>"):
        rx.from_torch(exported(Function(torch.view_as_real), torch.randn(3, dtype=torch.complex64)))


#: Of numbers [3, 130]: sizes with stages, one prime, odd and even, of two dimensions, of one and two numbers.
TRANSFORMS = {
    "half of the frequencies": lambda x: torch.view_as_real(torch.fft.rfft(x)),
    "all": lambda x: torch.fft.fft(x, dim=0, norm="ortho").imag,
    "of a prime number": lambda x: torch.fft.fft(x[:, :97]).real,
    "of a large prime number": lambda x: torch.view_as_real(torch.fft.ifft(torch.fft.fft(x, n=1021)[:, :600], n=613)),
    "of a large prime number to its half": lambda x: torch.fft.rfft(x, n=1021, norm="ortho").real,
    "of two dimensions": lambda x: torch.fft.fft2(x).real,
    "and back": lambda x: torch.fft.ifft(torch.fft.fft(x, norm="forward")).real,
    "and back to real numbers": lambda x: torch.fft.irfft(torch.fft.rfft(x) * 2),
    "of an odd size": lambda x: torch.fft.irfft(torch.fft.rfft(x), n=101),
    "back in two dimensions": lambda x: torch.fft.irfftn(torch.fft.rfftn(x)),
    "of one number": lambda x: torch.fft.irfft(torch.fft.rfft(x[:, :1]), n=1),
    "of two numbers": lambda x: torch.fft.irfft(torch.fft.rfft(x[:, :2]), n=2),
    "of windows": lambda x: torch.stft(x, 16, 8, window=torch.hann_window(16), return_complex=True).abs(),
}


def test_fourier_transforms():
    """Sums of 130 products; torch's own are within 1e-5 of those in f64 as well."""
    functions, x = list(TRANSFORMS.values()), torch.randn(3, 130)
    program = exported(Function(lambda x: [f(x) for f in functions]), x)
    module = rx.from_torch(program)
    found = rx.evaluate(module, "main", x.numpy(), weights=models.weights_of(program, module))
    for name, got, function in zip(TRANSFORMS, found, functions, strict=True):
        wanted = function(x.double()) if name != "of windows" else function(x)
        np.testing.assert_allclose(got, wanted.numpy(), rtol=2e-5, atol=2e-5, err_msg=name)


def test_fourier_transforms_of_sizes_that_a_call_tells():
    """As FNet mixes tokens, and of real numbers, half of the frequencies, whatever the size."""
    functions = [
        lambda x: torch.fft.fftn(x, dim=(0, 1)).real,
        lambda x: torch.view_as_real(torch.fft.ifft(torch.fft.fft(x, dim=0, norm="ortho") * 2, dim=0)),
        lambda x: torch.view_as_real(torch.fft.rfft(x, dim=0, norm="forward")),
    ]
    program = exported(
        Function(lambda x: [f(x) for f in functions]), torch.randn(6, 8), dims=(({0: torch.export.Dim.DYNAMIC},),)
    )
    module = rx.from_torch(program)
    executable = rx.compile(module)
    for rows in (6, 2, 13, 130):
        x = torch.randn(rows, 8)
        for found in (executable(x), rx.evaluate(module, "main", x.numpy())):
            for got, function in zip(found, functions, strict=True):
                np.testing.assert_allclose(np.asarray(got), function(x.double()).numpy(), rtol=2e-5, atol=2e-5)


def convolved(x, k):
    """As models of long convolutions have it, without what goes round."""
    n = x.shape[-1]
    return torch.fft.irfft(torch.fft.rfft(x, n=2 * n) * torch.fft.rfft(k, n=2 * n), n=2 * n)[..., :n]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: convolved(x, x.flip(0)),
        lambda x: torch.fft.irfft(torch.fft.rfft(x), n=x.shape[-1]),
        lambda x: torch.fft.irfft(torch.fft.rfft(x, dim=0), n=x.shape[0], dim=0),
        lambda x: torch.fft.irfft2(torch.fft.rfft2(x), s=x.shape[-2:]),
    ],
)
def test_back_to_real_numbers_of_sizes_that_a_call_tells(function):
    """Whether they are even or odd."""
    auto = torch.export.Dim.AUTO
    program = exported(Function(function), torch.randn(8, 12), dims=(({0: auto, 1: auto},),))
    executable = rx.compile(rx.from_torch(program))
    for shape in ((8, 12), (7, 9), (5, 6), (5, 64)):
        x = torch.randn(shape)
        np.testing.assert_allclose(executable(x), function(x.double()), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("n", [8, 12, 9, 100, 134, 1])
@pytest.mark.parametrize("is_open", [True, False])
def test_frequencies_that_are_real(n, is_open):
    """Their imaginary part is no rounding error, so that their angle is 0 or pi, as torch has it."""

    def angles(x):
        found = torch.fft.rfft(x)
        return torch.stack([found[..., 0].angle(), torch.view_as_real(found)[..., n // 2, 1]])

    dims = (({0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO},),) if is_open and n > 1 else None
    x = torch.randn(20, n)
    executable = rx.compile(rx.from_torch(exported(Function(angles), x, dims=dims)))
    first, middle = (np.asarray(a) for a in executable(x))
    np.testing.assert_array_equal(first, angles(x)[0])
    assert n % 2 or not middle.any()
