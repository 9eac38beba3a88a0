"""A headless Chromium that does what lines on its standard input say, and answers each with a line; see :mod:`support.browser`.

It is Qt's (PySide6-WebEngine), which comes from the package index as a whole: no other program, no display, no GPU.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

os.environ |= {
    "QT_QPA_PLATFORM": "offscreen",
    "QT_QUICK_BACKEND": "software",
    "QTWEBENGINE_DISABLE_SANDBOX": "1",  # Chromium's does not start for root, as whom CI runs; only our own pages are opened
    "QTWEBENGINE_CHROMIUM_FLAGS": "--disable-gpu",
}

from PySide6.QtCore import QEvent, QEventLoop, QPoint, QPointF, QSocketNotifier, Qt, QTimer, QUrl
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWebEngineCore import QWebEnginePage, QWebEngineUrlRequestInfo, QWebEngineUrlRequestInterceptor
from PySide6.QtWebEngineWidgets import QWebEngineView
from PySide6.QtWidgets import QApplication, QWidget

#: Milliseconds between looks at a page that something is awaited of.
_LOOK = 10


class _Page(QWebEnginePage):
    """Keeps what the page says on its console."""

    def __init__(self, told: list[str]):
        super().__init__()
        self._told = told

    def javaScriptConsoleMessage(self, level: Any, message: str, line: int, source: str) -> None:  # noqa: N802 (Qt's name)
        self._told.append(message)


class _Requests(QWebEngineUrlRequestInterceptor):
    """Keeps what the page asks for besides itself."""

    def __init__(self, told: list[str]):
        super().__init__()
        self._told = told

    def interceptRequest(self, info: QWebEngineUrlRequestInfo) -> None:  # noqa: N802 (Qt's name)
        if info.requestUrl().scheme() not in ("file", "blob"):
            self._told.append(info.requestUrl().toString())


class _Session:
    """The page, and a method for each command."""

    def __init__(self) -> None:
        self.told = list[str]()
        self._clock = 10_000
        self._view, self._requests = QWebEngineView(), _Requests(self.told)
        page = _Page(self.told)
        page.setParent(self._view)
        page.setUrlRequestInterceptor(self._requests)
        self._view.setPage(page)

    def open(self, path: str, width: int, height: int) -> None:
        self._view.resize(width, height)
        self._view.show()
        loop = QEventLoop()
        self._view.loadFinished.connect(loop.quit)
        self._view.load(QUrl.fromLocalFile(path))
        loop.exec()

    def evaluate(self, expression: str) -> Any:
        loop, found = QEventLoop(), list[str]()

        def take(text: str) -> None:
            found.append(text)
            loop.quit()

        self._view.page().runJavaScript(f"JSON.stringify(({expression}) ?? null)", 0, take)
        loop.exec()
        return json.loads(found[0]) if found[0] else None

    def until(self, expression: str, seconds: float) -> Any:
        for _ in range(int(1e3 * seconds / _LOOK)):
            found = self.evaluate(expression)
            if found is not None and found is not False:
                return found
            loop = QEventLoop()
            QTimer.singleShot(_LOOK, loop.quit)
            loop.exec()
        return None

    def click(self, x: float, y: float, double: bool) -> None:
        """Chromium counts presses by their times, which QTest keeps apart."""
        at, left, none = QPointF(x, y), Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
        for turn in range(2 if double else 1):
            for kind, held in ((QEvent.Type.MouseButtonPress, left), (QEvent.Type.MouseButtonRelease, none)):
                event = QMouseEvent(kind, at, at, left, held, Qt.KeyboardModifier.NoModifier)
                event.setTimestamp(self._clock + turn)
                QApplication.sendEvent(self._surface(), event)
        self._clock += 10_000

    def move(self, x: float, y: float) -> None:
        QTest.mouseMove(self._surface(), QPoint(round(x), round(y)))

    def scroll(self, x: float, y: float, down: int, zoom: bool) -> None:
        keys = Qt.KeyboardModifier.ControlModifier if zoom else Qt.KeyboardModifier.NoModifier
        at, none = QPointF(x, y), QPoint()
        event = QWheelEvent(at, at, none, QPoint(0, -down), Qt.MouseButton.NoButton, keys, Qt.ScrollPhase.NoScrollPhase, False)
        QApplication.sendEvent(self._surface(), event)

    def type(self, text: str) -> None:
        QTest.keyClicks(self._surface(), text)

    def press(self, key: str) -> None:
        QTest.keyClick(self._surface(), getattr(Qt.Key, f"Key_{key}"))

    def picture(self, path: str) -> None:
        self._view.grab().save(path)

    def messages(self) -> list[str]:
        return self.told

    def _surface(self) -> QWidget:
        """What takes keys and the mouse."""
        return self._view.focusProxy() or self._view


def main() -> None:
    """Serves commands until its input ends."""
    app = QApplication(sys.argv[:1])
    session = _Session()

    def serve() -> None:
        line = sys.stdin.readline()
        if not line:
            os._exit(0)  # Chromium's threads take a second to end in order
        name, arguments = json.loads(line)
        answers.write(json.dumps(getattr(session, name)(*arguments)) + "\n")
        answers.flush()

    # What Chromium itself prints goes elsewhere.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    notifier = QSocketNotifier(0, QSocketNotifier.Type.Read)
    notifier.activated.connect(serve)
    app.exec()


if __name__ == "__main__":
    main()
