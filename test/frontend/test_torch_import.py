"""What from_torch makes of signatures, weights, state, symbols and mistakes; what save_weights writes."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402

import relaxir  # noqa: E402
from relaxir import RelaxError  # noqa: E402
from relaxir.tools import cli  # noqa: E402
from relaxir.weights import Checkpoint  # noqa: E402
from support import models  # noqa: E402


def export(module, *args, dynamic=None, **kwargs):
    with torch.no_grad(), models.quiet():
        return torch.export.export(module.eval(), args, kwargs, dynamic_shapes=dynamic)


def run(program, module, *args, function="main"):
    arrays = [models.to_numpy(a, "input") for a in args]
    return relaxir.evaluate(module, function, *arrays, weights=models.weights_of(program, module))


class Everything(nn.Module):
    """Tied and unused parameters, both kinds of buffers, a constant, a default argument, nested results."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.unused = nn.Linear(4, 4)
        self.register_buffer("kept", torch.rand(4))
        self.register_buffer("derived", torch.rand(4), persistent=False)
        self.register_buffer("derived_unused", torch.rand(4), persistent=False)

    def forward(self, input, mask=None, *, flag=True):
        x = self.second(self.first(input)) + self.kept * self.derived
        if mask is not None and flag:
            x = x * mask
        return {"sum": x + torch.tensor([1.0, 2.0, 3.0, 4.0]), "parts": (x, None, 3, input.shape[0])}


@pytest.fixture(scope="module")
def everything():
    model = Everything()
    args = (torch.randn(2, 4), torch.randn(2, 4))
    return model, args, export(model, *args)


def test_arguments_are_inputs_then_weights_under_their_own_names(everything):
    main = relaxir.from_torch(everything[2]).functions["main"]
    assert [i.name for i in main.inputs] == ["input", "mask"]
    assert [w.name for w in main.weights] == ["first.weight", "first.bias", "kept", "derived", "lifted_tensor_0"]
    assert [o.name for o in main.outputs] == ["sum", "parts_0", "parts_2", "parts_3"]


def test_kinds_of_arguments_are_told_apart(everything):
    text = str(relaxir.from_torch(everything[2]))
    kinds = {name: kind for kind, name in re.findall(r'relax.kind = "(\w+)", relax.name = "([\w.]+)"', text)}
    assert kinds["input"] == kinds["mask"] == "input"
    assert kinds["first.weight"] == kinds["first.bias"] == "param"
    assert kinds["kept"] == kinds["derived"] == "buffer"
    assert kinds["lifted_tensor_0"] == "constant"
    assert kinds["sum"] == "output"


def test_results_equal_torch(everything):
    model, args, program = everything
    wanted = model(*args)
    got = run(program, relaxir.from_torch(program), *args)
    np.testing.assert_allclose(got[0], wanted["sum"].detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got[1], wanted["parts"][0].detach().numpy(), rtol=1e-5, atol=1e-6)
    assert got[2:] == (3, 2)


def test_save_weights_writes_tied_ones_once_and_what_is_needed(everything, tmp_path):
    model, _, program = everything
    path = tmp_path / "model.safetensors"
    relaxir.save_weights(program, path)
    checkpoint = Checkpoint(path)
    assert set(checkpoint) == {
        "first.weight", "first.bias", "unused.weight", "unused.bias", "kept", "derived", "lifted_tensor_0",
    }  # fmt: skip
    np.testing.assert_array_equal(checkpoint.get("first.weight"), model.first.weight.detach().numpy())


def test_save_weights_in_bf16_equals_safetensors_own_writer(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    model = models.Mlp().to(torch.bfloat16)
    relaxir.save_weights(export(model, torch.randn(2, 16).to(torch.bfloat16)), tmp_path / "ours.safetensors")
    ours = safetensors.load_file(tmp_path / "ours.safetensors")
    assert ours.keys() == model.state_dict().keys()
    assert all(torch.equal(ours[k], v) for k, v in model.state_dict().items())


def test_weights_on_the_meta_device_import_but_are_not_saved(tmp_path):
    program = export(models.Mlp().to("meta"), torch.zeros(2, 16, device="meta"))
    assert len(relaxir.from_torch(program).functions["main"].weights) == 4
    with pytest.raises(RelaxError, match=r"expected weights with contents, got 'up.weight' on the meta device"):
        relaxir.save_weights(program, tmp_path / "x.safetensors")


def test_saving_into_a_missing_folder_is_refused(everything, tmp_path):
    with pytest.raises(RelaxError, match="expected an existing folder"):
        relaxir.save_weights(everything[2], tmp_path / "no" / "x.safetensors")


class Cache(nn.Module):
    """Changes a buffer and, with ``write_input``, its second input."""

    def __init__(self, write_input=False):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(4))
        self.register_buffer("cache", torch.zeros(6, 4))
        self.write_input = write_input

    def forward(self, x, y):
        self.cache[1:3] = x * self.scale
        if self.write_input:
            y.add_(x)
        return self.cache.sum(0)


def test_a_changed_buffer_is_an_argument_and_a_result():
    model, x, y = Cache(), torch.randn(2, 4), torch.randn(2, 4)
    program = export(model, x, y)
    module = relaxir.from_torch(program)
    main = module.functions["main"]
    assert [i.name for i in main.inputs] == ["x", "y", "cache"]
    assert [w.name for w in main.weights] == ["scale"]
    assert [o.name for o in main.outputs] == ["output0", "cache"]
    assert 'relax.kind = "state", relax.name = "cache"' in str(module)
    got = run(program, module, x, y, torch.zeros(6, 4))
    with torch.no_grad():
        wanted = model(x, y)
    np.testing.assert_allclose(got[0], wanted.numpy(), rtol=1e-6)
    np.testing.assert_allclose(got[1], model.cache.numpy(), rtol=1e-6)


def test_a_changed_input_comes_back_as_a_result():
    x, y = torch.randn(2, 4), torch.randn(2, 4)
    program = export(Cache(write_input=True), x, y.clone())
    with pytest.warns(relaxir.RelaxWarning, match="writes to 'y'"):
        module = relaxir.from_torch(program)
    outputs = [o.name for o in module.functions["main"].outputs]
    assert sorted(outputs) == ["cache", "output0", "y"]
    got = run(program, module, x, y, torch.zeros(6, 4))
    np.testing.assert_allclose(got[outputs.index("y")], (x + y).numpy(), rtol=1e-6)


class Dynamic(nn.Module):
    """Slices, reshapes and reads sizes of two symbolic dimensions."""

    def forward(self, x, y):
        batch, length = x.shape
        last = x[:, -1] + x[:, length - 2]
        ramp = torch.arange(length, device=x.device) * batch
        grown = torch.cat([x, x[:, :1], y], 1)
        flat = grown.reshape(-1).view(batch, -1)
        return {
            "inner": x[:, 1 : length - 2],
            "last": last,
            "ramp": ramp,
            "grown": grown,
            "flat": flat.sum(1),
            "mean": x.sum() / (batch * length),
            "tail": x[:, 1:] - x[:, :-1],
            "full": torch.full((length, 2), 0.5),
            "size": length * 2 + 1,
            "rolled": x.repeat(2, 1),
            "variance": x.var(1),
            "flip": x.flip(1),
            "padded": nn.functional.pad(x, (1, 2)),
            "twice": x.repeat(1, batch),
        }


def test_symbolic_sizes_at_several_values():
    batch, seq = Dim("batch", min=1, max=16), Dim("seq", min=6, max=64)
    x, y = torch.randn(3, 8), torch.randn(3, 8)
    program = export(Dynamic(), x, y, dynamic=({0: batch, 1: seq}, {0: batch, 1: seq}))
    module = relaxir.from_torch(program)
    module.verify()
    for shape in ((3, 8), (1, 6), (2, 7), (5, 12)):
        x, y = torch.randn(shape), torch.randn(shape)
        wanted = Dynamic()(x, y)
        for name, array in zip(wanted, run(program, module, x, y), strict=True):
            np.testing.assert_allclose(array, np.asarray(wanted[name]), rtol=1e-5, atol=1e-6, err_msg=name)


def test_ranges_and_derived_dimensions():
    half = Dim("half", min=2, max=10)
    program = export(models.Mlp(6), torch.randn(8, 6), dynamic=({0: 2 * half},))
    text = str(relaxir.from_torch(program))
    assert 'tensor<?x6xf32, {sym = ["half * 2"]}>' in text
    assert "relax.symbol_ranges = {half = [2, 10]}" in text


def test_a_symbol_without_upper_bound_has_one_number():
    program = export(models.Mlp(), torch.randn(8, 16), dynamic=({0: Dim("n")},))
    assert re.search(r"relax.symbol_ranges = \{n = \[[0-2]\]\}", str(relaxir.from_torch(program)))


class Strided(nn.Module):
    def forward(self, x):
        return nn.functional.max_pool2d(x, 2)[:, :, ::2]


def test_sizes_that_are_divisions_are_symbols_of_the_same_value():
    program = export(Strided(), torch.randn(1, 2, 12, 8), dynamic=({2: Dim("height", min=6, max=40)},))
    module = relaxir.from_torch(program)
    for height in (12, 7, 21):
        x = torch.randn(1, 2, height, 8)
        np.testing.assert_array_equal(run(program, module, x)[0], Strided()(x).numpy())


def test_an_input_named_like_a_weight_gets_another_name():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.randn(4))

        def forward(self, scale):
            return scale * self.scale

    program = export(Scale(), torch.randn(2, 4))
    module = relaxir.from_torch(program)
    module.verify()
    main = module.functions["main"]
    assert [a.name for a in (*main.inputs, *main.weights)] == ["scale_input", "scale"]


class Paired(nn.Module):
    def forward(self, x):
        return x.view(-1, 2) if x.shape[0] % 2 == 0 else x


def test_a_reshape_that_needs_an_even_size_checks_it():
    program = export(Paired(), torch.randn(8), dynamic=({0: Dim.AUTO},))
    module = relaxir.from_torch(program)
    x = torch.randn(6)
    np.testing.assert_array_equal(run(program, module, x)[0], x.view(3, 2).numpy())
    if "match_cast" in str(module):
        with pytest.raises(RelaxError):
            run(program, module, torch.randn(7))


class Unbounded(nn.Module):
    def forward(self, x, y):
        return x[:, : y.shape[0]]


def test_a_slice_that_may_end_outside_is_compared_with_what_torch_assumed():
    """It takes the bound to be inside, as it was when the program was exported."""
    dynamic = ({1: Dim("n", min=2, max=50)}, {0: Dim("m", min=2, max=50)})
    program = export(Unbounded(), torch.randn(2, 10), torch.randn(7), dynamic=dynamic)
    module = relaxir.from_torch(program)
    for n, m in ((10, 7), (5, 5), (30, 2)):
        x, y = torch.randn(2, n), torch.randn(m)
        np.testing.assert_array_equal(run(program, module, x, y)[0], Unbounded()(x, y).numpy())
    with pytest.raises(RelaxError):
        run(program, module, torch.randn(2, 7), torch.randn(10))


class FirstAndLast(nn.Module):
    def forward(self, x):
        return x[:, 0], x[:, -1]


def test_an_index_that_a_size_may_not_have_is_checked_when_the_model_runs():
    program = export(FirstAndLast(), torch.randn(2, 8), dynamic=({1: Dim("n", max=512)},))
    module = relaxir.from_torch(program)
    for size in (1, 7):
        x = torch.randn(2, size)
        for array, wanted in zip(run(program, module, x), FirstAndLast()(x), strict=True):
            np.testing.assert_array_equal(array, wanted.numpy())
    with pytest.raises(RelaxError, match="expected indices"):
        run(program, module, torch.randn(2, 0))


class DataDependent(nn.Module):
    def forward(self, x):
        count = x.sum().item()
        torch._check(count >= 0)
        return torch.zeros(count)


def test_sizes_from_contents_without_a_limit_are_refused_with_the_line():
    with pytest.raises(RelaxError) as caught:
        relaxir.from_torch(export(DataDependent(), torch.tensor([1, 2])))
    assert "torch._check" in str(caught.value)
    assert "test_torch_import.py" in caught.value.location


class Layer(nn.Module):
    def forward(self, x):
        return x + torch.rand(3, 4)


class Unsupported(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer()])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        top = torch.special.bessel_j1(x)
        return torch.cond(top.sum() > 0, lambda t: torch.special.bessel_j0(t), lambda t: t - 1, (top,))


def test_every_unsupported_operator_is_listed_with_line_and_module():
    with pytest.raises(RelaxError) as caught:
        relaxir.from_torch(export(Unsupported(), torch.randn(3, 4)))
    text = str(caught.value)
    assert "got 3 that cannot be imported" in text
    assert re.search(
        r"2 x aten\.rand: no relax form, .*\n +at \S+test_torch_import\.py:\d+ in layers\.0\n +at \S+ in layers\.1", text
    )
    assert re.search(r"1 x aten\.special_bessel_j1: no relax form\n +at \S+test_torch_import\.py:\d+\n", text)
    assert "1 x aten.special_bessel_j0: no relax form" in text
    assert re.search(r"test_torch_import\.py:\d+$", caught.value.location)


def test_an_unsupported_use_of_a_supported_operator_says_what_is_missing():
    class Attends(nn.Module):
        def forward(self, x):
            return nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5)

    with pytest.raises(RelaxError, match="expected a model in evaluation mode, got attention with dropout"):
        relaxir.from_torch(export(Attends(), torch.randn(1, 3, 4)))


def test_ops_have_the_line_of_the_user():
    module = relaxir.from_torch(export(models.Mlp(), torch.randn(2, 16)))
    text = module.ir.operation.get_asm(enable_debug_info=True)
    assert re.search(r'loc\("\S*models\.py":\d+:0\)', text)
    assert 'loc("up"(' in text


def test_complex_numbers_are_refused():
    class Spectrum(nn.Module):
        def forward(self, x):
            return torch.complex(x, x).sin().abs()

    with pytest.raises(RelaxError, match=r"expected tensors of real numbers, got complex<f32>"):
        relaxir.from_torch(export(Spectrum(), torch.randn(8)))


def test_complex_inputs_are_refused_by_name():
    class Real(nn.Module):
        def forward(self, signal):
            return torch.view_as_real(signal)

    with pytest.raises(RelaxError, match=r"'signal': expected tensors of real numbers, got complex<f32>"):
        relaxir.from_torch(export(Real(), torch.randn(8, dtype=torch.complex64)))


def test_dropout_in_training_is_refused():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    with torch.no_grad(), models.quiet():
        program = torch.export.export(model.train(), (torch.randn(2, 4),))
    with pytest.raises(RelaxError, match=r"evaluation mode|no relax form"):
        relaxir.from_torch(program)


def test_an_integer_input_that_is_a_size_is_refused_by_name():
    class Sized(nn.Module):
        def forward(self, x, count):
            return x + torch.ones(count, 4)

    program = export(Sized(), torch.randn(3, 4), 3, dynamic={"x": {0: Dim.AUTO}, "count": Dim.DYNAMIC})
    with pytest.raises(RelaxError, match="expected input 'count' to be a tensor, got an integer"):
        relaxir.from_torch(program)


@pytest.mark.parametrize("value", [None, models.Mlp(), 3])
def test_something_else_than_an_exported_program_is_refused(value, tmp_path):
    for call in (lambda: relaxir.from_torch(value), lambda: relaxir.save_weights(value, tmp_path / "x")):
        with pytest.raises(RelaxError, match=r"expected a torch.export.ExportedProgram, got .*; call torch.export.export"):
            call()


def test_a_saved_program_imports_as_well(tmp_path):
    model, path = models.mlp(), tmp_path / "model.pt2"
    torch.export.save(model.export(), path)
    program = torch.export.load(path)
    module = relaxir.from_torch(program)
    inputs = model.inputs(5)
    got = run(program, module, *inputs.values())
    np.testing.assert_allclose(got[0], model.eager(inputs)[0], rtol=1e-5, atol=1e-6)


class _Parts(torch.nn.Module):
    def forward(self, x):
        return x.split_with_sizes([1, 4, 0])


def test_a_list_of_tensors_in_a_saved_program(tmp_path):
    x = torch.randn(5, 3)
    torch.export.save(torch.export.export(_Parts(), (x,)), tmp_path / "parts.pt2")  # the file makes a tuple of it
    executable = relaxir.compile(tmp_path / "parts.pt2", cache=False)
    for got, wanted in zip(executable(x), x.split_with_sizes([1, 4, 0]), strict=True):
        assert torch.equal(got, wanted)


def test_files_instead_of_programs_and_modules(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = models.mlp()
    torch.export.save(model.export(), "mlp.pt2")
    module = relaxir.from_torch("mlp.pt2")
    relaxir.save_weights(tmp_path / "mlp.pt2", "mlp.safetensors")
    module.save("mlp.mlir")
    inputs = model.inputs(5)
    for path in ("mlp.mlir", tmp_path / "mlp.pt2"):
        executable = relaxir.compile(path)
        executable.bind(executable.prepare("mlp.safetensors"))
        np.testing.assert_allclose(executable(**inputs).numpy(), model.eager(inputs)[0], rtol=1e-5, atol=1e-6)
    both = relaxir.from_torch({"one": "mlp.pt2", "two": torch.export.load("mlp.pt2")})
    assert list(both.functions) == ["one", "two"]
    command = ["import", "one=mlp.pt2", "two=mlp.pt2", "-o", "both.mlir", "--weights", "both.safetensors"]
    assert cli.run(command) == 0
    assert str(relaxir.Module.load("both.mlir")) == str(both)
    assert list(Checkpoint("both.safetensors")) == list(Checkpoint("mlp.safetensors"))
    with pytest.raises(RelaxError, match=r"expected a .pt2 file \(torch.export.save\), got 'mlp.mlir'"):
        relaxir.from_torch("mlp.mlir")
    with pytest.raises(RelaxError, match=r"cannot read 'none.pt2': No such file or directory"):
        relaxir.compile("none.pt2")


def test_a_program_that_relaxir_saves_keeps_the_names_of_its_dimensions(tmp_path, capsys):
    batch, seq = Dim("batch", min=1, max=16), Dim("seq", min=6, max=64)
    program = export(Dynamic(), torch.randn(3, 8), torch.randn(3, 8), dynamic=({0: batch, 1: seq}, {0: batch, 1: seq}))
    wanted, path = str(relaxir.from_torch(program)), tmp_path / "model.pt2"
    before = dict(program.graph_module.meta)
    relaxir.save_program(program, path)
    assert program.graph_module.meta == before
    assert str(relaxir.from_torch(path)) == str(relaxir.from_torch(torch.export.load(path))) == wanted
    again = tmp_path / "again.pt2"
    torch.export.save(torch.export.load(path), again)  # torch keeps what it read
    assert str(relaxir.from_torch(again)) == wanted
    relaxir.save_program(torch.export.load(path), again)
    assert cli.run(["import", str(again), "-o", str(tmp_path / "m.mlir"), "--dim", "rows=x.0"]) == 0
    assert "x: f32[rows, seq]" in capsys.readouterr().out
    with pytest.raises(RelaxError, match=r"cannot write '.*': No such file or directory"):
        relaxir.save_program(program, tmp_path / "none" / "model.pt2")
    with pytest.raises(RelaxError, match=r"expected a name that ends in .pt2, got 'model'"):
        relaxir.save_program(program, "model")
    with pytest.raises(RelaxError, match=r"expected a torch.export.ExportedProgram, got int"):
        relaxir.save_program(3, path)


def test_dimensions_of_a_saved_program_get_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    torch.export.save(models.mlp().export(), "mlp.pt2")  # which forgets that its dimension is called batch
    program = torch.export.load("mlp.pt2")
    assert cli.run(["import", "mlp.pt2", "-o", "mlp.mlir", "--dim", "rows=x.0"]) == 0
    assert cli.run(["compile", "mlp.pt2", "-o", "mlp.relax", "--dim", "rows=x.0"]) == 0
    assert [str(d) for d in relaxir.load("mlp.relax").entries["main"].inputs[0].shape] == ["rows", "16"]
    assert cli.run(["import", "mlp.pt2", "-o", "mlp.mlir", "--dim", "rows"]) == 2
    assert capsys.readouterr().err.startswith("error: expected --dim NAME=INPUT.AXIS, got 'rows' (see")
    for module in (relaxir.from_torch(program, dims={"rows": "x.0"}), relaxir.Module.load("mlp.mlir")):
        (x, *_) = module.functions["main"].inputs
        assert [str(d) for d in x.shape] == ["rows", "16"]
    for dims, message in [
        (["rows"], "expected dims as a mapping, as {'batch': 'x.0'}, got list"),
        ({"rows": "y.0"}, r"expected an input \(x\) and an axis for dimension 'rows', as x.0, got 'y.0'"),
        ({"rows": "x"}, r"expected an input \(x\) and an axis for dimension 'rows', as x.0, got 'x'"),
        ({"2n": "x.0"}, "expected a name for a dimension, got '2n'"),
        ({"s77": "x.0"}, "expected a name for a dimension, got 's77'"),
        ({"n": "x.0", "m": "x.0"}, "expected one name for a dimension, got 'n' and 'm' for x.0"),
        ({"rows": "x.2"}, "expected an axis of input 'x', which has 2 dimensions, got 2"),
        ({"rows": "x.1"}, "expected a dynamic dimension to name, x.1 is 16"),
    ]:
        with pytest.raises(RelaxError, match=message):
            relaxir.from_torch(program, dims=dims)


def test_without_torch_the_error_says_how_to_get_it():
    script = """
import sys
sys.modules["torch"] = None
import relaxir
try:
    relaxir.from_torch(1)
except relaxir.RelaxError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "expected torch to be installed; pip install relaxir[torch]\n"


@pytest.mark.parametrize("model", [models.gpt2, Cache], ids=["tied", "changed-buffer"])
def test_importing_does_not_change_the_program(model):
    program = export(Cache(), torch.randn(2, 4), torch.randn(2, 4)) if model is Cache else models.gpt2().export()
    before = str(program)
    first, second = str(relaxir.from_torch(program)), str(relaxir.from_torch(program))
    assert str(program) == before
    assert first == second


def test_an_input_that_the_model_writes_to_is_told():
    class Scaled(torch.nn.Module):
        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return image.div_(255) + 1

    program = torch.export.export(Scaled(), (torch.ones(3),))
    with pytest.warns(
        relaxir.RelaxWarning, match="writes to 'image': its new value is one more result, and what a call is"
    ) as told:
        module = relaxir.from_torch(program)
    assert told[0].filename == __file__
    given = np.full(3, 255, np.float32)
    result, image = relaxir.compile(module)(given)
    assert (result.tolist(), image.tolist(), given.tolist()) == ([2] * 3, [1] * 3, [255] * 3)
