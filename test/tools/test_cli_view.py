"""``relaxir view``: what is in the page's data, the other formats, and each mistake."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import relaxir as rx
from relaxir.tools import cli

MODEL = """
func.func @main(%x: tensor<2x4xf32> {relax.name = "x"}, %w: tensor<3x4xf32> {relax.name = "layers.0.fc.weight"})
    -> (tensor<2x3xf32> {relax.name = "y"}) attributes {relax.num_input = 1 : i64} {
  %t = "relax.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %m = "relax.matmul"(%x, %t) : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %y = "relax.exp"(%m) : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("act </script>")
  return %y : tensor<2x3xf32>
}
"""
LIFT = ("--pipeline", "relax-lift-transform-params")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.mlir").write_text(MODEL)
    return tmp_path


def graph_of(page: Path) -> dict[str, Any]:
    """The data that the page's script reads."""
    found = re.search(r'id="graph">([^<]*)<', page.read_text())
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def nodes(function: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Op, module, type and label of each node."""
    tables = [function[name] for name in ("ops", "paths", "types")]
    return [(*(table[i] for table, i in zip(tables, n, strict=False)), n[5]) for n in function["nodes"]]


def test_a_page_fetches_nothing_and_has_the_graph(model: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.run(["view", "model.mlir", "-o", "view.html"]) == 0
    assert capsys.readouterr().out == "wrote view.html: @main 6 nodes\n"
    text = (model / "view.html").read_text()
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|src=", text)
    (main,) = graph_of(model / "view.html")["functions"]
    assert nodes(main) == [
        ("input", "", "f32[2, 4]", "x"),
        ("weight", "layers.0.fc", "f32[3, 4]", "layers.0.fc.weight"),
        ("permute_dims", "layers.0.fc", "f32[4, 3]", ""),
        ("matmul", "layers.0.fc", "f32[2, 3]", ""),
        ("exp", "act </script>", "f32[2, 3]", ""),
        ("result", "", "f32[2, 3]", "y"),
    ]
    assert main["edges"] == [2, 1, 3, 3, 3, 1, 4, 1, 5, 1]
    assert [n[4] for n in main["nodes"]] == [0, 0, 0, 2 * 2 * 4 * 3, 6, 0]
    assert main["nodes"][1][3] == 3 * 4 * 4


def test_before_and_after_passes(model: Path):
    assert cli.run(["view", "model.mlir", *LIFT, "-o", "view.html"]) == 0
    graph = graph_of(model / "view.html")
    states = {
        f"{f['side']}{f['name']}": [(op, n[9]) for n, (op, *_) in zip(f["nodes"], nodes(f), strict=True)]
        for f in graph["functions"]
    }
    assert states["before main"] == [
        ("input", 0), ("weight", 3), ("permute_dims", 3), ("matmul", 3), ("exp", 0), ("result", 0),
    ]  # fmt: skip
    assert states["after main"] == [("input", 0), ("weight", 2), ("matmul", 2), ("exp", 0), ("result", 0)]
    assert {state for _, state in states["after main_transform_params"]} == {2}
    assert [graph["functions"][i]["side"] for i in graph["shown"]] == ["before ", "after "]


def test_prepared_weights_lead_to_what_makes_them(model: Path):
    from relaxir import Module

    Module.load("model.mlir").run(LIFT[1]).save("lifted.mlir")
    assert cli.run(["view", "lifted.mlir", "--format", "json", "-o", "view.json"]) == 0
    graph = json.loads((model / "view.json").read_text())
    functions = {f["name"]: f for f in graph["functions"]}
    main, transform = functions["main"], functions["main_transform_params"]
    (link,) = [n[8] for n in main["nodes"] if n[8] >= 0]
    assert nodes(transform)[link] == ("result", "layers.0.fc", "f32[4, 3]", "layers.0.fc.weight.permute_dims")
    assert graph["functions"][main["linked"]] is transform
    assert [graph["functions"][i]["name"] for i in graph["shown"]] == ["main", "main_transform_params"]


def test_dot(model: Path):
    assert cli.run(["view", "model.mlir", "--format", "dot", "-o", "view.dot"]) == 0
    text = (model / "view.dot").read_text()
    assert text.count("{") == text.count("}")
    assert 'subgraph "cluster_f0_layers.0" { label="0"' in text
    assert "f0_2 -> f0_3" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.mlir"] * 3, "expected one module, or two to compare, got 3"),
        (["model.mlir", "model.mlir", *LIFT], "expected one module with --pipeline, got 2"),
        (["model.mlir", "model.mlir", "--format", "dot"], "expected one module with --format dot, got 2"),
    ],
)
def test_mistakes(model: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str):
    assert cli.run(["view", *arguments, "-o", "out"]) == 1
    assert capsys.readouterr().err == f"error: {message}\n"
    assert not (model / "out").exists()


def test_elements_of_other_dialects(model: Path):
    """Of no number, or of none of ours."""
    (model / "other.mlir").write_text("""
      func.func @a(%x: tensor<2xindex>, %y: tensor<2xcomplex<f32>>, %v: tensor<3xvector<4xf32>>, %o: tensor<2x!relax.object>,
          %q: tensor<2x!quant.uniform<i8:f32, 1.0>>) -> tensor<2xindex> {
        return %x : tensor<2xindex>
      }""")
    for form in ("html", "svg", "dot", "json"):
        assert cli.run(["view", "other.mlir", "--format", form, "-o", "view"]) == 0
    assert cli.run(["info", "other.mlir"]) == 0


def test_a_picture_is_xml_whatever_names_are(model: Path):
    text = 'func.func @"\\01<&>"(%x: tensor<2xf32> {relax.name = "\\1B\\t\\0B"}) -> tensor<2xf32> { return %x : tensor<2xf32> }'
    (model / "odd.mlir").write_text(text)
    assert cli.run(["view", "odd.mlir", "--format", "svg", "-o", "view.svg"]) == 0
    assert ElementTree.parse(model / "view.svg").getroot().tag.endswith("svg")


def test_a_page_takes_no_models_place(model: Path, capsys: pytest.CaptureFixture[str]):
    before = (model / "model.mlir").read_text()
    for arguments in (
        ["model.mlir", "-o", "./model.mlir"],
        ["model.mlir", "model.mlir", "--format", "json", "-o", "model.mlir"],
    ):
        assert cli.run(["view", *arguments]) == 1
        assert "expected another place to write to than what is read, '" in capsys.readouterr().err
    assert (model / "model.mlir").read_text() == before


def test_what_is_prepared_of_several_weights_is_in_the_module_around_them(model: Path):
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", (2, 4))
        joint = b.concat([b.weight(f"layers.0.attn.{n}.weight", (3, 4)) for n in "qkv"], axis=0)
        y = b.matmul(x, b.permute_dims(joint, axes=[1, 0]))
        b.output(y=b.exp(b.strided_slice(y, axes=[1], begin=[0], end=[3])))
    b.build().save("joint.mlir")
    assert cli.run(["view", "joint.mlir", *LIFT, "-o", "view.html"]) == 0
    functions = graph_of(model / "view.html")["functions"]
    after = next(f for f in functions if (f["side"], f["name"]) == ("after ", "main"))
    assert {(op, path) for op, path, _, _ in nodes(after)} >= {("weight", "layers.0.attn"), ("matmul", "layers.0.attn")}
    changed = [after["ops"][n[0]] for n in after["nodes"] if n[9]]
    assert changed == ["weight", "matmul"]  # what follows is as it was


def test_ops_of_artifacts_tell_of_their_kernels(model: Path):
    rx.compile("model.mlir").save("model.relax")
    assert cli.run(["view", "model.relax", "-o", "view.html"]) == 0
    main = next(f for f in graph_of(model / "view.html")["functions"] if f["name"] == "main")
    notes = {main["ops"][n[0]]: main["notes"][n[6]] for n in main["nodes"]}
    kernel = next(line for line in notes["packed_matmul"].splitlines() if line.startswith("kernel: "))
    assert re.fullmatch(r"kernel: \w+, contraction of packed_matmul, exp, tile=.*", kernel)
    assert kernel in notes["exp"].splitlines()
