"""The model families, tiny: imported, then the reference semantics against eager torch, at the exported and at other sizes."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import relaxir  # noqa: E402
from support import models  # noqa: E402

#: Exporting takes a second or two: every test of one model shares it.
CASES = {
    "mlp": models.mlp,
    "bert": models.bert,
    "bert-masked-static": lambda: models.bert(masked=True, dynamic=False),
    "gpt2": models.gpt2,
    "llama": models.llama,
    "llama-masked-static": lambda: models.llama(masked=True, dynamic=False),
    "resnet18": models.resnet18,
}


@functools.cache
def imported(name):
    model = CASES[name]()
    program = model.export()
    return model, program, relaxir.from_torch(program)


def outputs(program, module, inputs):
    arrays = [models.to_numpy(value, "input") for value in inputs.values()]
    return relaxir.evaluate(module, "main", *arrays, weights=models.weights_of(program, module))


def assert_close(got, wanted, tolerance):
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        a, b = a.astype(np.float32), b.astype(np.float32)
        assert np.isfinite(b).all()
        assert np.abs(a - b).max() <= tolerance * np.abs(b).max()


@pytest.mark.parametrize("name", CASES)
def test_equals_eager_torch(name):
    model, program, module = imported(name)
    module.verify()
    others = [(1, 64), (3, 64)] if name == "resnet18" else [(1, 5), (3, 33)]
    for size in [model.shape, *(others if model.dynamic else [])]:
        inputs = model.inputs(*size)
        assert_close(outputs(program, module, inputs), model.eager(inputs), 1e-4)


@pytest.mark.parametrize("name", ["mlp", "bert", "llama"])
def test_equals_eager_torch_in_bf16(name):
    """Eager torch rounds every intermediate to bf16 as well: 8 bits, so a few roundings are 2 % of the scale."""
    model = CASES[name]().to(torch.bfloat16)
    if name == "mlp":
        model = models.replace(model, make_inputs=lambda batch, _: {"x": torch.randn(batch, 16).to(torch.bfloat16)})
    program = model.export()
    module = relaxir.from_torch(program)
    inputs = model.inputs()
    assert {w.dtype for w in module.functions["main"].weights if w.name.endswith("weight")} == {"bf16"}
    assert_close(outputs(program, module, inputs), model.eager(inputs), 2e-2)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_symbols_are_the_dims_of_the_user(name):
    module = imported(name)[2]
    main = module.functions["main"]
    assert main.symbols == ("batch", "seq")
    assert [(i.name, i.shape, i.dtype) for i in main.inputs] == [("input_ids", ("batch", "seq"), "i64")]
    assert "relax.symbol_ranges = {batch = [1, 32], seq = [2, 64]}" in str(module)
    assert "match_cast" not in str(module)


@pytest.mark.parametrize(("name", "wanted"), [
    ("bert", ["last_hidden_state", "pooler_output"]), ("gpt2", ["logits"]), ("llama", ["logits"]), ("resnet18", ["output0"]),
])  # fmt: skip
def test_results_have_the_keys_of_the_model_output(name, wanted):
    assert [o.name for o in imported(name)[2].functions["main"].outputs] == wanted


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "resnet18"])
def test_weights_are_those_of_the_state_dict(name):
    model, _, module = imported(name)
    weights = module.functions["main"].weights
    tensors = dict(model.module.named_parameters()) | dict(model.module.named_buffers())
    assert {w.name for w in weights} <= tensors.keys()
    for weight in weights:
        assert weight.shape == tuple(tensors[weight.name].shape)
    missing = {n for n, _ in model.module.named_parameters()} - {w.name for w in weights}
    assert missing == set()


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "resnet18"])
def test_no_weight_is_written_into_the_ir(name):
    """But for buffers that no checkpoint holds, whose values are attributes of the module."""
    program, module = imported(name)[1:3]
    head, _, text = str(module).partition("func.func")
    assert "dense<" not in text
    assert "dense_resource" not in head + text
    known = set(re.findall(r"([\w.]+) = dense<", head))
    assert known.isdisjoint(program.state_dict)
    expected = {"bert": {"embeddings.position_ids", "embeddings.token_type_ids"}, "llama": {"model.rotary_emb.inv_freq"}}
    assert known == expected.get(name, set())
    assert "torch." not in text
