"""Files that fsspec has drivers for: ``s3://``, ``gs://``, ``hf://`` and others, read by ranges.

A driver of obstore takes the place of fsspec's own where ``obstore.fsspec.register("s3")`` was called.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from ...dialect.errors import RelaxError
from .places import Place
from .transport import HEAD_BYTES, AttemptError, MissingError, Opened, RefusedAccessError

__all__ = ["FsspecFile"]

#: What drivers call that which changes with a file's content, the surest first.
_TAGS = (
    "ETag", "etag", "e_tag", "sha256", "md5Hash", "md5", "crc32c", "blob_id", "generation", "version_id", "VersionId",
    "LastModified", "last_modified", "mtime", "updated", "created",
)  # fmt: skip


class FsspecFile:
    """A file of a file system of fsspec; see :class:`.transport.Transport`."""

    def __init__(self, place: Place):
        """Finds the driver. Raises RelaxError when there is none, or fsspec is not installed."""
        try:
            from fsspec.core import url_to_fs  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
        except ImportError:
            text = f"expected fsspec to be installed to read {place.scheme}://; pip install relaxir[remote]"
            raise RelaxError(f"'{place.name}': {text}") from None
        try:
            found: Any = cast("Any", url_to_fs)(place.url)
        except (ImportError, ValueError) as error:
            raise RelaxError(f"'{place.name}': expected a driver of fsspec for {place.scheme}://, got none: {error}") from None
        self._files, self._path = found

    def open(self) -> Opened:
        info = self._info()
        size = info.get("size")
        if type(size) is not int:
            raise RefusedAccessError("a file without a size")
        head = self._bytes(0, min(size, HEAD_BYTES)) if size else b""
        return Opened(size, _tag(info), head)

    def read(self, begin: int, view: memoryview, opened: Opened) -> int:
        view[:] = self._bytes(begin, begin + len(view))
        return len(view)

    def whole(self, limit: int) -> bytes:
        size = self._info().get("size")
        return self._bytes(0, min(size, limit + 1)) if size else b""

    def check_unchanged(self, opened: Opened) -> None:
        info = self._info()
        if (info.get("size"), _tag(info)) != (opened.size, opened.tag):
            raise RefusedAccessError("another one: it was replaced while it is read")

    def _info(self) -> Mapping[str, Any]:
        with _failures():
            self._files.invalidate_cache(self._path)
            info: Mapping[str, Any] = self._files.info(self._path)
        if info.get("type") == "directory":
            raise MissingError
        return info

    def _bytes(self, begin: int, end: int) -> bytes:
        with _failures():
            found: bytes = self._files.cat_file(self._path, start=begin, end=end)
        if len(found) != end - begin:
            raise AttemptError(f"{len(found)} of {end - begin} bytes")
        return found


@contextmanager
def _failures() -> Generator[None]:
    """Exceptions of drivers as what they are to us; what is none of Python's own may be a matter of time."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError):
        raise MissingError from None
    except (PermissionError, NotImplementedError, TypeError, ValueError) as error:
        raise RefusedAccessError(f"{type(error).__name__}: {error}") from None
    except ImportError as error:
        raise RelaxError(f"expected the driver's package to be installed, got {error}") from None
    except Exception as error:
        raise AttemptError(f"{type(error).__name__}: {error}") from None


def _tag(info: Mapping[str, Any]) -> str | None:
    key = next((k for k in _TAGS if info.get(k) is not None), None)
    return None if key is None else f"{key}={info[key]}"
