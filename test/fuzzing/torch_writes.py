"""Modules that write at random into what they have computed and into their state, through views, and read other views.

Imported, compiled, and called twice, against PyTorch itself. Views are taken early and read late, written through, or both;
what is written may be of another dtype, and the written memory may be a result.
"""

from __future__ import annotations

import copy
import random

import numpy as np
import torch

import relaxir as rx
from fuzzing.targets import compiled
from support import models

__all__ = ["RandomWrites", "check"]

#: How often a module writes or reads.
_MOST_STEPS = 6


def check(seed: int) -> str | None:
    """See the module; none is refused."""
    model = RandomWrites(seed).eval()
    with models.quiet(), torch.no_grad():
        program = torch.export.export(model, (model.example(),))
    executable, eager = compiled(rx.from_torch(program)), copy.deepcopy(model)
    executable.bind(executable.prepare({"kept": model.kept.numpy()}))
    for x in (model.example(), model.example() - 1):
        with torch.no_grad():
            wanted = eager(x.clone())
        for got, want in zip(executable(x.numpy()), wanted, strict=True):
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-5, atol=1e-5, strict=True)
        for state in executable.state.values():
            np.testing.assert_allclose(state, eager.kept.numpy(), rtol=1e-5, atol=1e-5)
    return None


class RandomWrites(torch.nn.Module):
    """Steps that a seed determines, on a computed tensor and on a buffer, both [3, 4, n] with n from 1 to 5."""

    def __init__(self, seed: int):
        super().__init__()
        draw = random.Random(seed)
        self.width = draw.randint(1, 5)
        self.steps = [(draw.choice(_STEPS), draw.getrandbits(32)) for _ in range(draw.randint(1, _MOST_STEPS))]
        self.register_buffer("kept", torch.arange(12.0 * self.width).reshape(3, 4, self.width) / 8)
        self.dtype = draw.choice([torch.float32, torch.float32, torch.float64])

    def example(self) -> torch.Tensor:
        return torch.linspace(-1, 2, 12 * self.width).reshape(3, 4, self.width)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, results = [x.to(self.dtype) * 2, self.kept], list[torch.Tensor]()
        for step, seed in self.steps:
            step(values, results, random.Random(seed))
        return (*results, values[0], values[-1] * 1)


def _viewed(x: torch.Tensor, draw: random.Random) -> torch.Tensor:
    """A view by up to three operators."""
    for _ in range(draw.randint(0, 3)):
        axis = draw.randrange(x.dim()) - draw.choice([0, x.dim()]) if x.dim() else 0
        kind = draw.choice(["slice", "select", "swap", "more", "less", "order", "split", "long", "steps", "alias"])
        if kind == "more":
            x = x.unsqueeze(draw.randrange(x.dim() + 1))
        if not x.dim():
            continue
        if kind == "slice":
            x = x.narrow(axis, 0, x.shape[axis]) if draw.random() < 0.3 else x[..., 1:] if draw.random() < 0.5 else x[1:]
        if kind == "steps":
            x = x[..., draw.randint(0, 1) :: 2]
        if kind == "select" and x.shape[axis]:
            x = x.select(axis, draw.choice([0, -1]))
        if kind == "swap":
            x = x.transpose(0, axis)
        if kind == "less":
            x = x.squeeze(axis)
        if kind == "order":
            x = x.permute(*draw.sample(range(x.dim()), x.dim()))
        if kind == "split":
            x = draw.choice(x.split(2, axis))
        if kind == "long":
            x = x.reshape(-1)
        if kind == "alias":
            x = x.detach()
    return x


def _write(values: list[torch.Tensor], results: list[torch.Tensor], draw: random.Random) -> None:
    target = _viewed(draw.choice(values), draw)
    kind = draw.choice(["add", "multiply", "copy", "fill", "number", "twice", "clamp"])
    if kind == "add":
        written = target.add_(draw.choice([2, 0.5]))
    elif kind == "multiply":
        written = target.mul_(values[0].sum().to(target.dtype) * 0.01 if draw.random() < 0.5 else 3)
    elif kind == "copy":
        written = target.copy_(draw.choice([target.detach() * 2, target.float().exp().clamp(max=9), torch.ones_like(target)]))
    elif kind == "fill":
        written = target.zero_() if draw.random() < 0.5 else target.fill_(0.25)
    elif kind == "number":
        target[...] = 0.5
        written = target
    elif kind == "twice":
        written = target.neg_().add_(1)
    else:
        written = target.clamp_(-1, 2)
    if draw.random() < 0.2:
        results.append(written)


def _read(values: list[torch.Tensor], results: list[torch.Tensor], draw: random.Random) -> None:
    """Of a view, or of what is computed of one."""
    found = _viewed(draw.choice(values), draw)
    results.append(found if draw.random() < 0.6 else found * 2)


def _keep(values: list[torch.Tensor], results: list[torch.Tensor], draw: random.Random) -> None:
    """A view that is written and read like what it is of, or a value of its own."""
    found = _viewed(draw.choice(values), draw)
    values.append(found if draw.random() < 0.6 else found + 1)


def _turn(values: list[torch.Tensor], results: list[torch.Tensor], draw: random.Random) -> None:
    """Changes the sizes of what is computed, in place."""
    turned = draw.choice([values[0].unsqueeze_, values[0].squeeze_, lambda axis: values[0].transpose_(axis, -1)])(0)
    if draw.random() < 0.2:
        results.append(turned)


_STEPS = [_write, _write, _write, _write, _read, _read, _keep, _turn]
