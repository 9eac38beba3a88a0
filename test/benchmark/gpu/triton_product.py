"""A matrix product in bf16 by Triton, as its tutorial has it: a peer that generates code, too."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

__all__ = ["triton_product"]


@triton.autotune(
    configs=[
        triton.Config({"BM": bm, "BN": bn, "BK": 64, "GROUP": 8}, num_stages=stages, num_warps=warps)
        for bm, bn, stages, warps in ((128, 256, 3, 8), (128, 128, 4, 4), (128, 128, 4, 8), (256, 128, 3, 8), (64, 256, 4, 4))
    ],
    key=["m", "n", "k"],
)
@triton.jit
def _kernel(
    x, w, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr  # noqa: N803
):  # fmt: skip
    pid = tl.program_id(0)
    high, wide = tl.cdiv(m, BM), tl.cdiv(n, BN)
    group = pid // (GROUP * wide)
    first = group * GROUP
    rows = min(high - first, GROUP)
    row, column = first + (pid % (GROUP * wide)) % rows, (pid % (GROUP * wide)) // rows
    at_m, at_n = (row * BM + tl.arange(0, BM)) % m, (column * BN + tl.arange(0, BN)) % n
    steps = tl.arange(0, BK)
    left, right = x + at_m[:, None] * k + steps[None, :], w + at_n[None, :] * k + steps[:, None]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, tl.cdiv(k, BK)):
        a = tl.load(left, mask=steps[None, :] < k - i * BK, other=0.0)
        b = tl.load(right, mask=steps[:, None] < k - i * BK, other=0.0)
        total = tl.dot(a, b, total)
        left += BK
        right += BK
    out_m, out_n = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
    tl.store(y + out_m[:, None] * n + out_n[None, :], total.to(tl.bfloat16), mask=(out_m[:, None] < m) & (out_n[None, :] < n))


def triton_product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """``x @ w.T`` of contiguous tensors in bf16."""
    (m, k), n = x.shape, w.shape[0]
    y = torch.empty(m, n, device=x.device, dtype=x.dtype)
    _kernel[lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)](x, w, y, m, n, k)
    return y
