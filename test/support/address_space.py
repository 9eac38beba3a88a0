"""A limit on the memory that a forked test may ask for."""

from __future__ import annotations

import contextlib
import resource

__all__ = ["limit_address_space"]


def limit_address_space(extra: int) -> None:
    """Lets this process map so many bytes beyond what it has; what asks for more gets a MemoryError.

    What the process has counts: a fork of a long run of tests has mapped gigabytes, most of them without memory behind.
    """
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    with contextlib.suppress(ValueError):  # the limit is lower already
        resource.setrlimit(resource.RLIMIT_AS, (mapped + extra, resource.getrlimit(resource.RLIMIT_AS)[1]))
