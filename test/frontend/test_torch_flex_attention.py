"""``flex_attention`` with functions of scores and masks, buffers in them, and heads that several queries share."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn.attention.flex_attention import create_block_mask, flex_attention  # noqa: E402

import relaxir as rx  # noqa: E402
from support import models  # noqa: E402


class Documents(nn.Module):
    """Attention within a document and backwards, with a slope for each head."""

    def __init__(self):
        super().__init__()
        self.register_buffer("slopes", torch.tensor([0.5, 0.25, 0.125, 0.0]))
        self.register_buffer("document", torch.tensor([0] * 5 + [1] * 7))

    def forward(self, q, k, v):
        def score(s, batch, head, i, j):
            return torch.where(i >= j, s + self.slopes[head] * (j - i), -float("inf"))

        def mask(batch, head, i, j):
            return self.document[i] == self.document[j]

        blocks = create_block_mask(mask, None, None, 12, 12, device="cpu")
        return flex_attention(q, k, v, score_mod=score, block_mask=blocks, enable_gqa=True) * 2


def test_scores_masks_and_shared_heads():
    model = Documents().eval()
    inputs = torch.randn(2, 4, 12, 8), torch.randn(2, 2, 12, 8), torch.randn(2, 2, 12, 8)
    with torch.no_grad(), models.quiet():
        program = torch.export.export(model, inputs)
        wanted = model(*inputs)
    module = rx.from_torch(program)
    found = rx.evaluate(module, "main", *(t.numpy() for t in inputs), weights=models.weights_of(program, module))
    np.testing.assert_allclose(found[0], wanted.numpy(), rtol=1e-5, atol=1e-5)


def test_it_is_one_op_whose_masks_are_made_ahead():
    model = Documents().eval()
    inputs = torch.randn(2, 4, 12, 8), torch.randn(2, 2, 12, 8), torch.randn(2, 2, 12, 8)
    with torch.no_grad(), models.quiet():
        module = rx.from_torch(torch.export.export(model, inputs))
    lifted = str(module.run("relax-lift-transform-params,relax-canonicalize,cse"))
    main = lifted[lifted.index("@main(") :].split("return")[0]
    assert "relax.attention" in main
    for name in ("softmax", "matmul", "arange", "greater_equal", "broadcast_to"):
        assert f"relax.{name}" not in main
