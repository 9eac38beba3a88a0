"""Writes into state of another dtype or shape convert and broadcast, also where torch decomposes the program."""

from __future__ import annotations

import copy

import pytest
import torch

import relaxir as rx

WRITES = {
    "dtype": lambda a, x: a.copy_(x),
    "row": lambda a, x: a.copy_(x[0]),
    "number": lambda a, x: a.copy_(x[0, 0]),
    "slice": lambda a, x: a[:2].copy_(x[2:]),
    "view": lambda a, x: a.view(24)[2:8].copy_(x[0]),
    "column": lambda a, x: a[:, 1].copy_(x[0, 0]),
    "sums": lambda a, x: a.add_(2).add_(x.to(a.dtype)),
    "filled": lambda a, x: a.fill_(2.7),
}


class Model(torch.nn.Module):
    def __init__(self, write, dtype, is_plain):
        super().__init__()
        self.register_buffer("state", torch.zeros(4, 6, dtype=dtype))
        self.write, self.is_plain = write, is_plain

    def forward(self, x):
        self.write(self.state, x)
        return self.state.double().sum(0), x * 2 if self.is_plain else torch.cdist(x.float(), x.float())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.int8])
@pytest.mark.parametrize("is_plain", [True, False])
def test_copies_convert(is_plain, dtype):
    """All writes, of f32 and u8, one after the other; twice, as state stays."""

    class All(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ModuleList(Model(w, dtype, is_plain) for w in WRITES.values())

        def forward(self, x, numbers):
            return [part(x)[0] for part in self.parts] + [part(numbers)[0] for part in self.parts] + [self.parts[0](x)[1]]

    torch.manual_seed(0)
    x, numbers = torch.randn(4, 6) * 3, (torch.arange(24, dtype=torch.uint8) * 10).view(4, 6)
    model = All()
    exe = rx.compile(rx.from_torch(torch.export.export(copy.deepcopy(model), (x, numbers))))
    for _ in range(2):
        wanted, found = model(x, numbers), exe(x, numbers)
        for name, a, b in zip([*WRITES, *WRITES, "other"], wanted, found, strict=True):
            assert torch.allclose(torch.as_tensor(b), a, rtol=1e-5, atol=1e-5), name
