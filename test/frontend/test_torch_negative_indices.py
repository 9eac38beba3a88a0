"""Indices below zero: refused where torch refuses them, and counted from the end where torch does that."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn import functional

import relaxir as rx

Tensor = torch.Tensor
_OPERATORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "embedding": lambda x, i: functional.embedding(i, x),
    "embedding_bag": lambda x, i: functional.embedding_bag(i.reshape(1, -1), x),
    "index_select": lambda x, i: x.index_select(0, i),
    "index_select_scalar": lambda x, i: x[0, 0].index_select(0, i[:1]),
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "take_along_dim": lambda x, i: x.take_along_dim(i[:, None], 0),
    "scatter": lambda x, i: x.scatter(0, i[:, None], 2.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None], x),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, i[:, None], x, "amax"),
    "index_add": lambda x, i: x.index_add(0, i, x[: i.shape[0]]),
    "index_reduce": lambda x, i: x.index_reduce(0, i, x[: i.shape[0]], "amin"),
    "index": lambda x, i: x[i],
    "index_of_two": lambda x, i: x[i, i],
    "index_put": lambda x, i: x.index_put((i,), x[0]),
    "take": lambda x, i: x.take(i),
}


_COUNT_FROM_THE_END = ("index", "index_of_two", "index_put", "take", "take_along_dim")


def _eager(function: Callable[[Tensor, Tensor], Tensor], *given: Tensor) -> np.ndarray | None:
    try:
        return function(*given).numpy()
    except (IndexError, RuntimeError):
        return None


@pytest.mark.parametrize("name", _OPERATORS)
def test_a_negative_index_is_what_torch_takes_it_for(name: str) -> None:
    function = _OPERATORS[name]

    class Model(torch.nn.Module):
        def forward(self, x: Tensor, i: Tensor) -> Tensor:
            return function(x, i)

    x = torch.arange(12.0).reshape(4, 3) + 1
    module = rx.from_torch(torch.export.export(Model(), (x, torch.tensor([0, 2]))))
    call = rx.compile(module)
    refused = []
    for index in ([0, 2], [-1, 1], [-3, -1]):
        expected = _eager(function, x, torch.tensor(index))
        inputs = [x.numpy(), np.array(index)]
        refused.append(expected is None)
        if expected is not None:
            np.testing.assert_allclose(call(*inputs), expected, rtol=1e-6)
            continue
        with pytest.raises(rx.RelaxError, match=r"expected indices in \[0, \d+\)"):
            call(*inputs)
        with pytest.raises(rx.RelaxError, match=r"expected indices in \[0, \d+\), got -"):
            rx.evaluate(module, "main", *inputs)
    assert refused == [False, *[name not in _COUNT_FROM_THE_END] * 2]
