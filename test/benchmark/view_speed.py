"""How fast the page of ``relaxir view`` is: a Llama of 80 layers whose heads are written out, in headless Chromium.

``python test/benchmark/view_speed.py --chromium PATH [--layers 80] [--rounds 5] [--picture view.png]`` writes the page, opens
it as a file, and prints its size, when it is painted first after navigation begins, and how long it takes from opening a closed
group until the frame behind the one that paints it begins: a layer, and the largest part of it. Medians, least and most of
rounds, a browser for each. It needs the package playwright (``pip install playwright``), whose protocol it speaks with any
Chromium; npm's ``@sparticuz/chromium`` has one.

On 2026-11-23, 21,297 nodes, Chromium 147, two cores with ten other processes on them: 198,930 bytes, first paint 241 ms, a
layer 144 ms, its attention 110 ms; without frames, layout and painting took 36 and 25 ms.
"""
# ruff: noqa: E402  the path is extended before what is on it is imported

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from relaxir.building.builder import Builder
from relaxir.building.value import Value
from relaxir.inspection.data import graph_data
from relaxir.inspection.graph import graphs_of
from relaxir.inspection.html import html_page
from relaxir.module import Module
from relaxir.tools.llama import LlamaConfig, LlamaLayers

#: What the page is to keep to (issue 17).
LIMITS = {"bytes": 1e6, "first paint": 0.8, "layer": 0.1, "part of a layer": 0.1}
#: With a GPU in software (SwiftShader) instead of none, two seconds had one frame; without, 60 a second (Chromium 147).
_FLAGS = ["--no-sandbox", "--single-process", "--no-zygote", "--disable-gpu"]
#: Seconds between looks at the page, and until it is given up.
_LOOK, _PATIENCE = 0.02, 60.0

# From opening a group until the frame after the one that paints it begins.
_OPEN = """path => {
  const pane = page.panes[0], group = pane.model.groups.find(g => g.path === path && !g.section);
  pane.reveal(group);
  page.opened = null;
  page.began = performance.now();
  page.onPaint = () => requestAnimationFrame(() => { page.opened ??= performance.now() - page.began; });
  pane.toggleInPlace(group);
}"""


class _WrittenOut(LlamaLayers):
    """Attention head by head, from products and a softmax."""

    def attention(self, x: Value, name: str, angles: tuple[Value, Value]) -> Value:
        b, c = self.b, self.config
        joint = self.linear(x, *(self.weight(f"{name}.{p}_proj.weight") for p in "qkv"))
        mixed: list[Value] = []
        for head in range(c.heads):
            starts = (head * c.head_size, c.hidden + head * c.head_size, c.hidden + c.kv_size + head * c.head_size)
            query, key, value = (self._columns(joint, begin) for begin in starts)
            query, key = self.rotate(query, angles), self.rotate(key, angles)
            scores = b.matmul(query * float(c.head_size**-0.5), b.permute_dims(key, axes=[1, 0]))
            mixed.append(b.matmul(b.softmax(scores, axis=-1), value))
        return self.linear(b.concat(mixed, axis=1), self.weight(f"{name}.o_proj.weight"))

    def _columns(self, joint: Value, begin: int) -> Value:
        return self.b.strided_slice(joint, axes=[1], begin=[begin], end=[begin + self.config.head_size])


def unrolled_llama(layers: int) -> Module:
    """About 250 ops a layer; small sizes, as only the graph counts."""
    builder = Builder()
    with builder.function("main"):
        tokens = builder.input("tokens", ("n",), "i64")
        config = LlamaConfig(vocab=256, hidden=144, layers=layers, heads=9, kv_heads=9, ffn=256)
        builder.output(logits=_WrittenOut(builder, config).logits(tokens))
    return builder.build()


def main() -> None:
    """Prints a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chromium", required=True, help="the program")
    parser.add_argument("--layers", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--picture", help="where to write what is seen at the end, as .png")
    options = parser.parse_args()
    graphs = graphs_of(unrolled_llama(options.layers))
    page = html_page(graph_data("llama", graphs))
    found = defaultdict[str, list[float]](list)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "view.html"
        path.write_text(page)
        for _ in range(options.rounds):
            for name, seconds in _measured(path, options.chromium, options.layers // 2, options.picture).items():
                found[name].append(seconds)
    print(f"{options.layers} layers, {sum(len(g.nodes) for g in graphs)} nodes")
    print(f"{'bytes':16} {len(page.encode()):>10} (limit {LIMITS['bytes']:.0f})")
    for name, seconds in found.items():
        low, middle, high = (1e3 * f(seconds) for f in (min, statistics.median, max))
        print(f"{name:16} {middle:7.0f} ms, {low:.0f} to {high:.0f} (limit {1e3 * LIMITS[name]:.0f})")


def _measured(path: Path, chromium: str, layer: int, picture: str | None) -> dict[str, float]:
    """Seconds by what they are of, in a browser of their own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        view = browser.new_page(viewport={"width": 1280, "height": 800})
        view.goto(path.as_uri())
        found = {"first paint": _when(view, "window.page?.painted") / 1e3}
        groups = {"layer": f"model.layers.{layer}", "part of a layer": f"model.layers.{layer}.self_attn"}
        for name, group in groups.items():
            view.evaluate(_OPEN, group)
            found[name] = _when(view, "page.opened") / 1e3
        if picture is not None:
            view.screenshot(path=picture)
        browser.close()
    return found


def _when(view: Any, expression: str) -> float:
    """The number that an expression has as soon as it has one; the page's policy forbids waiting in it."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        value = view.evaluate(expression)
        if value is not None:
            return float(value)
        time.sleep(_LOOK)
    raise SystemExit(f"expected a number for {expression} in {_PATIENCE:g} s, got none")


if __name__ == "__main__":
    main()
