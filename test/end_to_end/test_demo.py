"""The demo's model is Llama as transformers has it; the demo itself runs, checks itself and prints what it promises."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

import relaxir as rx
from relaxir.tools import demo
from relaxir.tools.llama import LlamaConfig, build_llama, random_weights, weight_shapes

SMALL = LlamaConfig(vocab=320, hidden=48, layers=2, heads=6, kv_heads=2, ffn=80)


@pytest.mark.parametrize("length", [1, 7])
def test_model_is_that_of_transformers(length: int):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    weights = random_weights(SMALL)
    config = transformers.LlamaConfig(
        vocab_size=SMALL.vocab, hidden_size=SMALL.hidden, num_hidden_layers=SMALL.layers, num_attention_heads=SMALL.heads,
        num_key_value_heads=SMALL.kv_heads, intermediate_size=SMALL.ffn, rms_norm_eps=SMALL.epsilon, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": SMALL.rope_theta}, attn_implementation="eager",
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    state = {name: torch.from_numpy(array.astype(np.float32)) for name, array in weights.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert (missing, unexpected) == (["lm_head.weight"], [])
    tokens = np.random.default_rng(length).integers(0, SMALL.vocab, length)
    with torch.no_grad():
        expected = model(torch.from_numpy(tokens)[None]).logits[0].numpy()
    (logits,) = rx.evaluate(build_llama(SMALL), "main", tokens, weights=weights)
    np.testing.assert_allclose(logits, expected, atol=1e-4 * np.abs(expected).max())


def test_weights_are_those_the_module_asks_for():
    signature = build_llama(SMALL).functions["main"]
    assert {w.name: w.shape for w in signature.weights} == weight_shapes(SMALL)
    assert {w.dtype for w in signature.weights} == {"bf16"}
    assert {n: w.shape for n, w in random_weights(SMALL).items()} == weight_shapes(SMALL)


def test_demo_runs_and_tells_without_torch():
    code = "import sys; sys.modules['torch'] = None; from relaxir.tools import demo; sys.exit(demo.main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "--layers", "1", "--vocab", "320"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "lifted out of inference" in out
    assert re.search(r"concat x2\b.* 3 -> 1 ", out)
    assert re.search(r"peak above the process's base .* [\d.]+ [KM]iB .* [\d.]+ [KM]iB", out)
    for row in ("compile", "prepare", "run"):
        assert row in out
    assert re.search(r"without lifting; [\d.]+ .iB .* [\d.]+ .* [\d.]+ .* [\d.]+ ", out)
    assert re.search(r"a call with 1 token takes [\d.]+ ms with it, and [\d.]+ ms without", " ".join(out.split()))
    assert "PyTorch" not in out  # it is not there
    errors = [float(e) for e in re.findall(r"reference semantics .* (\d\.\de-\d+) ", out)]
    assert len(errors) == 3
    assert max(errors) <= demo.TOLERANCE


def test_wrong_logits_are_a_problem():
    assert demo.problem_of([demo.Run(1, 0.1, 1e-6), demo.Run(16, 0.1, 1e-4)]) is None
    runs = [demo.Run(1, 0.1, 1e-6), demo.Run(16, 0.1, float("nan"))]
    assert demo.problem_of(runs) == "expected logits within 0.0001 of the reference, got nan for 16 tokens"
