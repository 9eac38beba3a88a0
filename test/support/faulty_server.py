"""An HTTP server of a folder's files that reads ranges, and fails as it is told to."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Fault:
    """What is wrong with one answer.

    Attributes:
        status: instead of 206; 0 closes the connection before any.
        headers: instead of what would be right; None leaves a field out.
        cut: bytes of the body that are sent before the connection is closed.
        body: instead of the right one.
        throttle: seconds between pieces of the body.
    """

    status: int | None = None
    headers: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    cut: int | None = None
    body: bytes | None = None
    throttle: float = 0.0


@dataclass
class Request:
    """What was asked for; ``begin`` and ``end`` are None for a whole file."""

    number: int
    name: str
    begin: int | None
    end: int | None
    headers: dict[str, str]


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silence: readers may go away."""


class FaultyServer:
    """Attributes: url, of the folder; requests, all so far; fault, asked for each of them; ranges, whether it sends any."""

    def __init__(self, folder: Path):
        self.folder, self.requests = folder, list[Request]()
        self.fault: Callable[[Request], Fault | None] = lambda request: None
        self.tags = self.ranges = True
        self._lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                owner.answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Silence."""

        self._server = _QuietServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator[FaultyServer]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path, wanted = handler.path.partition("?")[0], re.fullmatch(r"bytes=(\d+)-(\d+)", handler.headers.get("Range", ""))
        begin, end = (int(wanted[1]), int(wanted[2]) + 1) if wanted else (None, None)
        with self._lock:
            request = Request(len(self.requests), path[1:], begin, end, dict(handler.headers.items()))
            self.requests.append(request)
        fault = self.fault(request) or Fault()
        if fault.status == 0:
            handler.close_connection = True
            return
        status, headers, body = self._right(request)
        status, body = fault.status or status, body if fault.body is None else fault.body
        if fault.status not in (None, 200, 206):
            body = b""
        given = {"Content-Length": str(len(body)), **headers, **fault.headers}
        handler.send_response(status)
        for name, value in given.items():
            if value is not None:
                handler.send_header(name, value)
        handler.end_headers()
        self._send(handler, body, fault)

    def _right(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        file = self.folder / request.name
        if not file.is_file():
            return 404, {}, b""
        content = file.read_bytes()
        tags = {"ETag": f'"{file.stat().st_mtime_ns}"'} if self.tags else {}
        if request.begin is None or request.end is None or not self.ranges:
            return 200, tags, content
        part = content[request.begin : request.end]
        if not part:
            return 416, {"Content-Range": f"bytes */{len(content)}"}, b""
        return 206, tags | {"Content-Range": f"bytes {request.begin}-{request.begin + len(part) - 1}/{len(content)}"}, part

    def _send(self, handler: BaseHTTPRequestHandler, body: bytes, fault: Fault) -> None:
        sent = body if fault.cut is None else body[: fault.cut]
        step = max(1, len(sent) // 4) if fault.throttle else len(sent)
        try:
            for at in range(0, len(sent), step or 1):
                handler.wfile.write(sent[at : at + step])
                handler.wfile.flush()
                time.sleep(fault.throttle)
        except OSError:  # the reader has gone
            pass
        handler.close_connection = handler.close_connection or fault.cut is not None
