"""Random PyTorch graphs of NNSmith, imported, compiled and called, against PyTorch itself.

A graph has up to eight operators that fit one another, with the shapes that NNSmith's constraints allow. What rounds to
integers makes another number of a last bit: where PyTorch's own results change as much for inputs a millionth away, nothing
is said. ``pip install relaxir[fuzz]`` brings NNSmith, ``make fuzz`` does so; ``make test`` runs none of these.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

import relaxir as rx
from fuzzing.targets import compiled

__all__ = ["check"]

#: NNSmith's other dtypes are complex, f16, which it draws beyond what it holds, and integers that torch has few operators for.
_DTYPES = ["f32", "f64", "i32", "i64", "bool"]
_NODES, _ELEMENTS, _MILLISECONDS = 8, 4096, 5000
#: Sums in another order, and approximations of functions, through several operators; of the largest.
_TOLERANCE = 1e-3


class _Graph(torch.nn.Module):
    """NNSmith's module without its checks of numbers, which ``torch.export`` cannot trace."""

    def __init__(self, net: Any):
        super().__init__()
        self.net = net
        self.results = list(net.ir.leaf_var())

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = dict(zip(self.net.ir.input_var(), inputs, strict=True))
        for operator, taken, made, _ in self.net.instructions:
            found = operator(*(values[name] for name in taken))
            values.update(zip(made, found if isinstance(found, list) else [found], strict=True))
        return tuple(values[name] for name in self.results)


def check(seed: int) -> str | None:
    """See the module; a graph that cannot be imported is refused for a reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = graph(seed)
    if drawn is None:
        return "NNSmith draws no graph"
    model, inputs = drawn
    try:
        with torch.no_grad():
            expected = model(*inputs)
    except (RuntimeError, NotImplementedError):  # such as comparisons of complex numbers, which roots are to NNSmith
        return "PyTorch cannot run the graph"
    program = torch.export.export(model, inputs)
    try:
        module = rx.from_torch(program)
    except rx.RelaxError as error:
        return str(error).partition("\n")[0].partition(" at ")[0]
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "weights.safetensors"
        rx.save_weights(program, weights)
        executable = compiled(module)
        executable.bind(executable.prepare(weights))
        found = executable(*inputs)
    for want, got in zip(expected, found if isinstance(found, tuple) else (found,), strict=True):
        told = _difference(want, torch.as_tensor(got))
        if told and not _is_steep(model, inputs, expected):
            raise AssertionError(
                f"expected what PyTorch computes, got {told}: {[str(op) for *_, op in model.net.instructions]}"
            )
    return None


def graph(seed: int) -> tuple[_Graph, tuple[torch.Tensor, ...]] | None:
    """A graph and inputs, equal ones for equal seeds; None where NNSmith finds none in time."""
    from nnsmith.abstract.dtype import DType
    from nnsmith.error import ConstraintError, InternalError
    from nnsmith.graph_gen import model_gen
    from nnsmith.materialize import Model

    kind = Model.init("torch")
    kind.add_seed_setter()
    torch.manual_seed(seed)
    choices = [DType.from_str(name) for name in _DTYPES]
    try:
        drawn = model_gen(
            kind.operators(),
            "symbolic-cinit",
            _NODES,
            seed,
            _MILLISECONDS,
            max_elem_per_tensor=_ELEMENTS,
            dtype_choices=choices,
        )
        net = kind.from_gir(drawn.make_concrete()).torch_model.eval()
    except (ConstraintError, InternalError):
        return None
    net.requires_grad_(False)
    rng = np.random.default_rng(seed)
    shapes = [net.ir.vars[name] for name in net.ir.input_var()]
    return _Graph(net), tuple(_random(rng, var.shape, var.dtype.torch()) for var in shapes)


def _random(rng: np.random.Generator, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    values = rng.uniform(-2, 2, shape) if dtype.is_floating_point else rng.integers(0 if dtype == torch.bool else -3, 2, shape)
    return torch.from_numpy(np.asarray(values)).to(dtype)


def _difference(want: torch.Tensor, got: torch.Tensor) -> str:
    if want.dtype != got.dtype or want.shape != got.shape:
        return f"{got.dtype} {list(got.shape)} instead of {want.dtype} {list(want.shape)}"
    if not want.dtype.is_floating_point:
        return "" if torch.equal(want, got) else "other integers"
    finite = want[torch.isfinite(want)].abs()
    largest = float(finite.max()) if len(finite) else 1.0
    close = torch.isclose(got.double(), want.double(), _TOLERANCE, _TOLERANCE * max(largest, 1e-6), equal_nan=True)
    return "" if bool(close.all()) else f"{int((~close).sum())} of {want.numel()} other floats"


def _is_steep(model: _Graph, inputs: tuple[torch.Tensor, ...], expected: tuple[torch.Tensor, ...]) -> bool:
    """Whether inputs that are off by a few units give other results in PyTorch itself."""
    for factor in (1 + 1e-6, 1 - 1e-6):
        near = tuple(x * factor if x.dtype.is_floating_point else x for x in inputs)
        with torch.no_grad():
            moved = model(*near)
        if any(_difference(a, b) for a, b in zip(expected, moved, strict=True)):
            return True
    return False
