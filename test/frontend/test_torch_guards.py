"""What torch.export has assumed of sizes holds in each call, or the call is refused: as the exported program itself does it."""

from __future__ import annotations

import pytest
import torch
from torch.export import Dim
from torch.nn import functional

import relaxir as rx
from relaxir.frontend import torch_graph


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, y):
        return self.function(x, y)


def exported(function, *inputs, strict=False):
    dims = {"x": {0: Dim.AUTO, 1: Dim.AUTO}, "y": {0: Dim.AUTO}}
    return torch.export.export(Function(function), inputs, dynamic_shapes=dims, strict=strict)


def outcome(call, *inputs):
    """The result, or None of a call that is refused."""
    try:
        found = call(*inputs)
    except (rx.RelaxError, AssertionError):
        return None
    return torch.as_tensor(found[0] if isinstance(found, tuple | list) else found)


ASSUMED = {
    "parity": lambda x, y: x + 1 if x.shape[1] % 2 else x - 1,
    "sizes that differ": lambda x, y: x + 1 if x.shape[0] != y.shape[0] else x - 1,
    "sizes in order": lambda x, y: x + 1 if x.shape[0] <= y.shape[0] else x - 1,
    "products": lambda x, y: x + 1 if x.shape[0] * x.shape[1] > 12 else x - 1,
    "quotients": lambda x, y: x + 1 if x.shape[1] // 4 == 1 else x - 1,
    "parts of sizes": lambda x, y: x[:, : int(x.shape[1] * 0.3)] + 1,
    "roots": lambda x, y: x + int(x.shape[1] / 3) * 0.5,
    "rounded up": lambda x, y: x[:, : -(-x.shape[1] // 3)] * 2 if x.shape[1] > 5 else x,
    "alternatives": lambda x, y: x + 1 if x.shape[1] > 8 or y.shape[0] == 4 else x - 1,
    "checks": lambda x, y: (torch._check(x.shape[1] % 3 == 1), x + 1)[1],
}


@pytest.mark.parametrize("name", ASSUMED)
def test_calls_give_what_the_program_gives_or_are_refused(name):
    program = exported(ASSUMED[name], torch.randn(2, 7), torch.randn(4))
    call, wanted = rx.compile(rx.from_torch(program)), program.module()
    refused = 0
    for rows, columns, length in [(2, 7, 4), (3, 8, 4), (4, 7, 4), (5, 12, 3), (4, 13, 4), (6, 10, 9), (2, 5, 7)]:
        x, y = torch.randn(rows, columns), torch.randn(length)
        found, expected = outcome(call, x, y), outcome(wanted, x, y)
        assert (found is None) == (expected is None), (rows, columns, length)
        assert found is None or torch.equal(found, expected)
        refused += found is None
    assert refused


def test_the_reference_semantics_refuses_too():
    module = rx.from_torch(exported(ASSUMED["parity"], torch.randn(2, 7), torch.randn(4)))
    assert rx.evaluate(module, "main", torch.zeros(2, 9).numpy(), torch.zeros(4).numpy())[0][0, 0] == 1
    with pytest.raises(rx.RelaxError, match=r"assumed them, .*: x.shape\[1\] % 2 != 0"):
        rx.evaluate(module, "main", torch.zeros(2, 8).numpy(), torch.zeros(4).numpy())


def test_what_torch_asks_for_the_order_of_memory_is_no_assumption():
    """The exported program refuses a half of one column, and as many rows as columns; the graph is right for them."""

    def halves(x, y):
        return x[:, : x.shape[1] // 2] * 2

    program = exported(halves, torch.randn(2, 8), torch.randn(4))
    exe = rx.compile(rx.from_torch(program))
    for columns in (2, 3, 8, 9):
        x = torch.randn(columns, columns)
        assert torch.equal(torch.as_tensor(exe(x, torch.zeros(4))), halves(x, None))


def test_a_squeeze_reads_what_torch_asked_for_the_order_of_memory():
    program = exported(lambda x, y: x[:, : x.shape[1] // 2].squeeze(), torch.randn(2, 8), torch.randn(4))
    exe = rx.compile(rx.from_torch(program))
    assert tuple(exe(torch.zeros(2, 7), torch.zeros(4)).shape) == (2, 3)
    with pytest.raises(rx.RelaxError, match=r"x.shape\[1\] // 2 != 1"):
        exe(torch.zeros(2, 3), torch.zeros(4))


def test_saved_programs_assume_the_same(tmp_path):
    """rx.save_program keeps where guards come from; of torch.export.save all of them count, as in the program itself."""

    def parts(x, y):
        return x[:, : x.shape[1] // 2] + 1 if x.shape[0] != y.shape[0] else x

    program = exported(parts, torch.randn(2, 8), torch.randn(4))
    rx.save_program(program, tmp_path / "kept.pt2")
    torch.export.save(program, tmp_path / "plain.pt2")
    for name, takes_two in (("kept.pt2", True), ("plain.pt2", False)):
        exe = rx.compile(rx.from_torch(tmp_path / name))
        assert tuple(exe(torch.zeros(2, 9), torch.zeros(4)).shape) == (2, 4)
        with pytest.raises(rx.RelaxError, match=r"x.shape\[0\] != y.shape\[0\]"):
            exe(torch.zeros(4, 9), torch.zeros(4))
        assert (outcome(exe, torch.zeros(2, 3), torch.zeros(4)) is not None) == takes_two


def test_symbols_that_are_no_size_of_an_input():
    """Of a dimension ``2 * h`` guards may be of ``h``."""

    class Model(torch.nn.Module):
        def forward(self, x):
            a, _ = x.chunk(2, 1)
            return a + 1 if a.shape[1] != x.shape[0] else a

    program = torch.export.export(Model(), (torch.randn(4, 6),), dynamic_shapes=({0: Dim("b"), 1: 2 * Dim("h")},))
    exe = rx.compile(rx.from_torch(program))
    assert float(exe(torch.zeros(3, 8))[0, 0]) == 1
    with pytest.raises(rx.RelaxError, match=r"(h != x.shape\[0\]|x.shape\[0\] != h) \("):
        exe(torch.zeros(4, 8))


@pytest.mark.parametrize("strict", [False, True])
def test_names_of_inputs_in_messages(strict, tmp_path):
    """Of several arguments, dictionaries and lists, also of a program from a file."""

    class Model(torch.nn.Module):
        def forward(self, *xs, k):
            return [x + 1 for x in xs] if k["a"][0].shape[0] != xs[1].shape[0] else [x - 1 for x in xs]

    dims = {"xs": ({0: Dim.AUTO}, {0: Dim.AUTO}), "k": {"a": [{0: Dim.AUTO}]}}
    inputs = (torch.randn(2), torch.randn(4)), {"k": {"a": [torch.randn(3)]}}
    program = torch.export.export(Model(), *inputs, dynamic_shapes=dims, strict=strict)
    torch.export.save(program, tmp_path / "model.pt2")
    for source in (program, tmp_path / "model.pt2"):
        exe = rx.compile(rx.from_torch(source))
        assert float(exe(torch.zeros(2), torch.zeros(5), k=torch.zeros(3))[0][0]) == 1
        with pytest.raises(rx.RelaxError, match=r"k_a_0.shape\[0\] != xs_1.shape\[0\] \("):
            exe(torch.zeros(2), torch.zeros(3), k=torch.zeros(3))


def test_what_decompositions_assume_counts_as_well(monkeypatch):
    """torch decomposes by the sizes of the example, where it says so."""
    program = exported(lambda x, y: x.tanh(), torch.randn(2, 8), torch.randn(4))

    def assuming(program):
        result = torch_graph.decomposed(program)
        x = next(iter(result.graph.nodes)).meta["val"]
        assert x.shape[1] % 4 == 0  # torch notes that it was asked
        return result

    monkeypatch.setattr(torch_graph, "importable", assuming)
    exe = rx.compile(rx.from_torch(program))
    assert tuple(exe(torch.zeros(2, 12), torch.zeros(4)).shape) == (2, 12)
    with pytest.raises(rx.RelaxError, match=r"x.shape\[1\] % 4 == 0"):
        exe(torch.zeros(2, 10), torch.zeros(4))


POOLED = {
    "a half and a third": lambda x: functional.adaptive_avg_pool2d(x, (x.shape[2] // 2, x.shape[3] // 3)),
    "all of one axis": lambda x: functional.adaptive_avg_pool2d(x, (3, None)),
    "area": lambda x: functional.interpolate(x, scale_factor=0.5, mode="area"),
    "rounded up": lambda x: functional.adaptive_avg_pool2d(x, ((x.shape[2] + 1) // 2, 1)),
    "more than there are": lambda x: functional.adaptive_avg_pool2d(x, (x.shape[2] * 2, x.shape[3] + 1)),
    "three dimensions": lambda x: functional.adaptive_avg_pool3d(x[:, None], (2, x.shape[2] // 2, x.shape[3])),
    "f16": lambda x: functional.adaptive_avg_pool2d(x.half(), (x.shape[2] // 2, 2)).float(),
    "bilinear by a scale": lambda x: functional.interpolate(x, scale_factor=1.5, mode="bilinear"),
}


@pytest.mark.parametrize("name", POOLED)
def test_windows_whose_number_is_a_size(name):
    class Model(torch.nn.Module):
        def forward(self, x):
            return POOLED[name](x)

    dims = ({2: Dim("h", min=6, max=64), 3: Dim("w", min=6, max=64)},)
    exe = rx.compile(rx.from_torch(torch.export.export(Model(), (torch.randn(1, 2, 8, 12),), dynamic_shapes=dims)))
    for size in ((8, 12), (9, 13), (17, 7), (64, 50)):
        x = torch.randn(1, 2, *size)
        torch.testing.assert_close(torch.as_tensor(exe(x)), POOLED[name](x), rtol=1e-3 if name == "f16" else 1e-5, atol=1e-5)


NUMBERS = {
    "reciprocal": lambda x: x * (1 / x.shape[1]),
    "ratio": lambda x: x * (x.shape[0] / x.shape[1]),
    "root": lambda x: x / x.shape[1] ** 0.5,
    "square": lambda x: x * x.shape[1] ** 2,
    "half": lambda x: x + 0.5 * x.shape[1],
    "ramp": lambda x: x[0, 0] + torch.linspace(0, x.shape[1] - 1, 5),
    "integers": lambda x: x.long() * (x.shape[1] / 2),
    "difference": lambda x: x - (x.shape[1] / 2 - 0.5),
    "clamped": lambda x: x.clamp(max=x.shape[1] / 20),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_floats_that_are_computed_from_sizes(name):
    class Model(torch.nn.Module):
        def forward(self, x):
            return NUMBERS[name](x)

    dims = ({0: Dim("rows"), 1: Dim("columns", min=2, max=64)},)
    exe = rx.compile(rx.from_torch(torch.export.export(Model(), (torch.randn(4, 8),), dynamic_shapes=dims)))
    for size in ((4, 8), (3, 5), (9, 33)):
        x = torch.randn(size)
        torch.testing.assert_close(torch.as_tensor(exe(x)), NUMBERS[name](x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [5, 8])
def test_grids_of_open_sizes(size):
    class Model(torch.nn.Module):
        def forward(self, x, grid):
            return functional.grid_sample(x, grid, align_corners=False)

    dims = {"x": {2: Dim("h", min=3, max=64), 3: Dim("w", min=3, max=64)}, "grid": {1: Dim("rows")}}
    program = torch.export.export(Model(), (torch.randn(1, 2, 6, 7), torch.rand(1, 4, 3, 2)), dynamic_shapes=dims)
    x, grid = torch.randn(1, 2, size, 9), torch.rand(1, size, 3, 2) * 2 - 1
    found = torch.as_tensor(rx.compile(rx.from_torch(program))(x, grid))
    torch.testing.assert_close(found, functional.grid_sample(x, grid, align_corners=False))
