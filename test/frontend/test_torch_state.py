"""Buffers that a model changes are state; several programs of one model become one module."""

from __future__ import annotations

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402

import relaxir  # noqa: E402
from relaxir import RelaxError  # noqa: E402
from relaxir.weights import Checkpoint  # noqa: E402
from support import models  # noqa: E402


def export(module, *args, dynamic=None):
    with torch.no_grad(), models.quiet():
        return torch.export.export(module.eval(), args, dynamic_shapes=dynamic)


class Counter(nn.Module):
    """Counts its calls from a first value on."""

    def __init__(self, first=0.0, shape=(), dtype=torch.float32):
        super().__init__()
        self.register_buffer("count", torch.zeros(shape, dtype=dtype) + first)

    def forward(self, x):
        self.count.add_(1)
        return x + self.count


@pytest.mark.parametrize("first", [0.0, 5.0, torch.arange(4.0)])
def test_a_counter_counts(first):
    model, x = Counter(first, (4,)), torch.zeros(4)
    program = export(model, x)
    executable = relaxir.compile(relaxir.from_torch(program))
    for _ in range(3):
        with torch.no_grad():
            wanted = model(x)
        torch.testing.assert_close(executable(x), wanted)
        np.testing.assert_array_equal(executable.state["count"], model.count.numpy())
    executable.reset_state()
    torch.testing.assert_close(executable(x), wanted - 2)


def test_the_first_value_is_in_the_module():
    text = str(relaxir.from_torch(export(Counter(shape=(1000,)), torch.zeros(1000))))
    assert "relax.state = {count = dense<0.000000e+00> : tensor<1000xf32>}" in text
    text = str(relaxir.from_torch(export(Counter(torch.arange(2), (2,), torch.int64), torch.zeros(2))))
    assert "relax.state = {count = dense<[0, 1]> : tensor<2xi64>}" in text


def test_state_without_contents_starts_from_zero():
    program = export(Counter(3.0, (4,)).to("meta"), torch.zeros(4, device="meta"))
    assert "relax.state = {count = dense<0.000000e+00> : tensor<4xf32>}" in str(relaxir.from_torch(program))


def test_state_is_no_weight(tmp_path):
    class Scaled(Counter):
        def __init__(self):
            super().__init__(shape=(2, 4))
            self.scale = nn.Parameter(torch.ones(4))

        def forward(self, x):
            self.count[1].mul_(0).add_(x)
            return self.count * self.scale

    program = export(Scaled(), torch.zeros(4))
    relaxir.save_weights(program, tmp_path / "w.safetensors")
    assert set(Checkpoint(tmp_path / "w.safetensors")) == {"scale"}
    assert [w.name for w in relaxir.from_torch(program).functions["main"].weights] == ["scale"]


class Cache(nn.Module):
    """Rows written at positions, by one of several operators."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.register_buffer("rows", torch.zeros(2, 8, 3), persistent=False)

    def forward(self, x, at):
        if self.how == "index_copy":
            self.rows.index_copy_(1, at, x)
        elif self.how == "index_put":
            self.rows[:, at] = x
        else:
            self.rows[:, 2:4] = x
        return self.rows.sum(1)


@pytest.mark.parametrize("how", ["index_copy", "index_put", "slice"])
def test_rows_are_written_in_place(how):
    model, rng = Cache(how), torch.Generator().manual_seed(0)
    program = export(model, torch.zeros(2, 2, 3), torch.tensor([0, 1]))
    module = relaxir.from_torch(program)
    assert str(module).count("relax.index_copy") == 1
    executable = relaxir.compile(module)
    for at in ([0, 1], [5, 3], [7, 5]):
        x, index = torch.randn(2, 2, 3, generator=rng), torch.tensor(at)
        with torch.no_grad():
            torch.testing.assert_close(executable(x, index), model(x, index), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(executable.state["rows"], model.rows.numpy())


class Grouped(nn.Module):
    """Heads of keys and values that several query heads share, repeated as Hugging Face's models do."""

    def forward(self, q, k, v):
        wide = [x[:, :, None].expand(-1, -1, 2, -1, -1).reshape(1, 4, -1, 8) for x in (k, v)]
        return nn.functional.scaled_dot_product_attention(q, *wide)


def test_shared_heads_are_not_repeated():
    args = torch.randn(1, 4, 3, 8), torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)
    module = relaxir.from_torch(export(Grouped(), *args))
    assert "relax.broadcast_to" not in str(module)
    (got,) = relaxir.evaluate(module, "main", *(a.numpy() for a in args), weights={})
    np.testing.assert_allclose(got, Grouped()(*args).numpy(), rtol=1e-5, atol=1e-5)


class Steps(nn.Module):
    """One model for sequences of any length and for one more token, with a state, weights and a constant."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, x):
        self.seen.add_(x.shape[0])
        factor = torch.tensor([1.0, 2.0, 3.0, 4.0]) if x.shape[0] == 1 else torch.tensor([5.0, 6.0, 7.0, 8.0])
        return self.linear(x) * factor + self.seen


def both(model, other=None):
    return {
        "many": export(model, torch.zeros(3, 4), dynamic=[{0: Dim("n", min=2, max=64)}]),
        "one": export(other or model, torch.zeros(1, 4)),
    }


def test_programs_of_one_model_share_weights_and_state(tmp_path):
    model = Steps()
    programs = both(model)
    module = relaxir.from_torch(programs)
    assert list(module.functions) == ["many", "one"]
    weights = [[w.name for w in f.weights] for f in module.functions.values()]
    constants = [[n for n in names if "lifted" in n] for names in weights]
    assert [[n for n in names if "lifted" not in n] for names in weights] == [["linear.weight", "linear.bias"]] * 2
    assert [bool(re.fullmatch(r"one/lifted_tensor_\d+", n)) for names in constants for n in names] == [False, True]
    relaxir.save_weights(programs, tmp_path / "w.safetensors")
    executable = relaxir.compile(module)
    assert len(executable.manifest.raw_weights) == 4
    assert len(executable.manifest.prepared_weights) == 4
    executable.bind(executable.prepare(tmp_path / "w.safetensors"))
    x = torch.randn(7, 4)
    with torch.no_grad():
        torch.testing.assert_close(executable(x, entry="many"), model(x), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(executable(x[:1], entry="one"), model(x[:1]), rtol=1e-5, atol=1e-5)
    assert executable.state["seen"] == model.seen == 8


def test_programs_of_one_model_on_meta_share_weights():
    model = nn.Linear(4, 4).to("meta")
    x = torch.zeros(2, 4, device="meta")
    module = relaxir.from_torch({"a": export(model, x), "b": export(model, x)})
    assert [[w.name for w in f.weights] for f in module.functions.values()] == [["weight", "bias"]] * 2


def test_programs_of_different_models_are_refused():
    for function in (relaxir.from_torch, lambda p: relaxir.save_weights(p, "never.safetensors")):
        with pytest.raises(
            RelaxError, match=r"expected one tensor for 'linear\.weight' in all programs, got another one in 'one'"
        ):
            function(both(Steps(), Steps()))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "expected at least one program, got none"),
        ({"main": 3}, "expected a torch.export.ExportedProgram, got int; call torch.export.export"),
    ],
)
def test_mistakes_in_mappings(given, message):
    with pytest.raises(RelaxError, match=message):
        relaxir.from_torch(given)


def test_names_of_functions_are_strings():
    program = export(Counter(), torch.zeros(()))
    for name in ("", 3):
        with pytest.raises(RelaxError, match="expected names of functions for programs, got"):
            relaxir.from_torch({name: program})


def test_an_operator_that_is_outlined_in_both_programs_has_two_functions():
    class Outlined(nn.Module):
        def forward(self, x):
            return torch.tan(x)

    programs = {"a": export(Outlined(), torch.zeros(3)), "b": export(Outlined(), torch.zeros(4))}
    executable = relaxir.compile(relaxir.from_torch(programs))
    for name, size in (("a", 3), ("b", 4)):
        x = torch.arange(1.0, size + 1)
        torch.testing.assert_close(executable(x, entry=name), torch.tan(x))
