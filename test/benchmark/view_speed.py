"""How fast the page of ``relaxir view`` is: a Llama of 80 layers whose heads are written out, in headless Chromium.

``python test/benchmark/view_speed.py [--layers 80] [--rounds 5] [--picture view.png]`` writes the page, opens it as a file, and
prints its size, when it is painted first after navigation begins, and how long it takes from opening a closed group until the
frame behind the one that paints it begins: a layer, and the largest part of it. What is "computed" is the page's own code,
layout and painting, which other processes disturb less: of these, of opening all groups, and of a frame while they are moved.
Medians, least and most of rounds. The browser is that of the tests (:mod:`support.browser`).

On 2026-11-24, 21,297 nodes, Chromium 140, two cores with seven other processes on them: 212,926 bytes, first paint 137 ms, a
layer 49 ms, its attention 49 ms, of which 8 ms each are computed; all groups 259 ms, a frame of all of them 9 ms, at full size
0.3 ms.
"""
# ruff: noqa: E402  the path is extended before what is on it is imported

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from relaxir.building.builder import Builder
from relaxir.building.value import Value
from relaxir.inspection.data import graph_data
from relaxir.inspection.graph import graphs_of
from relaxir.inspection.html import html_page
from relaxir.module import Module
from relaxir.tools.llama import LlamaConfig, LlamaLayers
from support.browser import Browser

#: What the page is to keep to (issue 17).
LIMITS = {"bytes": 1e6, "first paint": 0.8, "layer": 0.1, "part of a layer": 0.1}

# From opening a group until the frame after the one that paints it begins; and what of it is the page's own code.
_OPEN = """(path => {
  const pane = page.panes[0], group = pane.model.groups.find(g => g.path === path && !g.section), paint = pane.paint;
  pane.reveal(group);
  page.opened = null;
  page.began = performance.now();
  pane.paint = () => { const at = performance.now(); paint.call(pane); page.computed += performance.now() - at; };
  page.onPaint = () => requestAnimationFrame(() => { page.opened ??= [performance.now() - page.began, page.computed]; });
  pane.toggleInPlace(group);
  page.computed = performance.now() - page.began;
})"""

# All groups open, laid out and painted; and a frame while that is moved, as far as it fits and at full size.
_ALL = """(() => {
  const pane = page.panes[0], clock = run => { const at = performance.now(); run(); return performance.now() - at; };
  const opened = clock(() => { pane.toggleAll(true); pane.paint(); });
  const moved = () => { let k = 0; return clock(() => { for (; k < 10; k++) { pane.y -= 20; pane.paint(); } }) / k; };
  const whole = moved();
  pane.zoom = 1;
  return [opened, whole, moved()];
})()"""


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
            for name, seconds in _measured(path, options.layers // 2, options.picture).items():
                found[name].append(seconds)
    print(f"{options.layers} layers, {sum(len(g.nodes) for g in graphs)} nodes")
    print(f"{'bytes':30} {len(page.encode()):>10} (limit {LIMITS['bytes']:.0f})")
    for name, seconds in found.items():
        low, middle, high = (1e3 * f(seconds) for f in (min, statistics.median, max))
        limit = f" (limit {1e3 * LIMITS[name]:.0f})" if name in LIMITS else ""
        print(f"{name:30} {middle:7.1f} ms, {low:.1f} to {high:.1f}{limit}")


def _measured(path: Path, layer: int, picture: str | None) -> dict[str, float]:
    """Seconds by what they are of, in a browser of their own."""
    with Browser() as browser:
        browser.open(path)
        found = {"first paint": browser.until("window.page?.painted") / 1e3}
        groups = {"layer": f"model.layers.{layer}", "part of a layer": f"model.layers.{layer}.self_attn"}
        for name, group in groups.items():
            browser.until("!page.panes[0].pending")
            browser.evaluate(f"{_OPEN}('{group}')")
            whole, computed = browser.until("page.opened")
            found |= {name: whole / 1e3, f"{name}, computed": computed / 1e3}
        names = ("all groups open, computed", "a frame of all, computed", "a frame at full size, computed")
        found |= {name: ms / 1e3 for name, ms in zip(names, browser.evaluate(_ALL), strict=True)}
        if picture is not None:
            browser.picture(Path(picture))
    return found


if __name__ == "__main__":
    main()
