"""Files as users and models name them: opened only where they are what is expected, written so that nothing half done is left.

Everything that relaxir reads or writes under a path that a user gave, or that stands inside a file, is opened here.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Generator
from io import BufferedWriter, FileIO, UnsupportedOperation
from typing import BinaryIO
from urllib.parse import unquote

from ..dialect.errors import RelaxError

__all__ = [
    "KIND_BYTES", "inside", "name_on_disk", "open_own", "open_regular", "os_errors", "other_kind", "path_text", "read_bytes",
    "read_stream", "remove_output", "replacing", "stays_inside", "sync_folder", "write_file", "written_path",
]  # fmt: skip

# Nothing waits: opening a pipe, or a terminal, would wait for somebody at its other end.
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_WRITE = os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
_OWN = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)

# What this process has open already, as shells name it: /dev/stdout, and /dev/fd/63 for <(command).
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,9})")


@contextlib.contextmanager
def os_errors(doing: str, path: str) -> Generator[None]:
    """Turns an error of the system inside the block into a RelaxError that says what was done to which file."""
    try:
        yield
    except OSError as error:
        raise RelaxError(f"cannot {doing} '{path}': {error.strerror or error}") from None
    except ValueError as error:  # a null byte in the path, or half a character
        raise RelaxError(f"cannot {doing} {path!r}: {error}") from None


def path_text(path: object, doing: str = "read") -> str:
    """A path as text, ``~/`` being the home folder; of a URL ``file:///...`` its path.

    Raises:
        RelaxError: it is no path, or one that no file can have, or a URL of another machine.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise RelaxError(f"expected a path, got {type(path).__name__}")
    try:
        text = os.fsdecode(path)
    except TypeError as error:  # of a __fspath__ that returns something else
        raise RelaxError(f"expected a path, got {type(path).__name__}: {error}") from None
    if not text:
        raise RelaxError(f"cannot {doing} '': expected the name of a file, got none")
    with os_errors(doing, text):
        if b"\0" in os.fsencode(text):
            raise ValueError("embedded null byte")
    if text.startswith("file://"):
        host, slash, rest = text.removeprefix("file://").partition("/")
        if host not in ("", "localhost") or not slash:
            raise RelaxError(f"cannot {doing} '{text}': expected file:/// and a path of this machine, got the host {host!r}")
        return unquote(slash + rest)
    return os.path.expanduser(text) if text.startswith("~/") else text


def name_on_disk(path: str) -> str:
    """Where a path leads, links followed, as text that can be written down: what is no Unicode as its bytes."""
    return os.fsencode(os.path.realpath(path)).decode(errors="backslashreplace")


def _kind(mode: int) -> str:
    return next((kind for test, kind in _KINDS if test(mode)), "another kind")


def _refuse_kind(status: os.stat_result, doing: str, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise RelaxError(f"cannot {doing} '{path}': expected a regular file, got {_kind(status.st_mode)}")


# -- reading -----------------------------------------------------------------------------------------------------------


def open_regular(path: str, doing: str = "read") -> BinaryIO:
    """A regular file to read from; links are followed.

    Raises:
        RelaxError: it is a pipe, a device or a folder, which are not opened at all, or cannot be read.
    """
    with os_errors(doing, path):
        _refuse_kind(os.stat(path), doing, path)  # before it is opened: a device may act on that
        descriptor = os.open(path, _READ)
        try:
            _refuse_kind(os.fstat(descriptor), doing, path)  # what was opened is what counts
            return os.fdopen(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise


def read_bytes(path: str, limit: int | None = None, what: str = "a file", doing: str = "read") -> bytes:
    """The content of a regular file. Raises RelaxError as :func:`open_regular`, or when it has more bytes than ``limit``."""
    with open_regular(path, doing) as file, os_errors(doing, path):
        return _content(file, path, limit, what)


def _content(file: BinaryIO, path: str, limit: int | None, what: str) -> bytes:
    try:
        text = file.read() if limit is None else file.read(limit + 1)
    except MemoryError:
        raise RelaxError(
            f"'{path}': expected {what} that fits into memory, got one of {os.fstat(file.fileno()).st_size} bytes"
        ) from None
    if limit is not None and len(text) > limit:
        raise RelaxError(f"'{path}': expected {what} of at most {limit} bytes, got more")
    return text


def read_stream(path: str, doing: str = "read") -> bytes:
    """The content of a text that may come from a stream which is open already: a regular file, ``/dev/stdin``, what a shell
    gives for ``<(command)``, or nothing (``/dev/null``). Raises RelaxError for other pipes and devices.
    """
    if path == os.devnull:
        return b""
    number = _open_descriptor(path)
    if number is None:
        return read_bytes(path, doing=doing)
    with os_errors(doing, path), os.fdopen(os.dup(number), "rb") as file:
        return _content(file, path, None, "a text")


def _open_descriptor(path: str) -> int | None:
    """The number of an open file of this process that a path names."""
    found = _DESCRIPTOR.fullmatch(path)
    return int(found[1]) if found else _STANDARD.get(path)


# -- writing -----------------------------------------------------------------------------------------------------------


def written_path(path: object) -> str:
    """Where a file that a user names is written, links followed; there is nothing there, or a regular file.

    Raises:
        RelaxError: it is no path, its folder does not exist, or it names a folder, a pipe or a device, which is never replaced.
    """
    text = path_text(path, "write")
    with os_errors("write", text):
        status = _status(text, os.stat)
        if status is not None and not stat.S_ISREG(status.st_mode):
            raise RelaxError(f"cannot write '{text}': expected a file name, got {_kind(status.st_mode)}")
        target = os.path.realpath(text)
        folder = os.path.dirname(target)
        if not os.path.isdir(folder):
            raise RelaxError(f"cannot write '{text}': expected an existing folder, got '{os.path.dirname(text) or folder}'")
    return target


def _status(path: str, ask: Callable[[str], os.stat_result] = os.lstat) -> os.stat_result | None:
    try:
        return ask(path)
    except FileNotFoundError:
        return None


def open_own(path: str) -> int:
    """A descriptor of a file that is ours alone, to read and write; made when there is none.

    Raises:
        RelaxError: it is a symbolic link, has another name too (a hard link), or is no regular file: writing would change
            somebody else's.
    """
    with os_errors("write", path):
        before = _status(path)
        if before is not None:
            _check_own(before, path)
        descriptor = os.open(path, _OWN, 0o666)
        try:
            _check_own(os.fstat(descriptor), path)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


def _check_own(status: os.stat_result, path: str) -> None:
    _refuse_kind(status, "write", path)
    if status.st_nlink > 1:
        raise RelaxError(f"cannot write '{path}': expected a file with one name, got one with {status.st_nlink} (hard links)")


@contextlib.contextmanager
def replacing(path: object, doing: str = "write") -> Generator[BinaryIO]:
    """A file to write to, which appears under its name when the block ends without an error; the old one stays until then.

    Where there is nothing to replace the bytes go right into it: to a pipe, to a character device such as ``/dev/null``, and to
    what this process has open already (``/dev/stdout``). Links are followed.

    Raises:
        RelaxError: it cannot be written, or names a folder, a socket or a block device.
    """
    text = path_text(path, doing)
    with os_errors(doing, text):
        number = _open_descriptor(text)
        target = os.path.realpath(text)
        status = _status(target) if number is None else None
        if number is not None or (status is not None and (stat.S_ISFIFO(status.st_mode) or stat.S_ISCHR(status.st_mode))):
            sys.stdout.flush()
            with BufferedWriter(_Stream(os.open(target, _WRITE) if number is None else os.dup(number), "wb")) as file:
                yield file
            return
        if status is not None:
            _refuse_kind(status, doing, text)
        with _beside(target, status) as file:
            yield file


class _Stream(FileIO):
    """What only goes forward, also where the system thinks otherwise: a device takes a seek and stays where it is."""

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise UnsupportedOperation("tell")

    def seek(self, position: int, whence: int = 0, /) -> int:
        raise UnsupportedOperation("seek")


@contextlib.contextmanager
def _beside(target: str, status: os.stat_result | None) -> Generator[BinaryIO]:
    """A new file that takes the place of another one, with its rights."""
    descriptor, partial = tempfile.mkstemp(prefix=".relaxir-", dir=os.path.dirname(target))
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            os.fchmod(file.fileno(), 0o666 & ~_umask() if status is None else stat.S_IMODE(status.st_mode))
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise


def remove_output(path: str) -> None:
    """Removes what was written there, but no device or pipe."""
    status = _status(path)
    if status is not None and stat.S_ISREG(status.st_mode):
        os.unlink(path)


def _umask() -> int:
    """The process's mask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_folder(path: str) -> None:
    """Makes a rename inside the folder durable."""
    descriptor = os.open(path or ".", os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_ARCHIVE = b"PK\x03\x04"

#: How files begin that people take for others.
_MAGIC = {
    b"version ": "a pointer of Git LFS: 'git lfs pull' fetches what it stands for",
    b"<!": "a web page", b"<html": "a web page",
    b"GGUF": "a GGUF file", _ARCHIVE: "an archive, as torch.save writes it under .pt and numpy.savez under .npz",
    b"\x80\x02": "a pickle, as torch.save wrote it under .bin", b"\x80\x03": "a pickle", b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle", b"\x93NUMPY": "one array of NumPy: numpy.savez writes several, with names",
    b"\x89HDF\r\n\x1a\n": "a file of HDF5, as Keras writes",
}  # fmt: skip


#: By how many of a file's first bytes its kind is told.
KIND_BYTES = 9


def other_kind(begin: bytes, is_archive: bool = False) -> str | None:
    """What a file seems to be that is not what its name says, by its first bytes; None where they tell nothing.

    ``is_archive`` is for names of archives: that it is one is no news.
    """
    if begin[4:9] == b"\0\0\0\0{":  # the length of a header, and the header
        return "a safetensors file"
    found = next(((magic, kind) for magic, kind in _MAGIC.items() if begin.startswith(magic)), None)
    return None if found is None or (is_archive and found[0] == _ARCHIVE) else found[1]


# -- names inside files ------------------------------------------------------------------------------------------------


def inside(folder: str, name: str, source: str) -> str:
    """The path of a file that a folder's own files name.

    A name inside a model is a stranger's input: it must be relative, without ``..``, and no symbolic link may lead out of
    the folder, but for the one layout that :func:`stays_inside` knows.

    Args:
        folder: where the model lies.
        name: a file name, with ``/`` as separator.
        source: what names it, for the message.

    Raises:
        RelaxError: the name leads outside.
    """
    parts = name.replace("\\", "/").split("/")
    if not _is_file_name(name) or name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0]:
        raise RelaxError(f"{source}: expected the name of a file inside '{folder}', got {name!r}")
    path = os.path.join(folder, name)
    if not stays_inside(folder, path):
        raise RelaxError(
            f"{source}: expected a file inside '{folder}', got '{name}', which leads to '{os.path.realpath(path)}'"
        )
    return os.path.join(".", path) if path.startswith("~") else path


def _is_file_name(name: str) -> bool:
    """Whether a file can be called that; JSON escapes can make half characters."""
    return bool(name) and "\0" not in name and not any("\ud800" <= c <= "\udfff" for c in name)


def stays_inside(folder: str, path: str) -> bool:
    """Whether links of a path of a folder lead nowhere else.

    One layout is known and allowed: in a Hugging Face cache, ``snapshots/<revision>/onnx/f`` links to ``blobs/<hash>`` of the
    same repository.
    """
    root, target = os.path.realpath(folder), os.path.realpath(path)
    return any(os.path.commonpath([r, target]) == r for r in (root, _blobs(root)) if r is not None)


def _blobs(folder: str) -> str | None:
    """Where the files of a Hugging Face cache's revision are that a folder belongs to; None outside of one."""
    before, found, revision = f"{folder}/".rpartition("/snapshots/")
    blobs = os.path.join(before, "blobs")
    return blobs if found and revision and os.path.isdir(blobs) and not os.path.islink(blobs) else None


def write_file(folder: str, name: str, data: bytes) -> None:
    """Writes a new file of a folder, and waits until the disk has it."""
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
