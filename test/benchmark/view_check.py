"""The page of ``relaxir view`` as a user works with it, in headless Chromium.

``python test/benchmark/view_check.py --chromium PATH`` opens a small Llama beside what prepares its weights, and before and
after lifting, searches, opens, follows a weight to its sources, and ends with exit code 1 where something else happens than
should, or the page logs an error. ``--pictures FOLDER`` keeps what is seen. Chromium comes as ``view_speed.py`` says;
``make test`` asks for none, and tests the page's data instead.
"""
# ruff: noqa: E402  the path is extended before what is on it is imported

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from relaxir.inspection.data import compared, graph_data
from relaxir.inspection.graph import graphs_of
from relaxir.inspection.html import html_page
from relaxir.tools.llama import LlamaConfig, build_llama

_FLAGS = ["--no-sandbox", "--single-process", "--no-zygote", "--disable-gpu"]
_LIFT = "relax-lift-transform-params"
#: Seconds until something has to be there.
_PATIENCE = 30.0


def main() -> int:
    """Prints a line for each check; the exit code is 1 when one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chromium", required=True, help="the program")
    parser.add_argument("--pictures", help="a folder for screenshots")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    module = build_llama(LlamaConfig(vocab=320, hidden=48, layers=2, heads=6, kv_heads=2, ffn=80))
    lifted = module.run(_LIFT)
    pages = {
        "beside": graph_data("llama", graphs_of(lifted)),
        "compared": compared("llama", graphs_of(module), graphs_of(lifted)),
    }
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        checks = list[tuple[str, object, object]]()
        for name, data in pages.items():
            browser = playwright.chromium.launch(executable_path=options.chromium, args=_FLAGS)
            checks += _checked(browser, Path(folder), name, html_page(data), options.pictures)
            browser.close()
    for name, found, wanted in checks:
        print(
            f"{'ok    ' if found == wanted else 'FAILED'} {name}"
            + ("" if found == wanted else f": expected {wanted}, got {found}")
        )
    return int(any(found != wanted for _, found, wanted in checks))


def _checked(browser: Any, folder: Path, name: str, page: str, pictures: str | None) -> list[tuple[str, object, object]]:
    """What was found and what is wanted, of one page."""
    path = folder / f"{name}.html"
    path.write_text(page)
    view, told = browser.new_page(viewport={"width": 1400, "height": 850}), list[str]()
    view.on("console", lambda message: told.append(message.text))
    view.on("pageerror", lambda error: told.append(str(error)))
    view.on("request", lambda request: told.append(request.url) if not request.url.startswith("file:") else None)
    view.goto(path.as_uri())
    _wait(view, "window.page?.painted")
    found = _beside(view) if name == "beside" else _compared(view)
    if pictures is not None:
        view.screenshot(path=str(Path(pictures) / f"{name}.png"))
    return [(f"{name}: {what}", got, wanted) for what, got, wanted in (*found, ("errors and requests", told, []))]


def _beside(view: Any) -> list[tuple[str, object, object]]:
    found: list[tuple[str, object, object]] = [
        ("functions in panes", view.evaluate("page.panes.map(p => p.model.fn.name)"), ["main", "main_transform_params"]),
    ]
    view.fill("#search", "^rms_norm$")
    found.append(("search", view.inner_text("#count"), "5 found"))
    view.press("#search", "Enter")
    found.append(("the first hit is shown", view.inner_text("#count"), "1 of 5 found"))
    found.append(("its op in the panel", "rms_norm" in view.inner_text("#panel"), True))
    view.fill("#search", "down_proj")
    view.press("#search", "Enter")
    text = view.inner_text("#panel")
    found.append(("a weight and what prepares it", all(t in text for t in ("weight", "prepared by", "raw weights")), True))
    view.click("#expand")
    found.append(("all groups open", view.evaluate("page.active.model.groups.every(g => g.open)"), True))
    view.click("#collapse")
    found.append(("all groups closed", view.evaluate("page.active.model.groups.every(g => !g.open || !g.parent)"), True))
    _by_mouse(view, found)
    return found


def _by_mouse(view: Any, found: list[tuple[str, object, object]]) -> None:
    """A double click opens the group below it."""
    view.click("#fit")
    place = view.evaluate(
        """() => {
          const pane = page.panes[0], group = pane.model.groups.find(g => g.path === "model");
          pane.ready();
          const [x, y] = pane.centre(group), box = pane.canvas.getBoundingClientRect();
          return [box.x + pane.x + x * pane.zoom, box.y + pane.y + y * pane.zoom];
        }"""
    )
    view.mouse.dblclick(*place)
    opened = "page.panes[0].model.groups.find(g => g.path === 'model').open"
    found.append(("a double click opens", view.evaluate(opened), True))


def _compared(view: Any) -> list[tuple[str, object, object]]:
    changed = view.evaluate("page.panes.map(p => p.model.root.changed > 0)")
    return [
        ("before and after", view.evaluate("page.panes.map(p => p.model.fn.side)"), ["before ", "after "]),
        ("something changed on both sides", changed, [True, True]),
    ]


def _wait(view: Any, expression: str) -> None:
    end = time.monotonic() + _PATIENCE
    while view.evaluate(expression) is None:
        if time.monotonic() > end:
            raise SystemExit(f"expected {expression} in {_PATIENCE:g} s, got nothing")
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
