"""PyTorch whose sums are rounded otherwise, as those of another library, or in another order, are."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["OtherRounding"]

#: Operators that sum: in which order, and so how they are rounded, is open.
_SUMS = frozenset(
    f"aten::{name}"
    for name in (
        *("mm", "addmm", "bmm", "baddbmm", "mv", "dot", "linear", "convolution", "mkldnn_rnn_layer"),
        *("mean", "sum", "cumsum", "var", "linalg_vector_norm", "_softmax", "_log_softmax"),
        *("avg_pool2d", "_adaptive_avg_pool2d", "native_layer_norm", "native_group_norm", "native_batch_norm"),
        *("_native_batch_norm_legit_no_training", "_fused_rms_norm"),
        *("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_attention_math"),
    )
)


class OtherRounding(TorchDispatchMode):
    """Results of sums are off by one unit of the last place of the largest of their row, up, down, or not at all.

    Whole numbers stay what they are: sums of those are exact.
    """

    def __init__(self, seed: int):
        super().__init__()
        self._random = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        return pytree.tree_map(self._rounded, found) if func._schema.name in _SUMS else found

    def _rounded(self, x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or x.dtype != torch.float32 or not x.numel():
            return x
        largest = x.abs().amax(-1, keepdim=True) if x.dim() else x.abs()
        steps = torch.randint(-1, 2, x.shape, generator=self._random)
        return torch.where(x.isfinite() & (x != x.round()), x + steps * largest.nan_to_num(0, 0) * 2.0**-23, x)
