"""Files that HTTP servers have: ranges by ``GET``, each answer held to what was asked for.

fsspec's own driver hides statuses and header fields: it would take a whole file for a range, and not see that one was replaced.
"""

from __future__ import annotations

import base64
import contextlib
import email.utils
import functools
import hashlib
import re
import time
import urllib.request
from collections.abc import Generator
from typing import Any

from ...dialect.errors import RelaxError
from .places import Place
from .transport import HEAD_BYTES, AttemptError, MissingError, Opened, RefusedAccessError

__all__ = ["HttpFile", "NoRangesError", "interruptions", "tag_of"]

_CONNECT_SECONDS, _READ_SECONDS = 10, 30
_CONNECTIONS = 16
_PIECE = 1 << 18

_BUSY = (408, 425, 429, 500, 502, 503, 504)
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_DIGEST = re.compile(r"(sha-256|sha-512)=:([A-Za-z0-9+/=]+):")


class NoRangesError(AttemptError):
    """A server sent the whole file where a range was asked for."""


class HttpFile:
    """A file of an HTTP server; see :class:`.transport.Transport`."""

    def __init__(self, place: Place):
        """Takes the URL. Raises RelaxError when urllib3 is not installed."""
        self._url = place.url
        _library()

    def open(self) -> Opened:
        with self._answer({"Range": f"bytes=0-{HEAD_BYTES - 1}"}) as answer:
            if answer.status == 416 and answer.headers.get("Content-Range", "").strip() == "bytes */0":
                return Opened(0, tag_of(answer), b"")
            begin, end, size = _range(answer)
            _check_length(answer, end - begin)
            if begin or not 0 < end <= HEAD_BYTES:
                raise AttemptError(f"bytes {begin} to {end} where the first {HEAD_BYTES} were asked for")
            head = bytearray(end)
            _fill(answer, memoryview(head))
            return Opened(size, tag_of(answer), bytes(head))

    def read(self, begin: int, view: memoryview, opened: Opened) -> int:
        end = begin + len(view)
        with self._answer({"Range": f"bytes={begin}-{end - 1}"}) as answer:
            if answer.status == 416:
                raise RefusedAccessError(_changed("a shorter one"))
            got_begin, got_end, size = _range(answer)
            if size != opened.size or tag_of(answer) != opened.tag:
                what = f"{size} bytes instead of {opened.size}" if size != opened.size else "another version of it"
                raise RefusedAccessError(_changed(what))
            _check_length(answer, got_end - got_begin)
            if got_begin != begin or not begin < got_end <= end:
                raise AttemptError(f"bytes {got_begin} to {got_end} where {begin} to {end} were asked for")
            _fill(answer, view[: got_end - begin])
            return got_end - begin

    def all(self) -> Any:
        """An answer with the whole file, for the caller to read and to close. Raises as :meth:`open`."""
        answer = self._asked({})
        if answer.status != 200:
            answer.close()
            raise RefusedAccessError(f"status {answer.status}")
        return answer

    def whole(self, limit: int) -> bytes:
        with self._answer({}) as answer:
            if answer.status != 200:
                raise RefusedAccessError(f"status {answer.status}")
            length = answer.headers.get("Content-Length")
            content = bytearray()
            with interruptions():
                while len(content) <= limit and (piece := answer.read(_PIECE)):
                    content += piece
            if length is not None and length.isdecimal() and len(content) < min(int(length), limit):
                raise AttemptError(f"{len(content)} of {length} bytes")
            return bytes(content)

    def check_unchanged(self, opened: Opened) -> None:
        """Nothing to ask: each answer says which version it is of."""

    @contextlib.contextmanager
    def _answer(self, headers: dict[str, str]) -> Generator[Any]:
        """One answer, read by the block; its connection is used again where all was read."""
        answer = self._asked(headers)
        try:
            yield answer
        except BaseException:
            answer.close()
            raise
        answer.release_conn()

    def _asked(self, headers: dict[str, str]) -> Any:
        wanted = {"Accept-Encoding": "identity", "User-Agent": "relaxir", **headers}
        with interruptions():
            answer: Any = _pool().request("GET", self._url, headers=wanted, preload_content=False)
        try:
            _check_status(answer)
        except BaseException:
            answer.close()
            raise
        return answer


def _library() -> Any:
    try:
        import urllib3
    except ImportError:
        raise RelaxError("expected urllib3 to be installed to read over HTTP; pip install relaxir[remote]") from None
    return urllib3


@functools.cache
def _pool() -> Any:
    """The connections of this process. Redirections are followed, but never from https to http."""
    urllib3 = _library()
    retries = urllib3.Retry(total=10, connect=0, read=0, status=0, other=0, redirect=10, respect_retry_after_header=False)
    options: dict[str, Any] = {
        "maxsize": _CONNECTIONS, "retries": retries, "timeout": urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS),
    }  # fmt: skip
    return _Pools(options)


class _Pools:
    """Connections to servers, through the proxies that the environment names."""

    def __init__(self, options: dict[str, Any]):
        self._options, self._pools = options, dict[str | None, Any]()

    def request(self, method: str, url: str, **arguments: Any) -> Any:
        urllib3 = _library()
        parsed = urllib3.util.parse_url(url)
        bypassed = bool(urllib.request.proxy_bypass(parsed.host or ""))
        proxy = None if bypassed else urllib.request.getproxies().get(parsed.scheme or "")
        pool = self._pools.get(proxy)
        if pool is None:
            made = urllib3.PoolManager(**self._options) if proxy is None else urllib3.ProxyManager(proxy, **self._options)
            pool = self._pools.setdefault(proxy, made)
        if parsed.auth:
            arguments["headers"] = {**arguments["headers"], **urllib3.make_headers(basic_auth=parsed.auth)}
        answer = pool.request(method, url, **arguments)
        history: Any = answer.retries.history if answer.retries else ()
        if parsed.scheme == "https" and any((h.redirect_location or "").startswith("http:") for h in history):
            answer.close()
            raise RefusedAccessError("a redirection from https to http")
        return answer


@contextlib.contextmanager
def interruptions() -> Generator[None]:
    """Errors of the connection as what they are to us."""
    errors = _library().exceptions
    try:
        yield
    except (errors.LocationParseError, errors.LocationValueError, errors.URLSchemeUnknown) as error:
        raise RefusedAccessError(f"no URL to open: {error}") from None
    except errors.HTTPError as error:
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, errors.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(reason):
            raise RefusedAccessError(f"a certificate that is not trusted: {reason}") from None
        raise AttemptError(_reason(reason)) from None


def _reason(error: Exception) -> str:
    """What went wrong, without the addresses of Python objects."""
    first = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    return re.sub(r"^<[^>]*>: |HTTPS?Connection(?:Pool)?\([^)]*\): ", "", first) or type(error).__name__


def _check_status(answer: Any) -> None:
    status = answer.status
    if status in _BUSY:
        raise AttemptError(f"status {status}", wait=_retry_after(answer.headers.get("Retry-After")))
    if status in (404, 410):
        raise MissingError
    if status in (401, 403):
        raise RefusedAccessError(f"status {status}, access is denied")
    if status not in (200, 206, 416):
        raise RefusedAccessError(f"status {status}")
    encoding = answer.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise RefusedAccessError(f"bytes in another encoding ({encoding})")


def _retry_after(text: str | None) -> float | None:
    """Seconds, which are given as such or as a date."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return float(text)
    date = email.utils.parsedate_tz(text)
    return None if date is None else max(0.0, email.utils.mktime_tz(date) - time.time())


def _range(answer: Any) -> tuple[int, int, int]:
    """Where the answer's bytes begin and end, and of how many."""
    if answer.status == 200:
        raise NoRangesError("the whole file (status 200) where a range was asked for")
    found = _RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
    if answer.status != 206 or found is None:
        raise AttemptError(f"status {answer.status} without a range and a size")
    begin, last, size = map(int, found.groups())
    if not begin <= last < size:
        raise AttemptError(f"the range {found[0]}")
    return begin, last + 1, size


def _check_length(answer: Any, count: int) -> None:
    length = answer.headers.get("Content-Length")
    if length is not None and length != str(count):
        raise AttemptError(f"{length} bytes for a range of {count}")


def tag_of(answer: Any) -> str | None:
    """What tells this version from others."""
    return answer.headers.get("ETag") or answer.headers.get("Last-Modified")


def _changed(what: str) -> str:
    return f"{what}: it was replaced while it is read"


def _fill(answer: Any, view: memoryview) -> None:
    """All of an answer, which has exactly these bytes, and the digest that the server gives for them (RFC 9530)."""
    count = 0
    try:
        with interruptions():
            while count < len(view) and (piece := answer.read1(min(len(view) - count, _PIECE))):
                view[count : count + len(piece)] = piece
                count += len(piece)
            surplus = answer.read(1) if count == len(view) else b""
    except AttemptError as error:
        raise AttemptError(str(error), count) from None
    if count < len(view):
        raise AttemptError(f"{count} of {len(view)} bytes", count)
    if surplus:
        raise AttemptError(f"more than {len(view)} bytes")
    for kind, text in _DIGEST.findall(answer.headers.get("Content-Digest", "")):
        if base64.b64encode(hashlib.new(kind.replace("-", ""), view).digest()).decode() != text:
            raise AttemptError(f"bytes whose {kind} is not the one that the server gives")
