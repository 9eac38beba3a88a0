"""Whether a folder is safe to execute code from: a path in, and what is wrong with it out, if somebody else can change it."""

from __future__ import annotations

import os
import stat
from collections import deque

__all__ = ["untrusted_file", "untrusted_folder"]

_MAX_LINKS = 40
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def untrusted_folder(path: str, own: int = 1) -> str | None:
    """Why somebody other than this user, or root, could put a file there; None when nobody can.

    Every folder on the way there counts, also on the way that symbolic links take, for whoever can write to one can put another
    in the place of what is in it. Where that is forbidden (the sticky bit, as of ``/tmp``) it is only not enough for the last
    ``own`` folders.

    Args:
        path: a folder; what of it does not exist yet does not count.
        own: how many of the last folders must be writable by this user alone.
    """
    todo, links = deque(_parts(os.path.abspath(path))), 0
    current = "/"
    while todo:
        current = os.path.normpath(os.path.join(current, todo.popleft()))
        try:
            status = os.lstat(current)
        except OSError:
            return None
        if stat.S_ISLNK(status.st_mode) and links < _MAX_LINKS:
            links += 1
            if not _is_ours(status):
                return _belongs(current, status)
            target = os.readlink(current)
            current = os.path.dirname(current)
            todo.extendleft(reversed(_parts(target)))
            if target.startswith("/"):
                current = "/"
            continue
        reason = _reason(current, status, sticky_is_enough=len(todo) >= own)
        if reason is not None:
            return reason
    return None


def _parts(path: str) -> list[str]:
    return [p for p in path.split("/") if p not in ("", ".")]


def untrusted_file(status: os.stat_result, path: str) -> str | None:
    """Why somebody other than this user, or root, may have written a file; None when nobody can have."""
    return _reason(path, status, sticky_is_enough=False)


def _reason(path: str, status: os.stat_result, sticky_is_enough: bool) -> str | None:
    if not _is_ours(status):
        return _belongs(path, status)
    others = status.st_mode & _OTHERS
    if others == stat.S_IWGRP and _is_private_group(status.st_gid):
        return None
    if others and not (sticky_is_enough and status.st_mode & stat.S_ISVTX):
        return f"'{path}', which others may write to"
    return None


def _belongs(path: str, status: os.stat_result) -> str:
    return f"'{path}', which belongs to user {status.st_uid}"


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.geteuid())


def _is_private_group(gid: int) -> bool:
    """Whether a group has this user as its only member: where each user has one, folders are writable by the group."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
