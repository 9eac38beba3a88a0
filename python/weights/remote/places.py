"""URLs of files and of folders: a text in, a :class:`Place` out that errors can name without telling what is secret in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from ...dialect.errors import RelaxError

__all__ = ["Place", "is_url"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_url(text: str) -> bool:
    """Whether a text names something elsewhere; local paths and ``file://`` do not."""
    return _SCHEME.match(text) is not None and not text.startswith("file://")


@dataclass(frozen=True)
class Place:
    """One URL.

    Attributes:
        url: as it was given.
    """

    url: str

    @property
    def scheme(self) -> str:
        return urlsplit(self.url).scheme.lower()

    @property
    def is_http(self) -> bool:
        return self.scheme in ("http", "https")

    @property
    def name(self) -> str:
        """The URL without what may be a secret: user and password, and the query, which signatures are in."""
        if not self.is_http:
            return self.url
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    @property
    def file_name(self) -> str:
        """What is behind the last slash; empty for a folder that is written with one."""
        return unquote(urlsplit(self.url).path if self.is_http else self.url).rpartition("/")[2]

    @property
    def parent(self) -> Place:
        """The folder that this file is in."""
        scheme, host, path, query = self._parts()
        return Place(self._with((scheme, host, path.rpartition("/")[0], query)))

    def inside(self, name: str, source: str) -> Place:
        """A file of this folder.

        Args:
            name: its name, which may be a stranger's.
            source: what names it, for the message.

        Raises:
            RelaxError: the name leads out of the folder.
        """
        steps = name.replace("\\", "/").split("/")
        plain = name.isprintable() and not any("\ud800" <= c <= "\udfff" for c in name)
        if not plain or "" in steps or "." in steps or ".." in steps or ":" in steps[0]:
            raise RelaxError(f"{source}: expected the name of a file inside '{self.name}', got {name!r}")
        scheme, host, path, query = self._parts()
        return Place(self._with((scheme, host, f"{path.rstrip('/')}/{quote(name) if self.is_http else name}", query)))

    def _parts(self) -> tuple[str, str, str, str]:
        """Scheme, host, path and query; of object stores ``?`` and ``#`` are part of names."""
        if self.is_http:
            parts = urlsplit(self.url)
            return parts.scheme, parts.netloc, parts.path, parts.query
        scheme, _, rest = self.url.partition("://")
        return scheme, "", rest, ""

    def _with(self, parts: tuple[str, str, str, str]) -> str:
        return urlunsplit((*parts, "")) if self.is_http else f"{parts[0]}://{parts[2]}"
