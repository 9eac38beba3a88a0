"""Graphs of models of which few layers were exported, and the others copied: they are those of all layers exported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import fx, nn
from torch.export import Dim, ExportedProgram

from relaxir.transformers import exporting, repeated_layers
from relaxir.transformers.decoder import decoder_programs
from relaxir.transformers.encoder import encoder_program
from relaxir.transformers.exporting import exported
from relaxir.transformers.repeated_layers import exported_by_layers
from relaxir.transformers.skeleton import skeleton
from support.hf_folders import SMALL

_COUNT = 8
_SLIDING, _FULL = "sliding_attention", "full_attention"


def test_decoders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of prompts of any length and of single tokens: weights, buffers that are written, modules of the nodes.

    Two kinds of layers in turn behind a first one, each with its own mask and frequencies.
    """
    kinds = [_FULL, *[_FULL, _SLIDING] * 5]
    options = {"num_hidden_layers": len(kinds), "layer_types": kinds, "num_key_value_heads": 2, "head_dim": 8}
    model = _model("Gemma3ForCausalLM", "gemma3_text", SMALL | options | {"sliding_window": 4})
    _expect_copies(lambda: decoder_programs(model, 2, 40, torch.float32), 2, monkeypatch)


@pytest.mark.parametrize(("name", "kind"), [("BertModel", "bert"), ("T5EncoderModel", "t5")])
def test_encoders(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two inputs with dimensions of the same sizes, with results other than the last layer's; a bias that the first layer
    computes for all."""
    t5 = {"vocab_size": 96, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_heads": 4, "num_layers": _COUNT + 1}
    model = _model(name, kind, t5 if kind == "t5" else SMALL | {"num_hidden_layers": _COUNT})
    names = ("input_ids", "attention_mask")
    _expect_copies(lambda: {"": encoder_program(model, names, 30, (8, 8))}, 1, monkeypatch)


def test_two_lists_of_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of texts and of images, neither of which sees the other."""
    half = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_hidden_layers": _COUNT}
    options = {
        "text_config": half | {"vocab_size": 96, "eos_token_id": 2},
        "vision_config": half | {"image_size": 16, "patch_size": 8},
    }
    model = _model("CLIPModel", "clip", options | {"projection_dim": 16})
    names = ("input_ids", "attention_mask", "pixel_values")
    _expect_copies(lambda: {"": encoder_program(model, names, 30, (16, 16))}, 2, monkeypatch)


def _model(name: str, kind: str, options: dict[str, Any]) -> Any:
    return skeleton(getattr(transformers, name), transformers.AutoConfig.for_model(kind, **options))


def _expect_copies(
    programs: Callable[[], dict[str, ExportedProgram]], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """So many lists of layers are copied, and the graphs are as without."""
    copied = list[Any]()
    with_copies = repeated_layers.with_copies
    with monkeypatch.context() as patch:
        patch.setattr(repeated_layers, "with_copies", lambda *args: copied.append(args) or with_copies(*args))
        found = programs()
    assert len(copied) == count
    with monkeypatch.context() as patch:
        patch.setattr(exporting, "exported_by_layers", lambda *_: None)
        wanted = programs()
    assert list(found) == list(wanted)
    for name, program in found.items():
        _expect_same(program, wanted[name])


def _expect_same(found: ExportedProgram, wanted: ExportedProgram) -> None:
    """Nodes, what they are of and what is known of their values, inputs, results, weights, sizes."""
    assert _nodes(found) == _nodes(wanted)
    inputs = [[(s.kind, s.target, s.persistent) for s in p.graph_signature.input_specs] for p in (found, wanted)]
    assert inputs[0] == inputs[1]
    for program in (found, wanted):
        results = [n.name for n in program.graph.output_node().args[0]]
        assert [s.arg.name for s in program.graph_signature.output_specs] == results
    assert list(found.state_dict) == list(wanted.state_dict)
    assert all(tensor is wanted.state_dict[name] for name, tensor in found.state_dict.items())
    assert found.constants.keys() == wanted.constants.keys()
    assert str(found.range_constraints) == str(wanted.range_constraints)


def _nodes(program: ExportedProgram) -> list[Any]:
    number = {node: i for i, node in enumerate(program.graph.nodes)}

    def shown(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [shown(v) for v in value]
        if isinstance(value, torch.Tensor):
            return str(value.dtype), str(tuple(value.shape))
        return f"%{number[value]}" if isinstance(value, fx.Node) else str(value)

    def modules(node: fx.Node) -> list[str]:
        return [name for name, _ in node.meta.get("nn_module_stack", {}).values()]

    def kind(node: fx.Node) -> str:
        return node.op if node.op == "placeholder" else str(node.target)

    return [
        (kind(n), shown(n.args), shown([*n.kwargs.items()]), shown(n.meta.get("val")), modules(n)) for n in program.graph.nodes
    ]


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.factor, self.limit, self.constant = 1.5, 100, None
        self.register_buffer("calls", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        if x.shape[0] > self.limit:
            x = x + 1
        if self.constant is not None:
            x = x * torch.tensor([self.constant])
        return self.linear(x) * self.factor + self.calls


class _Model(nn.Module):
    """Layers one behind another, and before and after them what models have there.

    Args:
        way: how the layers are called.
    """

    def __init__(self, way: str = "") -> None:
        super().__init__()
        self.layers = nn.ModuleList(_Layer() for _ in range(12))
        self.way = way

    def forward(self, x: torch.Tensor, *each: torch.Tensor) -> torch.Tensor:
        values = [x]
        shared = x.sin()
        for i, layer in enumerate(reversed(self.layers) if self.way == "reversed" else self.layers):
            value = layer(values[-1]) + shared
            if each:
                value = value + each[i]
            if self.way == "twice":
                value = layer(value)
            if self.way == "before the last" and i > 1:
                value = value + values[-2]
            if self.way == "number" and i == 7:
                value = value * 2
            values.append(value)
        if self.way == "sum":
            return torch.stack(values).sum(0)
        return (
            values[-1] - values[-2]
            if self.way == "last two"
            else values[-1] * len(self.layers)
            if self.way == "count"
            else values[-1]
        )


_EXAMPLE, _ROWS = (torch.zeros(3, 4),), ({0: Dim("n", min=2, max=50)},)


def _by_layers(model: nn.Module, example: tuple[Any, ...] = _EXAMPLE, dynamic: Any = _ROWS) -> ExportedProgram | None:
    def export() -> ExportedProgram:
        return torch.export.export(model, example, dynamic_shapes=dynamic)

    with torch.no_grad():
        return exported_by_layers(model.eval(), example, dynamic, export)


@pytest.mark.parametrize("way", ["", "last two"])
@pytest.mark.parametrize("each", [0, 12, 24])
def test_layers_that_are_copied(way: str, each: int) -> None:
    """State of layers, values in front of all, inputs by layer or two, results of two layers."""
    model = _Model(way).eval()
    if each == 24:
        model.layers = nn.ModuleList(nn.Sequential(_Layer(), nn.ReLU()) for _ in range(24))
    example = (*_EXAMPLE, *[torch.zeros(4)] * each)
    dynamic = (*_ROWS, *([(None,) * each] if each else []))
    found = _by_layers(model, example, dynamic)
    assert found is not None
    with torch.no_grad():
        _expect_same(found, torch.export.export(model, example, dynamic_shapes=dynamic))


@pytest.mark.parametrize("way", ["reversed", "twice", "before the last", "number", "sum", "count"])
def test_layers_that_are_called_otherwise(way: str) -> None:
    """Not one after another; with more than what the layer before gave; all of them, or how many there are, behind."""
    assert _by_layers(_Model(way)) is None


@pytest.mark.parametrize(
    ("name", "value"), [("factor", 2.5), ("constant", 4.0), ("limit", 20), ("linear", nn.Linear(4, 4, bias=False))]
)
def test_a_layer_that_is_another_one(name: str, value: Any) -> None:
    """By a number, a tensor that is none of its weights, what it does with other sizes only, what it has."""
    model = _Model()
    setattr(model.layers[8], name, value)
    found = _by_layers(model)
    assert found is None


def test_constants_of_layers() -> None:
    """Copies share those of the layer that they are of."""
    model = _Model()
    for layer in model.layers:
        layer.constant = 3.0
    program = _by_layers(model)
    assert program is not None
    x = torch.randn(5, 4)
    with torch.no_grad():
        found = program.module()(x)
        for layer in model.layers:
            layer.calls.zero_()
        torch.testing.assert_close(found, model(x))


def test_integers_and_numbers_are_told_apart() -> None:
    """2 and 2.0 are equal in Python, and not what a layer multiplies with."""
    model = _Model()
    for layer in model.layers:
        layer.factor = 2
    model.layers[8].factor = 2.0
    assert _by_layers(model) is None


@pytest.mark.parametrize("fault", ["number", "weights", "order"])
def test_copies_that_are_not_the_model_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of the graph says so."""
    with_copies = repeated_layers.with_copies

    def faulty(*args: Any) -> ExportedProgram:
        program = with_copies(*args)
        adds = [n for n in program.graph.nodes if str(n.target) == "aten.mul.Tensor"]
        linears = [n for n in program.graph.nodes if str(n.target) == "aten.linear.default"]
        if fault == "number":
            adds[9].args = (adds[9].args[0], 1.25)
        elif fault == "weights":
            linears[9].args = (linears[9].args[0], *linears[8].args[1:])
        else:
            linears[9].args = (linears[8].args[0], *linears[9].args[1:])
        program.graph_module.recompile()
        return program

    assert _by_layers(_Model()) is not None
    monkeypatch.setattr(repeated_layers, "with_copies", faulty)
    assert _by_layers(_Model()) is None


def test_without_layers_that_are_alike() -> None:
    """What is exported is the whole module, as before."""
    with torch.no_grad():
        program = exported(_Model("sum").eval(), _EXAMPLE, _ROWS)
    assert len(program.state_dict) == 12 * 3
