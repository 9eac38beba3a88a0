"""Operators of torch that C functions compute: exported, compiled by torch.compile, saved, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import relaxir as rx  # noqa: E402
from relaxir.frontend import custom_operators  # noqa: E402
from support import models  # noqa: E402
from support.extern_library import extern_library  # noqa: E402

SPACE = "relaxir_extern"


@torch.library.custom_op(f"{SPACE}::scale", mutates_args=())
def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


@scale.register_fake
def _(x, factor):
    return torch.empty_like(x)


@torch.library.custom_op(f"{SPACE}::mix", mutates_args=())
def mix(
    xs: list[torch.Tensor], k: torch.Tensor, bias: torch.Tensor | None, number: int, twice: bool, mode: str = "plus"
) -> torch.Tensor:
    sign = -1 if mode == "minus" else 1
    return sign * (xs[0] + xs[1] * k.float() + (2 * number if twice else number))


@mix.register_fake
def _(xs, k, bias, number, twice, mode="plus"):
    return torch.empty_like(xs[0])


@torch.library.custom_op(f"{SPACE}::copy", mutates_args=())
def copy(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return x.clone(), torch.tensor(x.numel()), torch.tensor([4, 16], dtype=torch.int32)


@copy.register_fake
def _(x):
    return torch.empty_like(x), torch.empty((), dtype=torch.int64), torch.empty(2, dtype=torch.int32)


@torch.library.custom_op(f"{SPACE}::iota", mutates_args=())
def iota(x: torch.Tensor, first: list[int]) -> torch.Tensor:
    return torch.arange(first[0], first[0] + 2 * x.shape[0], dtype=torch.int32)


@iota.register_fake
def _(x, first):
    return torch.empty(2 * x.shape[0], dtype=torch.int32)


@torch.library.custom_op(f"{SPACE}::write", mutates_args=("out",))
def write(x: torch.Tensor, out: torch.Tensor, out_scale: float = 2.0) -> torch.Tensor:
    """What the caller gave as ``out`` is returned, and x takes its place."""
    before = out.clone()
    out.copy_(x)
    return before


@write.register_fake
def _(x, out, out_scale=2.0):
    return torch.empty_like(out)


@torch.library.custom_op(f"{SPACE}::fill", mutates_args=("out",))
def fill(out: torch.Tensor, x: torch.Tensor, factor: float) -> None:
    out.copy_(x * factor)


@fill.register_fake
def _(out, x, factor):
    return None


@torch.library.custom_op(f"{SPACE}::parts", mutates_args=())
def parts(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    return [x.clone(), y.clone()]


@parts.register_fake
def _(x, y):
    return [torch.empty_like(x), torch.empty_like(y)]


@torch.library.custom_op(f"{SPACE}::chosen", mutates_args=())
def chosen(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0]


@chosen.register_fake
def _(x):
    return torch.empty(torch.library.get_ctx().new_dynamic_size())


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extern_library(tmp_path_factory.mktemp("acme"))


@pytest.fixture(autouse=True)
def _registered(library: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(custom_operators, "_registered", {})
    for name in ("scale", "mix", "copy", "chosen"):
        rx.register_torch_op(f"{SPACE}::{name}", rx.Extern(library=library, symbol=f"acme_{name}"))
    rx.register_torch_op(f"{SPACE}::iota", rx.Extern(library=library, symbol="acme_count"))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(4, 4))
        self.register_buffer("k", torch.tensor([3], dtype=torch.int8))

    def forward(self, x):
        y = mix([x.sin(), scale(x, 2)], self.k, None, -5, True, mode="minus")
        return y @ scale(self.w.t().contiguous(), 0.5)


def exported(model, *inputs):
    with models.quiet():
        shapes = tuple({0: torch.export.Dim("n", min=2)} for _ in inputs)
        return torch.export.export(model.eval(), inputs, dynamic_shapes=shapes)


def test_a_program_with_tensors_lists_numbers_and_texts():
    model, x = Model(), torch.randn(3, 4)
    module = rx.from_torch(exported(model, x))
    assert str(module).count("relax.call_extern") == 3
    exe = rx.compile(module)
    assert any("call_extern" in w.ops for w in exe.manifest.prepared_weights.values())
    weights = {name: t.numpy() for name, t in model.state_dict().items()}
    exe.bind(exe.prepare(weights))
    for n in (2, 7):
        x = torch.randn(n, 4)
        torch.testing.assert_close(exe(x), model(x).detach(), rtol=1e-5, atol=1e-5)
        (wanted,) = rx.evaluate(module, "main", x.numpy(), weights=weights)
        np.testing.assert_allclose(wanted, model(x).detach().numpy(), rtol=1e-5, atol=1e-5)


def test_several_results_and_narrow_floats():
    class Copies(torch.nn.Module):
        def forward(self, x):
            y, count, told = copy(x + x)
            return y, count, told

    x = torch.randn(5, 3).bfloat16()
    exe = rx.compile(rx.from_torch(exported(Copies(), x)))
    for got, wanted in zip(exe(x), Copies()(x), strict=True):
        torch.testing.assert_close(got, wanted)


def test_sizes_that_the_fake_function_says_and_lists_of_numbers():
    class Places(torch.nn.Module):
        def forward(self, x):
            return iota(x, [7])

    exe = rx.compile(rx.from_torch(exported(Places(), torch.randn(4, 3))))
    torch.testing.assert_close(exe(torch.randn(3, 3)), torch.arange(7, 13, dtype=torch.int32))


def test_results_that_nobody_reads_have_sizes_too():
    class Counts(torch.nn.Module):
        def forward(self, x):
            return copy(x)[1]

    exe = rx.compile(rx.from_torch(exported(Counts(), torch.randn(5, 3))))
    assert int(exe(torch.randn(7, 3))) == 21


def test_a_list_as_result(library: Path):
    class Parts(torch.nn.Module):
        def forward(self, x):
            a, b = parts(x, x.exp())
            return a, b + 1

    rx.register_torch_op(f"{SPACE}::parts", rx.Extern(library=library, symbol="acme_apart"))
    exe, x = rx.compile(rx.from_torch(exported(Parts(), torch.randn(5, 3)))), torch.randn(4, 3)
    for got, wanted in zip(exe(x), Parts()(x), strict=True):
        torch.testing.assert_close(got, wanted)


def test_a_program_from_a_file(library: Path, tmp_path: Path):
    class Both(torch.nn.Module):
        def forward(self, x):
            out = torch.zeros_like(x)
            fill(out, x, 3.0)
            a, b = parts(x, out)
            return a + b

    rx.register_torch_op(f"{SPACE}::fill", rx.Extern(library=library, symbol="acme_fill"))
    rx.register_torch_op(f"{SPACE}::parts", rx.Extern(library=library, symbol="acme_apart"))
    rx.save_program(exported(Both(), torch.randn(5, 3)), tmp_path / "both.pt2")
    exe, x = rx.compile(tmp_path / "both.pt2"), torch.randn(4, 3)
    torch.testing.assert_close(exe(x), 4 * x)


def test_what_an_operator_writes_is_an_input_and_an_output(library: Path):
    class Writes(torch.nn.Module):
        def forward(self, x):
            out = torch.zeros_like(x)
            fill(out, x, 3)
            y = x.cos()
            before = write(out, y)
            return before, y, out

    rx.register_torch_op(f"{SPACE}::fill", rx.Extern(library=library, symbol="acme_fill"))
    rx.register_torch_op(f"{SPACE}::write", rx.Extern(library=library, symbol="acme_write"))
    exe, x = rx.compile(rx.from_torch(exported(Writes(), torch.randn(5, 3)))), torch.randn(4, 3)
    for got, wanted in zip(exe(x), Writes()(x), strict=True):
        torch.testing.assert_close(got, wanted)


def test_writes_to_parts_of_tensors_are_refused(library: Path):
    class Part(torch.nn.Module):
        def forward(self, x):
            out = torch.zeros(6, 3)
            fill(out[3:], x, 3.0)
            return out

    rx.register_torch_op(f"{SPACE}::fill", rx.Extern(library=library, symbol="acme_fill"))
    with pytest.raises(rx.RelaxError, match="expected a C function to write to whole tensors, got parts, or a list, as 'out'"):
        rx.from_torch(torch.export.export(Part(), (torch.randn(3, 3),)))


def test_torch_compile_calls_it():
    model, x, before = Model().eval(), torch.randn(5, 4), len(rx.torch_graphs())
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(model, backend="relaxir")(x), model(x), rtol=1e-5, atol=1e-5)
    assert [g.runs_in for g in rx.torch_graphs()[before:]] == ["relaxir"]


def test_an_error_names_the_line_of_the_model(library: Path):
    rx.register_torch_op(f"{SPACE}::scale", rx.Extern(library=library, symbol="acme_root"))

    class Root(torch.nn.Module):
        def forward(self, x):
            return scale(x, 2.0)

    exe = rx.compile(rx.from_torch(exported(Root(), torch.randn(3, 4))))
    exe(torch.ones(3, 4))
    with pytest.raises(rx.RelaxError, match=r"test_extern_operators\.py:\d+.*'acme_root' of '.*libacme\.so' to return 0"):
        exe(-torch.ones(3, 4))


def test_one_of_torchs_own(library: Path):
    """It is neither decomposed nor written in relax."""
    rx.register_torch_op("aten::erf", rx.Extern(library=library, symbol="acme_root"))

    class Erf(torch.nn.Module):
        def forward(self, x):
            return torch.erf(x)

    module = rx.from_torch(exported(Erf(), torch.randn(3, 4)))
    assert "acme_root" in str(module)
    np.testing.assert_array_equal(rx.evaluate(module, "main", np.full((2, 4), 3, np.float32))[0], np.full((2, 4), 3.0))


def test_in_branches_that_data_chooses():
    class Branches(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: scale(x, 2.0), lambda x: scale(x, -3.0), (x,))

    exe = rx.compile(rx.from_torch(exported(Branches(), torch.randn(3, 4))))
    for x in (torch.ones(2, 4), -torch.ones(5, 4)):
        torch.testing.assert_close(exe(x), Branches()(x))


def test_sizes_that_data_decides_are_refused():
    class Chosen(torch.nn.Module):
        def forward(self, x):
            return chosen(x)

    message = "expected results of a C function whose sizes those of inputs decide, got sizes that data decides"
    with pytest.raises(rx.RelaxError, match=rf"1 x relaxir_extern\.chosen: {message}"):
        rx.from_torch(torch.export.export(Chosen(), (torch.randn(4),)))


def test_sizes_and_numbers_from_data_as_arguments():
    class Sized(torch.nn.Module):
        def forward(self, x, k):
            y = mix([x, x], k.to(torch.int8).reshape(1), None, k.item(), False)
            return iota(x, [x.shape[0] + 1]), y

    with models.quiet():
        n = torch.export.Dim("n", min=2)
        program = torch.export.export(Sized(), (torch.randn(4, 3), torch.tensor(5)), dynamic_shapes=({0: n}, None))
    module = rx.from_torch(program)
    x, k = torch.randn(3, 3), torch.tensor(-4)
    for got, wanted in zip(rx.compile(module)(x, k), Sized()(x, k), strict=True):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"symbol": "acme::scale"}, "expected the name of a C function, got 'acme::scale'"),
        ({"symbol": "f", "library": 3}, "expected a path, got int"),
        ({"symbol": "f", "version": 1}, "expected a version of 'f' as text, got int"),
    ],
)
def test_what_is_no_c_function_is_refused(given, message):
    with pytest.raises(rx.RelaxError, match=message):
        rx.Extern(**given)
