"""``relaxir.evaluate``: a function of a module run by its reference semantics in NumPy, without compiling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .dialect.checks import expect, expect_text
from .dialect.errors import RelaxError
from .module import Module

__all__ = ["evaluate"]


def evaluate(
    module: Module,
    function: str,
    *inputs: ArrayLike,
    weights: Mapping[str, ArrayLike] | None = None,
    provider: Callable[..., ArrayLike] | None = None,
    sink: Callable[..., None] | None = None,
) -> tuple[np.ndarray[Any, Any], ...]:
    """Runs a function slowly and plainly: the executable specification that passes and lowering are tested against.

    Args:
        module: the module; it is not changed.
        function: name of the function, without ``@``.
        inputs: the run-time inputs, in order.
        weights: every other argument by name; those that the module knows (``relax.constants``) may be left out.
        provider: what a function with lazy IO reads weights from: called with index and name, returns an array.
        sink: what it hands results to: called with index, name and array, which it must not write to.

    Returns:
        The results as arrays, always in a tuple.

    Raises:
        RelaxError: there is no such function, an input or weight is missing, unknown, or of the wrong shape or dtype, or a
            run-time check of the function fails.
    """
    from .dialect.constants import constant_arrays
    from .dialect.reference import interpreter

    if not isinstance(module, Module):
        raise RelaxError(f"expected a relaxir.Module, got {type(module).__name__}")
    expect_text(function, "the name of a function")
    if weights is not None:
        expect(weights, Mapping, "weights as a mapping from names to arrays")
    constants = constant_arrays(module.ir.operation)
    # Only where there are some: signatures of a module with many functions take longer than most calls.
    signature = module.functions.get(function) if constants else None
    names = [] if signature is None else [w.name for w in signature.weights]
    known = {name: constants[name] for name in names if name in constants}
    return interpreter.evaluate(module.ir.operation, function, inputs, known | dict(weights or {}) or None, provider, sink)
