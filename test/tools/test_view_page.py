"""The page of ``relaxir view`` as a user works with it, in headless Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import relaxir as rx
from relaxir.tools import cli
from relaxir.tools.llama import LlamaConfig, build_llama
from support.browser import Browser

SHOWN = "page.panes.map(p => p.model.fn.name)"
#: The middle of a group or an op in the first pane, in the window.
PLACE = """(item => {
  const pane = page.panes[0];
  pane.ready();
  const [x, y] = pane.centre(item), box = pane.canvas.getBoundingClientRect();
  return [box.x + pane.x + x * pane.zoom, box.y + pane.y + (y - item.h / 2 + 10) * pane.zoom];
})"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pages of a small Llama: of an artifact, and of passes."""
    folder = tmp_path_factory.mktemp("pages")
    module = build_llama(LlamaConfig(vocab=320, hidden=48, layers=2, heads=6, kv_heads=2, ffn=80))
    model, artifact = folder / "llama.mlir", folder / "llama.relax"
    module.save(model)
    rx.compile(module).save(artifact)
    pipeline = ["--pipeline", "relax-lift-transform-params"]
    assert cli.run(["view", str(artifact), "-o", str(folder / "artifact.html")]) == 0
    assert cli.run(["view", str(model), *pipeline, "-o", str(folder / "passes.html")]) == 0
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


def shown(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.until("window.page?.painted")


@pytest.fixture
def artifact(pages: Path, chromium: Browser) -> Iterator[Browser]:
    shown(chromium, pages / "artifact.html")
    yield chromium
    assert chromium.messages == []


def group(path: str) -> str:
    return f"page.panes[0].model.groups.find(g => g.path === '{path}' && !g.section)"


def search(page: Browser, text: str) -> None:
    """Types, and waits for what was found: keys and clicks take their own way into the page."""
    page.click("#search")
    page.until("document.activeElement.id === 'search'")
    page.type(text)
    page.until(f"document.getElementById('search').value === '{text}'")


def shows(page: Browser, selector: str, *texts: str) -> None:
    for text in texts:
        page.until(f"document.querySelector('{selector}').innerText.includes('{text}')")


def test_what_prepares_the_weights_is_beside_what_reads_them(artifact: Browser):
    assert artifact.evaluate(SHOWN) == ["main", "main_transform_params"]
    search(artifact, "down_proj")
    artifact.press("Return")
    shows(artifact, "#panel", "weight", "prepared by", "raw weights")
    sources = (
        "[...document.querySelectorAll('#panel dt')].find(t => t.innerText === 'raw weights').nextElementSibling.innerText"
    )
    assert artifact.evaluate(sources) == "model.layers.0.mlp.down_proj.weight"


def test_search(artifact: Browser):
    search(artifact, "^rms_norm$")
    shows(artifact, "#count", "5 found")
    artifact.press("Return")
    shows(artifact, "#count", "1 of 5 found")
    shows(artifact, "#panel", "rms_norm")


def test_groups_open_by_mouse_keys_and_buttons(artifact: Browser):
    artifact.click("#expand")
    artifact.until("page.active.model.groups.every(g => g.open)")
    artifact.click("#collapse")
    artifact.until("page.active.model.groups.every(g => !g.open || !g.parent)")
    artifact.click("#fit")
    artifact.until("page.active.fitted && !page.active.pending")
    model = group("model")
    artifact.click(tuple(artifact.evaluate(f"{PLACE}({model})")), double=True)
    artifact.until(f"{model}.open")
    artifact.press("Return")
    artifact.until(f"!{model}.open")


def test_ops_of_a_kernel_are_a_group(artifact: Browser):
    found = "page.panes[0].model.groups.find(g => g.kernel && g.parent.path === 'model.layers.{}.mlp')"
    kernel = found.format(0)
    for layer in (0, 1):  # the code of both is one kernel
        ops = "items.map(i => page.panes[0].model.fn.ops[page.panes[0].model.fn.nodes[i.op][0]])"
        assert artifact.evaluate(f"{found.format(layer)}.{ops}") == ["silu", "multiply"]
        assert artifact.evaluate(f"{found.format(layer)}.name === {kernel}.name")
    artifact.evaluate(f"page.panes[0].reveal({kernel})")
    artifact.until("!page.panes[0].pending")
    told = artifact.evaluate("document.getElementById('panel').innerText.split(/\\n+/)")
    assert re.match(r"\w+, elementwise of silu, multiply, ", told[1])
    assert told[2:4] == ["module", "model.layers.0.mlp"]
    artifact.click(tuple(artifact.evaluate(f"{PLACE}({kernel})")), double=True)
    artifact.until(f"{kernel}.open")
    first = f"{kernel}.items[0]"
    artifact.click(tuple(artifact.evaluate(f"{PLACE}({first})")))
    artifact.until(f"page.panes[0].selected === {first}")
    shows(artifact, "#panel", "silu")


def test_the_wheel_moves_and_zooms_and_hovering_tells(artifact: Browser):
    y, zoom = artifact.evaluate("[page.panes[0].y, page.panes[0].zoom]")
    artifact.scroll("canvas", 100)
    artifact.until(f"page.panes[0].y < {y}")
    assert artifact.evaluate("page.panes[0].zoom") == zoom
    artifact.scroll("canvas", 100, zoom=True)
    artifact.until(f"page.panes[0].zoom < {zoom}")
    artifact.evaluate("page.panes[0].fit()")
    artifact.until("!page.panes[0].pending")
    artifact.move(tuple(artifact.evaluate(f"{PLACE}(page.panes[0].model.root.items[0])")))
    artifact.until("!document.getElementById('tip').hidden")


def test_before_and_after(pages: Path, chromium: Browser):
    shown(chromium, pages / "passes.html")
    assert chromium.evaluate("page.panes.map(p => p.model.fn.side)") == ["before ", "after "]
    assert chromium.evaluate("page.panes.map(p => p.model.root.changed > 0)") == [True, True]
    assert chromium.messages == []
