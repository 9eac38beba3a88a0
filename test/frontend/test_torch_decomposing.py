"""Decompositions with less around them are those of torch."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._export import utils
from torch._ops import OperatorBase

from relaxir.frontend.torch_decomposing import decomposing


class Mixed(nn.Module):
    """Has operators that are made of others, in Python and in C++, and some that are not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.interpolate(nn.functional.mish(x), scale_factor=2.0, mode="bilinear")
        return torch.softmax(torch.einsum("abij,abkj->abik", y, y), -1).tril()


def test_the_graph_is_the_same() -> None:
    program = torch.export.export(Mixed().eval(), (torch.ones(1, 2, 3, 4),))
    wanted = str(program.run_decompositions().graph)
    with decomposing():
        assert str(program.run_decompositions().graph) == wanted
        keeping = str(program.run_decompositions({}).graph)
    assert keeping == str(program.run_decompositions({}).graph) != wanted


def test_torch_is_as_before_and_knows_operators_that_came_later() -> None:
    before = utils._materialize_cpp_cia_ops, OperatorBase.py_impl
    with decomposing():
        assert utils._materialize_cpp_cia_ops is not before[0]
        utils._collect_all_valid_cia_ops()
    assert (utils._materialize_cpp_cia_ops, OperatorBase.py_impl) == before
    library = torch.library.Library("relaxir_decomposing", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: 2 * x, "CompositeImplicitAutograd")
    with decomposing():
        assert torch.ops.relaxir_decomposing.twice.default in utils._collect_all_valid_cia_ops()


def test_a_kernel_is_registered_once() -> None:
    library = torch.library.Library("relaxir_registering", "DEF")
    library.define("thrice(Tensor x) -> Tensor")
    operator = torch.ops.relaxir_registering.thrice.default
    with decomposing():
        operator.py_impl(torch.DispatchKey.CompositeImplicitAutograd)(lambda x: 3 * x)
        with pytest.raises(RuntimeError, match="override a python impl"):
            operator.py_impl(torch.DispatchKey.CompositeImplicitAutograd)(lambda x: x)
        with pytest.raises(AssertionError, match="Python"):
            operator.py_impl(torch.DispatchKey.Python)(lambda x: x)
