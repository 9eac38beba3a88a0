"""Fourier transforms of pairs of reals as an operator of torch: what complex ones become (:mod:`.torch_complex`).

``relaxir::dft(real, imaginary, axis, count, sign, power)`` is the first ``count`` sums of
``x[j] * exp(sign * 2i * pi * j * k / n)`` along an axis, over ``n ** power``, real parts before imaginary ones in a new first
dimension.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["DFT"]

_LIBRARY = torch.library.Library("relaxir", "DEF")
_LIBRARY.define("dft(Tensor real, Tensor? imaginary, int axis, SymInt count, int sign, float power) -> Tensor")


def _fake(real: torch.Tensor, imaginary: torch.Tensor | None, axis: int, count: Any, sign: int, power: float) -> torch.Tensor:
    shape = list(real.shape)
    shape[axis] = count
    return real.new_empty((2, *shape))


torch.library.register_fake("relaxir::dft", _fake)

#: The operator.
DFT = torch.ops.relaxir.dft.default
