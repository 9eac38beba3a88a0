"""The core operators of ATen, and torch's OpInfos whose samples reach each of them."""

from __future__ import annotations

from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

__all__ = ["ELSEWHERE", "core_operators", "infos_of"]

#: Core operators that no OpInfo is named after, in ``torch`` or ``torch.nn.functional``:
#: the OpInfos that export to them, ``name`` or ``name variant``.
_ALIASES = {
    "_adaptive_avg_pool2d": ("nn.functional.adaptive_avg_pool2d",),
    "_adaptive_avg_pool3d": ("nn.functional.adaptive_avg_pool3d",),
    "_cdist_forward": ("cdist",),
    "_embedding_bag": ("nn.functional.embedding_bag",),
    "_fft_c2r": ("fft.irfft",),
    "_fft_r2c": ("fft.rfft",),
    "_local_scalar_dense": ("item",),
    "_log_softmax": ("log_softmax",),
    "_native_batch_norm_legit_no_training": ("nn.functional.batch_norm", "nn.functional.batch_norm without_cudnn"),
    "_pdist_forward": ("nn.functional.pdist",),
    "_softmax": ("softmax",),
    "_to_copy": ("to",),
    "convolution": (
        "nn.functional.conv1d",
        "nn.functional.conv2d",
        "nn.functional.conv3d",
        "nn.functional.conv_transpose1d",
        "nn.functional.conv_transpose2d",
        "nn.functional.conv_transpose3d",
    ),
    "index": ("__getitem__",),
    "max_pool2d_with_indices": ("nn.functional.max_pool2d",),
    "max_pool3d_with_indices": ("nn.functional.max_pool3d",),
    "reflection_pad1d": ("nn.functional.pad reflect",),
    "reflection_pad2d": ("nn.functional.pad reflect",),
    "reflection_pad3d": ("nn.functional.pad reflect",),
    "replication_pad2d": ("nn.functional.pad replicate",),
    "replication_pad3d": ("nn.functional.pad replicate",),
    "upsample_bilinear2d": ("nn.functional.interpolate bilinear", "nn.functional.upsample_bilinear"),
    "upsample_nearest2d": ("nn.functional.interpolate nearest", "nn.functional.upsample_nearest"),
}

#: Core operators that have no samples to compare, and why.
ELSEWHERE = {
    "_adaptive_avg_pool2d_backward": "a gradient",
    "avg_pool2d_backward": "a gradient",
    "convolution_backward": "a gradient",
    "embedding_dense_backward": "a gradient",
    "native_group_norm_backward": "a gradient",
    "native_layer_norm_backward": "a gradient",
    "bernoulli": "random numbers",
    "native_dropout": "random numbers",
    "rand": "random numbers",
    "randn": "random numbers",
    "randperm": "random numbers",
    "alias": "no OpInfo",
    "col2im": "no OpInfo",
    "copy": "no OpInfo",
    "empty": "memory that was not written",
    "empty_strided": "memory that was not written",
    "sym_numel": "a size, not a tensor",
    "sym_size": "a size, not a tensor",
    "sym_storage_offset": "a size, not a tensor",
    "sym_stride": "a size, not a tensor",
}


def core_operators() -> list[str]:
    """Names of the operators of which an overload has torch's tag ``core``, without the namespace."""
    packets = {name: getattr(torch.ops.aten, name) for name in dir(torch.ops.aten)}
    found = {n: p for n, p in packets.items() if isinstance(p, torch._ops.OpOverloadPacket)}
    return sorted(n for n, p in found.items() if any(torch.Tag.core in getattr(p, o).tags for o in p.overloads()))


def infos_of(operator: str) -> list[Any]:
    """The OpInfos whose samples export to a core operator, those of other overloads among them."""
    names = _ALIASES.get(operator, (operator, f"nn.functional.{operator}"))
    return [o for o in op_db if not {o.name, f"{o.name} {o.variant_test_name}".strip()}.isdisjoint(names)]
