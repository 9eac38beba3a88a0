"""The environment variables that relaxir reads; no other module reads them.

========================  =====================================================================================
``RELAXIR_NUM_THREADS``   how many threads a call uses, see :mod:`.threads`
``RELAXIR_CACHE_DIR``     where compiled code, and weights of ``load_weights``, are kept instead of
                          ``$XDG_CACHE_HOME/relaxir``; empty or ``off``: nowhere
``RELAXIR_CACHE_BYTES``   how much code is kept there; 1 GiB when not set
``RELAXIR_WEIGHTS_BYTES`` how much of prepared weights is kept there; 256 GiB when not set
``RELAXIR_PLAN_TABLE``    the folder with measured plans of kernels for GPUs, which ``relaxir tune`` writes
``RELAXIR_DUMP``          where each compilation writes its stages (:mod:`relaxir.dump`); the last one's are there
========================  =====================================================================================
"""

from __future__ import annotations

import os
from pathlib import Path

from ..dialect.errors import RelaxError

__all__ = [
    "cache_bytes",
    "cache_directory",
    "dump_directory",
    "num_threads",
    "openmp_threads",
    "plan_table_directory",
    "weights_bytes",
]

_CACHE_BYTES = 2**30
_WEIGHTS_BYTES = 2**38


def num_threads() -> int | None:
    """``RELAXIR_NUM_THREADS``, None when not set. Raises RelaxError when it is no number from 1 on."""
    return _positive("RELAXIR_NUM_THREADS", "a number of threads")


def openmp_threads() -> int | None:
    """The outermost level of ``OMP_NUM_THREADS``, None when it says nothing."""
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(given) if given.isdigit() and int(given) > 0 else None


def cache_directory() -> Path | None:
    """Where compiled code is kept, None when nowhere."""
    given = os.environ.get("RELAXIR_CACHE_DIR")
    if given is not None:
        return None if given in ("", "off") else Path(os.path.expanduser(given))
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification wants relative paths ignored. Without a home there is no place.
    try:
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "relaxir"
    except RuntimeError:
        return None


def cache_bytes() -> int:
    """How much is kept. Raises RelaxError when ``RELAXIR_CACHE_BYTES`` is no number from 1 on."""
    return _positive("RELAXIR_CACHE_BYTES", "a number of bytes") or _CACHE_BYTES


def weights_bytes() -> int:
    """How much of prepared weights is kept. Raises RelaxError when ``RELAXIR_WEIGHTS_BYTES`` is no number from 1 on."""
    return _positive("RELAXIR_WEIGHTS_BYTES", "a number of bytes") or _WEIGHTS_BYTES


def dump_directory() -> str | None:
    """Where compilations write their stages, None when nowhere."""
    return os.environ.get("RELAXIR_DUMP") or None


def plan_table_directory() -> str | None:
    """Where measured plans are, None when not set. Raises RelaxError where that is no folder."""
    folder = os.environ.get("RELAXIR_PLAN_TABLE") or None
    if folder is not None and not os.path.isdir(folder):
        raise RelaxError(f"expected a folder with measured plans in RELAXIR_PLAN_TABLE, got '{folder}'")
    return folder


def _positive(name: str, what: str) -> int | None:
    text = os.environ.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise RelaxError(f"expected {what} from 1 on in {name}, got '{text}'")
    return int(text)
