"""Buffers that a model changes are state; several programs of one model become one module."""

from __future__ import annotations

import copy
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


def test_statistics_of_a_model_in_training_move():
    torch.manual_seed(0)
    model = nn.Sequential(nn.BatchNorm2d(3, momentum=0.3), nn.Conv2d(3, 2, 2)).train()
    with models.quiet():
        program = torch.export.export(model, (torch.randn(2, 3, 4, 4),), dynamic_shapes=({0: Dim("rows", min=1)},))
    executable = relaxir.compile(relaxir.from_torch(program))
    executable.bind(executable.prepare(dict(model.state_dict())))
    for rows in (2, 5):
        x = torch.randn(rows, 3, 4, 4) + 1
        torch.testing.assert_close(executable(x), model(x).detach(), rtol=1e-5, atol=1e-5)
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            np.testing.assert_allclose(executable.state[f"0.{name}"], getattr(model[0], name).numpy(), rtol=1e-5)


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
            return torch.atan2(x, x + 1)

    programs = {"a": export(Outlined(), torch.zeros(3)), "b": export(Outlined(), torch.zeros(4))}
    executable = relaxir.compile(relaxir.from_torch(programs))
    for name, size in (("a", 3), ("b", 4)):
        x = torch.arange(1.0, size + 1)
        torch.testing.assert_close(executable(x, entry=name), torch.atan2(x, x + 1))


class Kept(nn.Module):
    """A module with a buffer, and a nested one with another."""

    def __init__(self, shape=(3,), dtype=torch.float32):
        super().__init__()
        self.register_buffer("kept", torch.zeros(shape, dtype=dtype), persistent=False)
        self.inner = nn.Module()
        self.inner.register_buffer("kept", torch.full((3,), 7.0))


class Use(nn.Module):
    """One use of a module's buffer: what is done is a function of the module and the input."""

    def __init__(self, model, use):
        super().__init__()
        self.model = model
        self.use = use

    def forward(self, x):
        return self.use(self.model, x)


def write(model, x):
    model.kept.copy_(x)
    return x + 1


def add(model, x):
    return x + model.kept


def add_inner(model, x):
    return x + model.inner.kept


def write_inner(model, x):
    model.inner.kept.add_(model.kept)
    return x + 1


def bound(programs, tmp_path):
    module = relaxir.from_torch(programs)
    module.verify()
    executable = relaxir.compile(module)
    relaxir.save_weights(programs, tmp_path / "w.safetensors")
    return executable.bind(executable.prepare(tmp_path / "w.safetensors"))


@pytest.mark.parametrize("order", [("read", "inner", "write"), ("write", "inner", "read"), ("inner", "write", "read")])
def test_what_one_program_writes_is_state_in_all(order, tmp_path):
    model, x = Kept(), torch.ones(3)
    uses = {"write": write, "read": add, "inner": add_inner}
    executable = bound({name: export(Use(model, uses[name]), x) for name in order}, tmp_path)
    assert set(executable.state) == {"model.kept"}
    assert [w.name for w in executable.manifest.raw_weights.values()] == ["model.inner.kept"]
    assert executable(x, entry="read")[0] == 1
    executable(torch.full((3,), 5.0), entry="write")
    assert executable(x, entry="read")[0] == 6
    assert executable(x, entry="inner")[0] == 8
    other = executable.new_state()
    assert executable(x, entry="read", state=other)[0] == 1
    executable.reset_state()
    assert executable(x, entry="read")[0] == 1


def test_a_buffer_that_no_program_writes_is_a_weight(tmp_path):
    model, x = Kept(), torch.ones(3)
    model.kept += 2
    executable = bound({name: export(Use(model, add), x) for name in ("a", "b", "c")}, tmp_path)
    assert not executable.state
    assert [w.name for w in executable.manifest.raw_weights.values()] == ["model.kept"]
    assert [executable(x, entry=name)[0] for name in ("a", "b", "c")] == [3, 3, 3]


def test_one_program_writes_what_it_reads_of_another(tmp_path):
    model, x = Kept(), torch.ones(3)
    executable = bound({"write": export(Use(model, write), x), "inner": export(Use(model, write_inner), x)}, tmp_path)
    assert set(executable.state) == {"model.kept", "model.inner.kept"}
    executable(x, entry="write")
    executable(x, entry="inner")
    executable(x, entry="inner")
    np.testing.assert_array_equal(executable.state["model.inner.kept"], [9, 9, 9])
    np.testing.assert_array_equal(executable.state["model.kept"], [1, 1, 1])


def test_one_memory_under_two_names_is_one_state(tmp_path):
    first, second, x = Kept(), nn.Module(), torch.ones(3)
    second.register_buffer("seen", first.kept)
    executable = bound(
        {"read": export(Use(second, lambda m, x: x + m.seen), x), "write": export(Use(first, write), x)}, tmp_path
    )
    assert list(executable.state) == ["model.seen"]
    executable(torch.full((3,), 5.0), entry="write")
    assert executable(x, entry="read")[0] == 6


def test_weights_of_nested_models_are_there_once(tmp_path):
    torch.manual_seed(0)
    model, x = nn.Linear(3, 3), torch.ones(3)
    programs = {"inner": export(model, x), "outer": export(Use(model, lambda m, x: m(2 * x)), x)}
    executable = bound(programs, tmp_path)
    assert set(Checkpoint(tmp_path / "w.safetensors")) == {"weight", "bias"}
    with torch.no_grad():
        torch.testing.assert_close(executable(x, entry="outer"), model(2 * x))


@pytest.mark.parametrize("other", [Kept((4,)), Kept(dtype=torch.float64), Kept((1, 3))])
def test_state_of_one_name_and_another_type_is_refused(other):
    programs = {
        "write": export(Use(Kept(), write), torch.ones(3)),
        "read": export(Use(other, add), torch.ones(other.kept.shape)),
    }
    with pytest.raises(RelaxError, match=r"expected one tensor for 'model\.kept' in all programs, got another one in 'read'"):
        relaxir.from_torch(programs)


def test_state_that_another_tensor_sees_a_part_of_is_refused():
    model = Kept()
    model.inner.kept = model.kept[:2]
    x = torch.ones(3)
    programs = {"write": export(Use(model, write), x), "read": export(Use(model, lambda m, x: x[:2] + m.inner.kept), x)}
    for refusing in (relaxir.from_torch, lambda p: relaxir.save_weights(p, "never.safetensors")):
        with pytest.raises(RelaxError, match=r"expected memory of its own for state '.*kept', got it shared with '.*kept'"):
            refusing(programs)


def write_a_part(model, x):
    _, last = model.kept.split(2)
    last.copy_(x[:1])
    return x + 1


def write_several(model, x):
    torch._foreach_add_([model.kept, model.inner.kept], 1.0)
    return x + 1


def write_by_keyword(model, x):
    return torch.add(x, 1, out=model.kept) + 1


@pytest.mark.parametrize(
    ("use", "weights"),
    [(write_a_part, {"model.inner.kept"}), (write_several, set()), (write_by_keyword, {"model.inner.kept"})],
)
def test_state_is_found_behind_lists_and_keywords(use, weights, tmp_path):
    model, x = Kept(), torch.ones(3)
    relaxir.save_weights(export(Use(model, use), x), tmp_path / "w.safetensors")
    assert set(Checkpoint(tmp_path / "w.safetensors")) == weights


class Layers(nn.Module):
    """Weights of equal shapes: two tied, two that are not, one that is a view of another."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(4, 4, bias=False) for _ in range(3))
        self.third.weight = self.first.weight
        self.register_buffer("turned", self.second.weight.detach().t(), persistent=False)
        self.register_buffer("strided", torch.zeros(4, 8)[:, ::2])
        self.register_buffer("other", torch.zeros(4, 8)[:, ::2])

    def forward(self, x):
        return self.third(self.second(self.first(x))) @ self.turned + self.strided + self.other


UNTIED = {"first.weight", "second.weight", "turned", "strided", "other"}


def weights_of(program):
    return {w.name for w in relaxir.from_torch(program).functions["main"].weights}


def test_weights_are_one_where_their_memory_is():
    assert weights_of(export(Layers(), torch.zeros(4, 4))) == UNTIED


def test_weights_without_contents_are_not_merged():
    with torch._subclasses.FakeTensorMode():
        assert weights_of(export(Layers(), torch.zeros(4, 4))) == UNTIED
        programs = {name: export(Layers(), torch.zeros(4, 4)) for name in "ab"}
    with torch.device("meta"):
        assert weights_of(export(Layers(), torch.zeros(4, 4))) == UNTIED
    module = relaxir.from_torch(programs)
    assert [{w.name for w in f.weights} for f in module.functions.values()] == [UNTIED, UNTIED]
    with pytest.raises(RelaxError, match=r"expected weights with contents, got 'first\.weight' on the meta device"):
        relaxir.save_weights(programs, "never.safetensors")


def test_a_number_expanded_to_several_weights_ties_none():
    model, zero = Layers(), torch.zeros(())
    for layer in (model.first, model.second):
        layer.weight = nn.Parameter(zero.expand(4, 4), requires_grad=False)
    model.third.weight = model.first.weight
    assert weights_of(export(model, torch.zeros(4, 4))) == UNTIED


def test_state_that_a_checkpoint_has_otherwise_is_told():
    """Preparation makes weights: what calls update begins as in the program."""
    module = Counter(0.0, (2,))
    exe = relaxir.compile(relaxir.from_torch(export(module, torch.ones(2))))
    exe.prepare(dict(module.state_dict()))
    with pytest.warns(
        relaxir.RelaxWarning, match="has other values of state than calls begin with: count; set them by"
    ) as told:
        report = exe.prepare({"count": torch.full((2,), 5.0)}).report
    assert told[0].filename == __file__
    assert "state that begins as in the code: count" in report.notes


@pytest.mark.parametrize("index", [[-1, 2], [6, 0]])
def test_places_of_state_that_torch_refuses_are_refused(index):
    class Rows(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", torch.zeros(6, 2))

        def forward(self, i, x):
            return self.rows.index_copy_(0, i, x) * 1

    executable = relaxir.compile(relaxir.from_torch(export(Rows(), torch.tensor([1, 2]), torch.ones(2, 2))))
    with pytest.raises(IndexError):
        Rows()(torch.tensor(index), torch.ones(2, 2))
    with pytest.raises(relaxir.RelaxError, match=r"expected indices in \[0, 6\)"):
        executable(torch.tensor(index), torch.ones(2, 2))


class Shared(nn.Module):
    """A cache, and a norm that counts, which the model and a part of it both hold."""

    def __init__(self):
        super().__init__()
        self.cache, self.norm = nn.Module(), nn.BatchNorm1d(4)
        self.cache.register_buffer("rows", torch.zeros(2, 3, 4))
        self.part = nn.Module()
        self.part.cache, self.part.norm, self.part.linear = self.cache, self.norm, nn.Linear(4, 4)

    def forward(self, x):
        self.part.cache.rows[:, 0] += self.part.linear(x)
        y = self.norm(x) + self.part.norm(2 * x)
        return self.part.cache.rows.mean(1) + self.cache.rows.sum(1) + y


@pytest.mark.parametrize("training", [False, True])
def test_state_under_two_names_is_one(training, tmp_path):
    torch.manual_seed(0)
    model = Shared().train(training)
    program = torch.export.export(copy.deepcopy(model), (torch.randn(2, 4),))
    executable = relaxir.compile(relaxir.from_torch(program))
    executable.bind(executable.prepare(dict(model.state_dict())))
    assert not any(name.startswith("part.") for name in executable.state)
    for _ in range(3):
        x = torch.randn(2, 4)
        torch.testing.assert_close(executable(x), model(x).detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(torch.from_numpy(executable.state["cache.rows"]), model.cache.rows, rtol=1e-5, atol=1e-5)
