"""A token of a Llama with a cache, ours against torch.compile with the same weights and cache."""

from __future__ import annotations

import argparse
import copy

import torch

import relaxir as rx

from ..decode import Generator, generator_of
from .place import ROUNDS, Place

__all__ = ["decoding"]


@torch.no_grad()
def decoding(place: Place, precision: str | None) -> tuple[float, float, str]:
    """Seconds of a step, ours and torch's, and what was computed; of wrong tokens' scores an AssertionError."""
    hidden, layers, cache = place.size(4096, 256), place.size(2, 1), place.size(1024, 16)
    sizes = argparse.Namespace(vocab=place.size(32000, 128), hidden=hidden, layers=layers, cache=cache)
    generator = generator_of(sizes).to(torch.bfloat16)
    peer: Generator = copy.deepcopy(generator).to(place.torch_device)  # an export leaves tensors without memory in the cache
    program = torch.export.export(generator, (torch.zeros(1, 1, dtype=torch.int64),))
    generator.reset()
    executable = rx.compile(rx.from_torch(program), target=place.target, device=place.device, weights=precision)
    executable.bind(executable.prepare({**generator.state_dict(), **dict(generator.named_buffers())}))
    token = torch.tensor([[3]])
    there = token.to(place.torch_device)
    got, want = executable(token), peer(there)
    difference, scale = (got.float().cpu() - want.float().cpu()).abs().max().item(), want.float().abs().max().item()
    bound = 5e-2 if precision is None else 0.5
    assert difference <= bound * scale, f"scores are off by {difference:.3g} of {scale:.3g}"
    step = peer if place.is_emulated else torch.compile(peer, mode="reduce-overhead", fullgraph=False)
    # A step takes a place of the cache, and there is none behind its last one.
    ours, theirs = place.times(lambda: executable(there), lambda: step(there), most=cache // (ROUNDS + 1) - 1)
    return ours, theirs, f"hidden {hidden}, {layers} layers, a cache of {cache}"
