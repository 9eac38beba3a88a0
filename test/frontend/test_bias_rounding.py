"""Products and convolutions with a bias in bf16 and f16 are rounded once, as torch does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

import relaxir as rx
from relaxir.weights.arrays import to_numpy
from support.onnx_models import model

_DTYPES = {torch.bfloat16: ml_dtypes.bfloat16, torch.float16: np.float16}


class _AddMM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(40, 24)), nn.Parameter(torch.randn(24))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.bias, x, self.weight, beta=0.5, alpha=2)


_MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(40, 24), (33, 40)),
    "addmm": (_AddMM, (33, 40)),
    "conv1d": (lambda: nn.Conv1d(6, 8, 3), (2, 6, 50)),
    "conv2d": (lambda: nn.Conv2d(6, 8, 3, groups=2), (2, 6, 12, 12)),
    "conv3d": (lambda: nn.Conv3d(3, 4, 2), (2, 3, 6, 6, 6)),
    "conv3d, grouped": (lambda: nn.Conv3d(6, 8, 2, groups=2), (2, 6, 6, 6, 6)),
    "transposed": (lambda: nn.ConvTranspose2d(6, 8, 3, stride=2), (2, 6, 8, 8)),
}


def share_rounded_once(got: np.ndarray, exact: np.ndarray) -> float:
    """Of elements, how many are the nearest number of their dtype; sums in f32 hardly ever fall on the other side."""
    return float(np.mean(got == exact.astype(got.dtype)))


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@pytest.mark.parametrize("name", _MODULES)
def test_torch_modules(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    make, shape = _MODULES[name]
    module, x = make().to(dtype), torch.randn(shape).to(dtype)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    executable = rx.compile(rx.from_torch(torch.export.export(module, (x,))))
    executable.bind(executable.prepare({n: to_numpy(p.detach(), n) for n, p in module.named_parameters()}))
    got = executable(to_numpy(x, "x"))
    assert got.dtype == _DTYPES[dtype]
    exact = module.double()(x.double()).detach().numpy()
    assert share_rounded_once(got, exact) > 0.99  # rounded twice: 0.7


@pytest.mark.parametrize(
    ("node", "shapes"),
    [
        (helper.make_node("Gemm", ["x", "w", "b"], ["y"], alpha=2.0, beta=0.5), {"x": (33, 40), "w": (40, 24), "b": (24,)}),
        (helper.make_node("Conv", ["x", "w", "b"], ["y"]), {"x": (2, 6, 12, 12), "w": (8, 6, 3, 3), "b": (8,)}),
        (helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"]), {"x": (2, 6, 8, 8), "w": (6, 8, 3, 3), "b": (8,)}),
    ],
    ids=lambda value: getattr(value, "op_type", ""),
)
def test_onnx_nodes(node: Any, shapes: dict[str, tuple[int, ...]]) -> None:
    """Against the same node in f64."""
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}

    def result(kind: int, dtype: type[np.generic]) -> np.ndarray:
        given = {name: array.astype(dtype) for name, array in arrays.items()}
        executable = rx.compile(rx.from_onnx(model([node], {n: (kind, a.shape) for n, a in given.items()}, ["y"])))
        return executable(**given)

    assert share_rounded_once(result(TensorProto.FLOAT16, np.float16), result(TensorProto.DOUBLE, np.float64)) > 0.99
