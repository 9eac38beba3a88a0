"""Functions of tensors, of operators that few models have; every output has a name for messages."""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812

from support.torch_cases import case, floats, integers, positive

__all__ = ["rare"]


@case(floats(3, 4), positive(3, 4), integers(3, 4, low=0, high=3), integers(2, low=0, high=3))
def rare(x, p, i, rows):
    mantissa, exponent = torch.frexp(x)
    values, places = x.nanmedian(1)
    return {
        "i0": torch.i0(x),
        "special_i0": torch.special.i0(x),
        "i0e": torch.special.i0e(x),
        "i1": torch.special.i1(x),
        "i1e": torch.special.i1e(x),
        "erfcx": torch.special.erfcx(x),
        "log_ndtr": torch.special.log_ndtr(x),
        "ndtri": torch.special.ndtri(p / 2),
        "angle": torch.angle(x),
        "nextafter": torch.nextafter(x, p),
        "mantissa": mantissa,
        "exponent": exponent,
        "rrelu": F.rrelu(x),
        "dist": torch.dist(x, p, 3),
        "mode": i.mode(1)[0],
        "nanmedian": x.nanmedian(),
        "nanmedian_dim": values,
        "nanmedian_place": places,
        "index_reduce": x.index_reduce(0, rows, p[:2], "amax"),
        "tril_indices": torch.tril_indices(3, 4, -1),
        "triu_indices": torch.triu_indices(3, 4),
        "fftfreq": torch.fft.fftfreq(4) * x,
        "rfftfreq": torch.fft.rfftfreq(6) * x,
    }
