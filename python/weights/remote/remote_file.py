"""A file elsewhere that is read as if it were sure: attempts that fail are made again, later each time.

What an attempt has read before it failed is kept. After an attempt that got nothing, or little, the next one waits twice as
long, with a random part so that many readers do not come back at once, or as long as the server says.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ...dialect.errors import RelaxError
from .fsspec_file import FsspecFile
from .http_file import HttpFile, NoRangesError
from .http_stream import HttpStream
from .places import Place
from .transport import AttemptError, MissingError, Opened, RefusedAccessError, Transport

__all__ = ["PATIENCE", "NoFileError", "Patience", "RemoteFile", "read_small"]

_T = TypeVar("_T")

_SAME = "expected a file that stays as it is while it is read"


class NoFileError(RelaxError):
    """There is no such file."""


@dataclass
class Patience:
    """How failed attempts are made again.

    Attributes:
        attempts: how many in a row may fail, each with less than ``progress`` bytes.
        first, longest: seconds to wait after the first of them, and at most; a server may not ask for more than the latter.
        progress: bytes.
    """

    attempts: int = 7
    first: float = 0.25
    longest: float = 30.0
    progress: int = 1 << 20

    def wait(self, failed: int, asked: float | None) -> None:
        """Waits after so many failures in a row."""
        own = self.first * 2 ** (failed - 1) * random.uniform(0.5, 1.0)
        time.sleep(min(self.longest, max(own, asked or 0.0)))


#: That of this process: 16 s in all for servers that do not answer.
PATIENCE = Patience()


class RemoteFile:
    """One file of a server.

    Attributes:
        path: how errors name it.
        size: its bytes.
    """

    _transport: Transport

    def __init__(self, place: Place):
        """Opens a file.

        Raises:
            RelaxError: there is none, access is denied, or the server does not answer.
        """
        self.path = place.name
        self._transport = _transport(place)
        self._opened = _again(self.path, "expected a file", self._open)
        self.size = self._opened.size

    def _open(self) -> Opened:
        """One attempt; a server that sends no ranges, asked twice, is read as a stream from then on."""
        transport = self._transport
        if not isinstance(transport, HttpFile):
            return transport.open()
        try:
            return transport.open()
        except NoRangesError:  # where a cache answers so until it has the file, the second time there are ranges
            pass
        try:
            return transport.open()
        except NoRangesError:
            self._transport = HttpStream(transport)
            return self._transport.open()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report says of how it was read."""
        if not isinstance(self._transport, HttpStream):
            return ()
        return (f"'{self.path}' read as a stream into a temporary file: its server sends no ranges",)

    @property
    def identity(self) -> str | None:
        """Changes with the content; None where the server tells nothing that does."""
        return None if self._opened.tag is None else f"{self.path} {self.size} {self._opened.tag}"

    def read(self, begin: int, view: memoryview, what: str) -> None:
        """Fills memory with the bytes from there on.

        Args:
            begin: where, within the file.
            view: as many bytes as it has.
            what: what these are, for the message.

        Raises:
            RelaxError: they cannot be read, or the file is not what was opened any more.
        """
        head = self._opened.head[begin : begin + len(view)]
        view[: len(head)] = head
        done, failed = len(head), 0
        while done < len(view):
            try:
                done += self._transport.read(begin + done, view[done:], self._opened)
                failed = 0
            except AttemptError as error:
                done += error.count
                failed = 1 if error.count >= PATIENCE.progress else failed + 1
                self._wait(error, failed, f"{what}: expected bytes {begin} to {begin + len(view)}")
            except (MissingError, RefusedAccessError) as error:
                raise _error(self.path, f"{what}: expected bytes {begin} to {begin + len(view)}", error) from None

    def check_unchanged(self) -> None:
        """Raises RelaxError when the file is known not to be what was opened any more."""
        _again(self.path, _SAME, lambda: self._transport.check_unchanged(self._opened))

    def _wait(self, error: AttemptError, failed: int, what: str) -> None:
        if failed >= PATIENCE.attempts:
            raise _error(self.path, what, error, failed)
        PATIENCE.wait(failed, error.wait)


def read_small(place: Place, limit: int, what: str) -> bytes | None:
    """A small file's content; None where there is none.

    Raises:
        RelaxError: it cannot be read, or has more bytes than ``limit``.
    """
    transport = _transport(place)
    try:
        content = _again(place.name, f"expected {what}", lambda: transport.whole(limit))
    except NoFileError:
        return None
    if len(content) > limit:
        raise RelaxError(f"'{place.name}': expected {what} of at most {limit} bytes, got more")
    return content


def _transport(place: Place) -> Transport:
    return HttpFile(place) if place.is_http else FsspecFile(place)


def _again(path: str, what: str, attempt: Callable[[], _T]) -> _T:
    """What an attempt gives that does not fail."""
    failed = 0
    while True:
        try:
            return attempt()
        except AttemptError as error:
            failed += 1
            if failed >= PATIENCE.attempts:
                raise _error(path, what, error, failed) from None
            PATIENCE.wait(failed, error.wait)
        except (MissingError, RefusedAccessError) as error:
            raise _error(path, what, error) from None


def _error(path: str, what: str, error: Exception, attempts: int = 0) -> RelaxError:
    if isinstance(error, MissingError):
        return NoFileError(f"'{path}': {what}, got no such file")
    return RelaxError(f"'{path}': {what}, got {error}" + (f" ({attempts} attempts)" if attempts else ""))
