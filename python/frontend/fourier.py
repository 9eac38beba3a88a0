"""Fourier transforms of pairs of reals as an operator of torch: what complex ones become (:mod:`.torch_complex`).

``relaxir::dft(real, imaginary, axis, count, sign)`` is the first ``count`` sums of ``x[j] * exp(sign * 2i * pi * j * k / n)``
along an axis, real parts before imaginary ones in a new first dimension.
"""

from __future__ import annotations

import torch

__all__ = ["DFT"]

_LIBRARY = torch.library.Library("relaxir", "DEF")
_LIBRARY.define("dft(Tensor real, Tensor? imaginary, int axis, int count, int sign) -> Tensor")


def _fake(real: torch.Tensor, imaginary: torch.Tensor | None, axis: int, count: int, sign: int) -> torch.Tensor:
    shape = list(real.shape)
    shape[axis] = count
    return real.new_empty((2, *shape))


torch.library.register_fake("relaxir::dft", _fake)

#: The operator.
DFT = torch.ops.relaxir.dft.default
