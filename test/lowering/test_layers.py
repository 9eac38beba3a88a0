"""Layers that are alike are lowered once; the module is that of lowering all of them: text, places, numbers of checks."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import relaxir
from relaxir import Builder, Module
from relaxir.building.value import Value
from relaxir.dialect.bindings import ir
from relaxir.lowering.cpu.pipeline import outlining_pipeline
from relaxir.lowering.layers import lower_layers as layers
from relaxir.lowering.layers.shorten import Shortened
from relaxir.lowering.lower import lower
from relaxir.lowering.relax_pipeline import default_pipeline
from relaxir.random_weights import random_raw_weights
from support import models
from support.cached_decoder import Decoder

LAYERS, SIZE = 20, 8
#: Of models whose layers have much to lower: so many that six are left out.
FEWER = 16


@dataclass
class Model:
    """A model of equal layers, and the places where one is not like the others."""

    rows: int | str = 4
    layers: int = LAYERS
    at: int = -1
    change: str = ""

    def module(self) -> Module:
        """Each operation at a line of its own."""
        b = Builder()
        with b.function("main"):
            x = b.input("x", (self.rows, SIZE))
            made = [x]
            for i in range(self.layers):
                made.append(self.layer(b, made, i))
            if self.change == "all read":
                made.append(b.concat(made[1:], axis=1))
            if self.change == "returned":
                b.output(*made[1:])
            else:
                b.output(b.relu(b.matmul(made[-1], self.weight(b, "head", made[-1].shape[-1]))))
        return Module.parse(str(b.build()))

    def weight(self, b: Builder, name: str, rows: object = SIZE) -> Value:
        assert isinstance(rows, int)
        return b.weight(name, (rows, SIZE))

    def layer(self, b: Builder, made: list[Value], i: int) -> Value:
        x, odd = made[-1], i == self.at
        name = {"all shared": "all", "shared": "3" if odd else str(i)}.get(self.change, str(i))
        if self.change == "indices":
            x = b.take(x, b.weight(f"{i}.indices", (4,), "i64"), axis=0)
        joint = self.change == "one shared"
        inner = b.matmul(b.rms_norm(x, b.weight(f"{name}.norm", (SIZE,))), self.weight(b, "up" if joint else f"{name}.up"))
        act = b.gelu if (self.change == "kinds" and i % 2) or (self.change == "odd" and odd) else b.silu
        grown = b.matmul(act(inner), self.weight(b, f"{name}.down"))
        behind = made[-2] if self.change == "two back" and len(made) > 1 else x
        if self.change == "first read" and odd:
            behind = made[1]
        return behind + grown


CASES: dict[str, tuple[Model, bool]] = {
    "plain": (Model(), True),
    "symbolic": (Model(rows="n"), True),
    "few": (Model(layers=6), False),
    "two kinds": (Model(change="kinds", layers=2 * LAYERS), True),
    "one in the middle": (Model(change="odd", at=9), True),
    "one at the end": (Model(change="odd", at=LAYERS - 1), True),
    "the first": (Model(change="odd", at=0), True),
    "one has the weights of another": (Model(change="shared", at=12), False),
    "a weight for all": (Model(change="one shared"), True),
    "all weights for all": (Model(change="all shared"), False),
    "read two layers on": (Model(change="two back"), True),
    "one reads the first": (Model(change="first read", at=12), True),
    "all read at the end": (Model(change="all read"), False),
    "all returned": (Model(change="returned"), True),
    "checks of their own": (Model(change="indices"), False),
}


def lowered(module: Module, pipeline: str, run: Callable[[ir.Operation, str], None]) -> str:
    """The text of a module of kernels, with places."""
    before, outlining, _ = outlining_pipeline()
    operation = module.run(pipeline).ir.operation
    lower(operation, f"relax-set-target{{target=cpu}},{before}")
    run(operation, outlining)
    operation.verify()
    return operation.get_asm(enable_debug_info=True)


@pytest.fixture
def taken_out(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many layers were not lowered, of each function that had them put back."""
    found: list[int] = []
    lengthen = layers.lengthen

    def noting(function: object, shortened: Shortened) -> bool:
        fits = lengthen(function, shortened)  # pyright: ignore[reportArgumentType]
        found.append(shortened.removed if fits else -1)
        return fits

    monkeypatch.setattr(layers, "lengthen", noting)
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_module_is_that_of_all_layers(name: str, taken_out: list[int]) -> None:
    model, are_lowered_once = CASES[name]
    module, pipeline = model.module(), default_pipeline()
    assert lowered(module, pipeline, layers.lower_layers) == lowered(module, pipeline, lower)
    assert bool(taken_out) == are_lowered_once
    assert -1 not in taken_out


@pytest.mark.parametrize("weights", [None, "int8", "int4", "bf16"])
def test_entries_with_state(weights: str | None, taken_out: list[int]) -> None:
    """Any number of tokens, and one; caches of each layer are read, written and returned."""
    module, pipeline = Module.parse(str(Decoder(layers=FEWER).module())), default_pipeline(weights)
    assert lowered(module, pipeline, layers.lower_layers) == lowered(module, pipeline, lower)
    assert len(taken_out) == 2
    assert min(taken_out) > 0


@pytest.mark.parametrize("seed", range(12))
def test_random_layers(seed: int) -> None:
    """Of one kind, of two, with one that is another in a random place."""
    chance = random.Random(seed)
    changes = ["", "odd", "shared", "kinds", "two back", "first read", "one shared", "indices", "returned"]
    rows = chance.choice([1, 4, "n"])
    model = Model(rows, chance.randrange(14, 36), chance.randrange(4, 14), chance.choice(changes))
    if model.change == "indices":
        model.rows = 4
    module, pipeline = model.module(), default_pipeline(chance.choice([None, "int8", "bf16"]))
    assert lowered(module, pipeline, layers.lower_layers) == lowered(module, pipeline, lower)


def test_where_layers_do_not_fit_all_are_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    module, pipeline, asked = Model().module(), default_pipeline(), []

    def never(function: object, shortened: Shortened) -> bool:
        asked.append(shortened.removed)
        return False

    monkeypatch.setattr(layers, "lengthen", never)
    assert lowered(module, pipeline, layers.lower_layers) == lowered(module, pipeline, lower)
    assert asked


def test_numbers(taken_out: list[int]) -> None:
    """Every layer computes with its own weights."""
    module = Model(rows="n", change="returned").module()
    exe = relaxir.compile(module, cache=False)
    assert taken_out
    weights = random_raw_weights(exe.manifest)
    exe.bind(exe.prepare(weights))
    x = np.random.default_rng(0).standard_normal((3, SIZE), np.float32)
    for got, want in zip(exe(x), relaxir.evaluate(module, "main", x, weights=weights), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def exported(name: str) -> Module:
    """A model of transformers with random weights, many narrow layers."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    narrow = {
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": FEWER,
        "num_attention_heads": 4,
    }
    configs = {
        "Qwen3ForCausalLM": transformers.Qwen3Config(**narrow, num_key_value_heads=2, head_dim=8, use_cache=False),
        "GPT2LMHeadModel": transformers.GPT2Config(vocab_size=64, n_embd=32, n_layer=FEWER, n_head=4, use_cache=False),
        "BertModel": transformers.BertConfig(**narrow),
        "MixtralForCausalLM": transformers.MixtralConfig(**narrow, num_key_value_heads=2, num_local_experts=4, use_cache=False),
    }
    model = getattr(transformers, name)(configs[name]).eval()
    with torch.no_grad(), models.quiet():
        return relaxir.from_torch(torch.export.export(model, (), {"input_ids": torch.zeros(1, 9, dtype=torch.int64)}))


@pytest.mark.parametrize(
    ("name", "weights", "tried"),
    [
        ("Qwen3ForCausalLM", None, [11]),
        ("GPT2LMHeadModel", "int4", [11]),
        ("BertModel", "bf16", [11]),
        ("MixtralForCausalLM", None, [-1, 9]),  # experts are chosen by indices that need no check
    ],
)
def test_models_of_transformers(name: str, weights: str | None, tried: list[int], taken_out: list[int]) -> None:
    module, pipeline = exported(name), default_pipeline(weights)
    assert lowered(module, pipeline, layers.lower_layers) == lowered(module, pipeline, lower)
    assert taken_out == tried
