"""Every entry of the op map: small functions, imported as exported, whole and after core ATen decompositions, against eager."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import relaxir  # noqa: E402
from relaxir.dialect.context import new_context  # noqa: E402
from relaxir.frontend import torch_graph, torch_program, torch_stored  # noqa: E402
from relaxir.frontend.torch_decomposing import decomposing  # noqa: E402
from relaxir.frontend.torch_op import HANDLERS  # noqa: E402
from relaxir.frontend.torch_to_relax import convert_modules  # noqa: E402
from relaxir.frontend.torch_values import op_key  # noqa: E402
from support import models, torch_rare_cases, torch_window_cases  # noqa: E402, F401
from support.torch_cases import CASES, Wrapped  # noqa: E402


@functools.cache
def core_table():
    return dict(torch.export.default_decompositions())


def core(program):
    with decomposing():
        return program.run_decompositions(core_table())


#: As exported, operators of the map whole, as from_torch does it, and in the core ATen that other exporters produce.
LEVELS = {
    "exported": lambda program: program,
    "whole": torch_graph.decomposed,
    "core": core,
}

#: Operators that no small function reaches on any level: each holds a check, or takes graphs (test_torch_control_flow.py).
UNREACHED = {
    "higher_order.cond", "higher_order.map_impl", "higher_order.scan", "higher_order.while_loop", "aten._assert_async",
    "aten._assert_scalar", "aten._int_mm", "aten.sym_constrain_range", "aten.sym_constrain_range_for_size",
}  # fmt: skip

#: In test_torch_data_sizes.py and test_torch_complex.py.
ELSEWHERE = {
    "aten.nonzero", "aten.masked_select", "aten._unique2", "aten.unique_consecutive", "aten.unique_dim", "aten.bincount",
    "aten.repeat_interleave.Tensor", "relaxir.dft", "torchvision.nms", "torchvision.roi_align",
}  # fmt: skip


@functools.cache
def exported(name):
    torch.manual_seed(0)
    inputs = CASES[name].inputs()
    function = Wrapped(CASES[name].function).eval()
    with torch.no_grad(), models.quiet():
        return inputs, function(*inputs), torch.export.export(function, inputs)


@functools.cache
def graph_of(name, level):
    with models.quiet():
        program = LEVELS[level](exported(name)[2])
    signature = torch_program.read_program(program, torch_stored.stored_together({"main": program}), "main")
    return torch_graph.import_graph(program, signature, {}, new_context())


def keys_of(name, level):
    """The operators of a graph. What one process of a run has found the others need not export again."""
    path = Path(os.environ["RELAXIR_TEST_KERNELS"], f"operators-{name}-{level}")
    if not path.exists():
        operations = graph_of(name, level).body.operations[0].regions[0].blocks[0].operations
        written = path.with_name(f"{path.name}-{os.getpid()}")
        written.write_text("\n".join({op_key(op.operation) for op in operations}))
        written.rename(path)
    return path.read_text().splitlines()


#: Functions of composite operators; the others need no decomposition as they were exported.
COMPOSITES = ("composites", "distances", "parts", "sums_of_products")
RUNS = [(n, v) for n in CASES for v in ("whole" if n in COMPOSITES else "exported", "core")]


@pytest.mark.parametrize(("name", "level"), RUNS)
def test_equals_eager(name, level):
    inputs, wanted, program = exported(name)
    keys_of(name, level)
    module = relaxir.from_torch(program) if level == "whole" else relaxir.Module(convert_modules([graph_of(name, level)]))
    module.verify()
    arrays = [models.to_numpy(t, "input") for t in inputs]
    got = relaxir.evaluate(module, "main", *arrays, weights=models.weights_of(program, module))
    names = [o.name for o in module.functions["main"].outputs]
    assert names == list(wanted)
    for key, array in zip(names, got, strict=True):
        assert_same(key, array, models.to_numpy(wanted[key], key))


def test_the_largest_numbers_of_a_row():
    """Of equal ones, those of minus infinity among them, the first come first; torch takes any."""
    x = torch.tensor([[3.0, float("nan"), 5.0, 4.0], [float("-inf")] * 4, [float("-inf"), 1.0, float("-inf"), 2.0]])

    class Largest(torch.nn.Module):
        def forward(self, x):
            return torch.topk(x, 3)

    module = relaxir.from_torch(torch.export.export(Largest(), (x,)))
    values, places = relaxir.evaluate(module, "main", x.numpy())
    np.testing.assert_array_equal(values, torch.topk(x, 3).values)
    assert places.tolist() == [[1, 2, 3], [0, 1, 2], [3, 1, 0]]


def assert_same(key, got, wanted):
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), key
    tolerance = 1e-2 if wanted.dtype.itemsize == 2 else 1e-5
    np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance, err_msg=key)


def test_every_handler_is_reached():
    reached = {key for name, level in RUNS for key in keys_of(name, level)}
    quantized = {key for key in HANDLERS if key.startswith(("quantized_decomposed.", "torchao."))}  # test_torch_quantized.py
    factors = {
        key for key, handler in HANDLERS.items() if handler.__module__.endswith(".factorizations")
    }  # a file of their own
    assert sorted(HANDLERS.keys() - reached - quantized - factors - ELSEWHERE) == sorted(UNREACHED)
