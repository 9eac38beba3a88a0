"""``torch.compile(model, backend="relaxir")``: what graphs compute, which run where, and in whose memory weights lie."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import relaxir as rx  # noqa: E402
from relaxir.frontend import torch_backend  # noqa: E402
from support import models  # noqa: E402


@pytest.fixture(autouse=True)
def graphs():
    """The graphs that a test made so far, as a function."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    before = len(rx.torch_graphs())
    yield lambda: rx.torch_graphs()[before:]
    torch._dynamo.reset()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[torch_backend.CompiledGraph]:
    """The compiled graphs that a test makes."""
    found = []

    class Kept(torch_backend.CompiledGraph):
        def __init__(self, traced, executable):
            super().__init__(traced, executable)
            found.append(self)

    monkeypatch.setattr(torch_backend, "CompiledGraph", Kept)
    return found


def assert_equal(got, wanted):
    assert type(got) is type(wanted)
    if isinstance(wanted, torch.Tensor):
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)  # sums in another order
        assert got.stride() == wanted.stride()
    else:
        assert got == wanted


class Broken(torch.nn.Module):
    """A graph break in the middle, and Python behind it that looks at sizes."""

    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x):
        y = self.up(x).relu()
        torch._dynamo.graph_break()
        return self.down(y).T, y.shape[0]


def test_graphs_around_a_break_run_at_all_sizes_on_one_set_of_weights(graphs, compiled):
    model = Broken().eval()
    fast = torch.compile(model, backend="relaxir")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", rx.RelaxWarning)
        for n in (3, 4, 9, 30):
            x = torch.randn(n, 8)
            for got, wanted in zip(fast(x), model(x), strict=True):
                assert_equal(got, wanted)
    # One for the first size, one for all others.
    assert [(g.runs_in, len(g.symbols)) for g in graphs()] == [("relaxir", 0), ("relaxir", 0), ("relaxir", 1), ("relaxir", 1)]
    assert graphs()[0].place.startswith(f"{__file__}:")
    assert "runs in relaxir: " in str(graphs()[2])
    assert_in_the_modules_memory_or_one_packed_copy([graph.executable._held for graph in compiled], model)


def assert_in_the_modules_memory_or_one_packed_copy(arrays, model):
    parameters = dict(model.named_parameters())
    assert [sorted(a) for a in arrays[:2]] == [sorted(a) for a in arrays[2:]]
    for name, array in {**arrays[0], **arrays[1]}.items():
        others = [a[name] for a in arrays if name in a]
        assert [np.shares_memory(array, other) for other in others] == [True, True]
        assert (name in parameters) == name.endswith("bias")
        if name in parameters:
            assert array.__array_interface__["data"][0] == parameters[name].data_ptr()


def test_weights_that_change_or_are_replaced_are_prepared_again():
    model = torch.nn.Linear(8, 16).eval()
    fast = torch.compile(model, backend="relaxir")
    x = torch.randn(3, 8)
    with torch.no_grad():
        fast(x)
        model.weight.mul_(2)
        assert_equal(fast(x), model(x))
        model.bias.add_(1)
        assert_equal(fast(x), model(x))
        model.weight = torch.nn.Parameter(torch.randn(16, 8))
        assert_equal(fast(x), model(x))


def test_packed_copies_go_with_the_model(compiled):
    before = set(torch_backend._prepared)  # what tests before have left
    fast = torch.compile(torch.nn.Linear(24, 8), backend="relaxir")
    with torch.no_grad():
        fast(torch.randn(2, 24))
    (key,) = [k for k in torch_backend._prepared if k[0].startswith("weight.") and k not in before]
    torch._dynamo.reset()
    compiled.clear()
    del fast
    gc.collect()
    assert key not in torch_backend._prepared


class Counting(torch.nn.Module):
    """Writes to a buffer, takes a number, has a constant in its code, and returns a transposed tensor, a size and None."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(2, 4))

    def forward(self, x, times=1):
        self.seen[1] += x[0] * times
        return (x * 2).T.contiguous().T, x @ torch.tensor([1.0, 2, 3, 4]), x.shape[0] + 1, None, self.seen.sum()


def test_buffers_numbers_and_outputs_are_as_in_eager_pytorch(graphs):
    model, other = Counting().eval(), Counting().eval()
    fast = torch.compile(model, backend="relaxir", dynamic=True)
    with torch.no_grad():
        for n, times in ((3, 2), (5, 3), (7, 6)):
            x = torch.randn(n, 4)
            for got, wanted in zip(fast(x, times), other(x, times), strict=True):
                assert_equal(got, wanted)
    assert_equal(model.seen, other.seen)
    assert {g.runs_in for g in graphs()} == {"relaxir"}
    with torch.no_grad(), pytest.warns(rx.RelaxWarning, match="expected symbolic integers from 0 on, got -2"):
        fast(x, -2)


def test_what_cannot_run_compiled_runs_in_eager_pytorch_and_says_so(graphs):
    def unsupported(x):
        return torch.special.bessel_j0(x)

    x = torch.eye(3)
    fast = torch.compile(unsupported, backend="relaxir")
    with pytest.warns(rx.RelaxWarning, match=r"(?s)test_torch_compile.py:[0-9]+\) runs in eager .*special_bessel_j0"):
        assert_equal(fast(x), unsupported(x))
    assert [g.runs_in for g in graphs()] == ["eager"]
    strict = torch.compile(unsupported, backend="relaxir", options={"fallback": False})
    torch._dynamo.reset()
    with pytest.raises(Exception, match="expected a graph that runs compiled, got graph 0/0"):
        strict(x)


def test_training_is_left_to_eager_pytorch(graphs):
    model = torch.nn.Linear(4, 4)
    fast = torch.compile(model, backend="relaxir")
    with pytest.warns(rx.RelaxWarning, match=r"it computes gradients: call the model under torch.no_grad\(\)"):
        fast(torch.randn(2, 4)).sum().backward()
    assert model.weight.grad is not None
    with torch.inference_mode():
        x = torch.randn(2, 4)
        assert_equal(fast(x), model(x))
    assert [g.runs_in for g in graphs()] == ["eager", "relaxir"]


def test_options_are_those_of_compile(compiled):
    model = torch.nn.Linear(64, 64).eval()
    x = torch.randn(3, 64)
    with torch.no_grad():
        got = torch.compile(model, backend="relaxir", options={"weights": "int8"})(x)
        torch.testing.assert_close(got, model(x), rtol=0.05, atol=0.05)  # 8 bits per weight, 64 products a sum
    assert any(array.dtype.itemsize == 1 for array in compiled[0].executable._held.values())


def test_convolutions_are_those_of_compile(compiled):
    model = torch.nn.Conv2d(16, 16, 3, padding=1).eval()
    x = torch.randn(1, 16, 12, 12)
    with torch.no_grad():
        got = torch.compile(model, backend="relaxir", options={"convolutions": "direct"})(x)
        torch.testing.assert_close(got, model(x), rtol=0, atol=1e-5)
    (name,) = (name for name in compiled[0].executable._held if "weight" in name)
    assert compiled[0].executable._held[name].shape == (1, 144, 32)  # nine taps, not sixteen places


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"precision": "int8"},
            "expected options out of activations, convolutions, device, fallback, target, weights, got 'precision'",
        ),
        ({"weights": "int3"}, "expected weights as .*, got 'int3'"),
    ],
)
def test_other_options_are_refused(options, message):
    with torch.no_grad(), pytest.raises(Exception, match=message):
        torch.compile(torch.nn.Linear(4, 4), backend="relaxir", options=options)(torch.randn(2, 4))


def test_a_transformer_runs_compiled_at_all_lengths(graphs):
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    with models.quiet():
        model = BertModel(config, add_pooling_layer=False).eval()
    fast = torch.compile(model, backend="relaxir", dynamic=True)
    with torch.no_grad():
        for batch, length in ((2, 5), (3, 17)):
            ids = torch.randint(50, (batch, length))
            assert_equal(fast(ids).last_hidden_state, model(ids).last_hidden_state)
    assert [g.runs_in for g in graphs()] == ["relaxir"]


VIEWS = {
    "half": lambda x: x[:, : x.shape[1] // 2],
    "second half": lambda x: x.chunk(2, 1)[1],
    "part of a result": lambda x: ((y := x * 2), y[:, : y.shape[1] // 2]),
    "parts of one result": lambda x: ((y := x * 2)[:, : y.shape[1] // 2], y[:, 1:]),
    "transposed": lambda x: (x.t()[1:], (y := x + 1), y.t()),
    "repeated": lambda x: x[:, None].expand(2, 3, x.shape[1]),
    "column": lambda x: x[:, x.shape[1] // 2],
    "written input": lambda x: x.add_(1)[:, : x.shape[1] // 2],
    "every second": lambda x: x[:, 1::2],
}


@pytest.mark.parametrize("name", VIEWS)
def test_results_that_are_views_are_those_of_eager_pytorch(graphs, name):
    """torch reads strides and offsets of results, and makes views of inputs by them; once a size varies, of nothing else."""
    function = VIEWS[name]
    fast = torch.compile(function, backend="relaxir", dynamic=True)
    for count in (9, 8, 7, 2):
        x, other = (torch.arange(2.0 * count).reshape(2, count) for _ in range(2))
        wanted, found = function(other), fast(x)
        assert torch.equal(x, other)
        for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (wanted, found)), strict=True):
            assert torch.equal(a, b)
            assert a.stride() == b.stride()
    assert {g.runs_in for g in graphs()} == {"relaxir"}
