"""Weight math as compiled code: what decodes large weights of a checkpoint, where there is a compiler; once per computation."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .dialect.dtypes import dtype_name
from .weights.arrays import Array
from .weights.formats.weight_math import MathValue, arguments_of, digest_of

if TYPE_CHECKING:
    from .building.builder import Builder
    from .runtime.executable import Executable

__all__ = ["decode"]

_compiled: dict[str, Executable] = {}
_lock = threading.Lock()


def decode(value: MathValue, tensors: Mapping[str, Array], out: Array) -> bool:
    """Computes a value into memory, bit for bit as the reference semantics of its ops; False where nothing compiles here.

    Args:
        value: weight math.
        tensors: the file's, by the format's names for them.
        out: C-contiguous, of the value's dtype and shape.

    Raises:
        RelaxError: an index of the file is outside of its tensor.
    """
    if not _has_compiler():
        return False
    arguments = arguments_of(value)
    _executable(value, arguments)(*(np.asarray(tensors[a.name], order="C") for a in arguments), out=out)
    return True


@functools.cache
def _has_compiler() -> bool:
    try:
        from .dialect import bindings
    except ImportError:  # artifacts run without MLIR
        return False
    return bindings is not None


def _executable(value: MathValue, arguments: list[MathValue]) -> Executable:
    from .compiler import compile

    key = digest_of(value)
    with _lock:  # modules are built by one thread at a time
        if key not in _compiled:
            _compiled[key] = compile(_module(value, arguments))
        return _compiled[key]


def _module(value: MathValue, arguments: list[MathValue]) -> Any:
    from .building.builder import Builder

    b = Builder()
    with b.function("main"):
        made: dict[int, Any] = {id(a): b.input(a.name, a.shape, dtype_name(a.dtype)) for a in arguments}
        b.output(_built(b, value, made))
    return b.build()


def _built(b: Builder, value: MathValue, made: dict[int, Any]) -> Any:
    if id(value) not in made:
        operands = [_built(b, o, made) for o in value.operands]
        attrs = dict(value.attrs)
        if value.op == "constant":
            made[id(value)] = b.constant(np.asarray(attrs["value"]))
        elif value.op == "concat":
            made[id(value)] = b.concat(operands, **attrs)
        elif value.op == "reshape":
            made[id(value)] = b.reshape(operands[0], value.shape)
        else:
            made[id(value)] = getattr(b, value.op)(*operands, **attrs)
    return made[id(value)]
