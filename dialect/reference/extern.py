"""Functions of other libraries: called as compiled code calls them, on arrays that the results are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import RelaxError
from ..extern_functions import ExternArgument, find_extern, library_text
from ..extern_functions import call_extern as called
from .numeric import Array
from .registry import reference

__all__: list[str] = []


@reference
def call_extern(
    *operands: Array, symbol: str, library: str, arguments: Sequence[ExternArgument], version: str,
    results: Sequence[tuple[tuple[int, ...], np.dtype[Any]]],
) -> tuple[Array, ...]:  # fmt: skip
    del version
    count = list(arguments).count(...)
    numbers = iter(operands[len(operands) - count :])
    given = [_number(next(numbers)) if a is ... else a for a in arguments]
    outputs = tuple(np.empty(shape, dtype) for shape, dtype in results)
    # Copies: a function that writes to its inputs, which it must not, then changes no value of the caller's.
    inputs = [np.array(x, order="C") for x in operands[: len(operands) - count]]
    status = called(find_extern(library, symbol), inputs, outputs, given)
    if status:
        raise RelaxError(f"expected '{symbol}' of {library_text(library)} to return 0, got an error ({status})")
    return outputs


def _number(x: Array) -> int | float:
    return float(x) if x.dtype.kind == "f" else int(x)
