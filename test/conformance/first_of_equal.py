"""PyTorch with the choices that it leaves open as relaxir makes them."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["FirstOfEqual"]

_aten = torch.ops.aten


class FirstOfEqual(TorchDispatchMode):
    """Of equal numbers the first ones come first: in a sort that need not be stable, and among the largest."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _aten.sort.default:
            x, axis, is_descending = (*args, *(-1, False)[len(args) - 1 :])
            return _aten.sort.stable(x, stable=True, dim=axis, descending=is_descending)
        if func is not _aten.topk.default:
            return func(*args, **(kwargs or {}))
        x, count, axis, is_largest = (*args, *(-1, True)[len(args) - 2 :])[:4]
        if not x.dim():
            return func(*args, **(kwargs or {}))
        found = _aten.sort.stable(x, stable=True, dim=axis, descending=is_largest)
        return tuple(part.narrow(axis, 0, count).contiguous() for part in found)
