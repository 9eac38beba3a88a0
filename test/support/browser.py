"""A page in headless Chromium, as a user has it: what is typed, clicked and seen. The browser is a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["Browser"]

#: Seconds until something has to be there: a machine that others use, too, is slow at times.
_PATIENCE = 60.0


class Browser:
    """A context; every method waits until it is done."""

    def __init__(self, width: int = 1280, height: int = 800):
        self._size = width, height

    def __enter__(self) -> Browser:
        program = Path(__file__).with_name("browser_process.py")
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([sys.executable, program], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None) -> None:
        self._process.communicate()

    def open(self, path: Path) -> None:
        """Opens a file, until it is loaded."""
        self._do("open", str(path), *self._size)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, as JSON has it."""
        return self._do("evaluate", expression)

    def until(self, expression: str) -> Any:
        """The value of an expression as soon as it is neither false nor nothing."""
        found = self._do("until", expression, _PATIENCE)
        assert found is not None, f"expected {expression} in {_PATIENCE:g} s, got {self.messages}"
        return found

    def click(self, place: str | tuple[float, float], double: bool = False) -> None:
        """Clicks a place of the window, or the middle of what a selector of CSS finds."""
        self._do("click", *self._place(place), double)

    def move(self, place: tuple[float, float]) -> None:
        """Moves the pointer."""
        self._do("move", *place)

    def scroll(self, place: str | tuple[float, float], down: int, zoom: bool = False) -> None:
        """Turns the wheel by pixels; with ``zoom`` while Ctrl is held."""
        self._do("scroll", *self._place(place), down, zoom)

    def type(self, text: str) -> None:
        """Types where the focus is."""
        self._do("type", text)

    def press(self, key: str) -> None:
        """Presses a key by Qt's name for it, such as ``Return``."""
        self._do("press", key)

    def picture(self, path: Path) -> None:
        """Writes what is seen, as the file's name says (.png)."""
        self._do("picture", str(path))

    @property
    def messages(self) -> list[str]:
        """What the page said on its console, and the addresses that it asked for besides files."""
        return self._do("messages")

    def _place(self, place: str | tuple[float, float]) -> tuple[float, float]:
        if not isinstance(place, str):
            return place
        box = f"document.querySelector({json.dumps(place)}).getBoundingClientRect()"
        x, y = self.evaluate(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({box})")
        return x, y

    def _do(self, name: str, *arguments: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the browser ended: {self._process.stderr.read()[-4000:]}"
        return json.loads(line)
