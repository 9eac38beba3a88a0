"""``run_decompositions`` of torch with less around it: what it does for each operator there is costs less.

These are thousands: 60 of the 120 ms that a program of a few nodes takes.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch._export.utils
from torch import DispatchKey
from torch._ops import OperatorBase

from .torch_warnings import without_warnings

__all__ = ["decomposing", "without_tokens"]

#: Torch changes its operators while it decomposes, for all threads.
_LOCK = threading.RLock()


@contextmanager
def decomposing() -> Generator[None]:
    """While it lasts, torch says nothing of uses of its own, and has less to do around what it decomposes.

    It asks its dispatcher once what there is, not once per namespace, and registers kernels without evaluating annotations.
    What another version of torch does not have stays as it is.
    """
    quicker: list[tuple[Any, str, Callable[..., Any]]] = [
        (torch._export.utils, "_materialize_cpp_cia_ops", functools.cache),
        (OperatorBase, "py_impl", _registering),
    ]
    with _LOCK, without_warnings(), without_tokens():
        found = [(owner, name, getattr(owner, name), make) for owner, name, make in quicker if hasattr(owner, name)]
        try:
            for owner, name, original, make in found:
                setattr(owner, name, make(original))
            yield
        finally:
            for owner, name, original, _ in found:
                setattr(owner, name, original)


@contextmanager
def without_tokens() -> Generator[None]:
    """While it lasts, torch traces what raises errors of factorizations as any operator, not between tokens."""
    try:
        registry: Any = torch._library
        entry = registry.simple_registry.singleton.find("aten::_linalg_check_errors").effect
        before = entry.effect
    except AttributeError:  # another version of torch, without effects
        yield
        return
    entry.register(None)
    try:
        yield
    finally:
        entry.register(before)


def _registering(original: Callable[..., Any]) -> Callable[..., Any]:
    """Registers a kernel for a key of the dispatcher as torch does."""

    def py_impl(self: Any, key: Any) -> Callable[[Any], Any]:
        if not isinstance(key, DispatchKey) or key == DispatchKey.Python:
            return original(self, key)

        def register(kernel: Any) -> Any:
            if key in self.py_kernels:
                return original(self, key)(kernel)  # which says why not
            self.py_kernels[key] = kernel
            self._dispatch_cache.clear()
            return kernel

        return register

    return py_impl
