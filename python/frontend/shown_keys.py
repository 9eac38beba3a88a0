"""Whether a mask of attention shows every query a key, which is known of none that inputs or weights decide.

One made of sizes and constants alone is computed by the reference: as it is, or with several sizes for each that is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.op import EffectOp, attrs_of
from ..dialect.reference.apply import apply_op
from ..dialect.reference.scope import Scope
from ..dialect.struct_info import TensorInfo
from ..dialect.symbolic import Dim, Expr, symbol

__all__ = ["shows_all_a_key"]

#: For open sizes: small ones, where what is hidden by its place hides all, and one that is longer than most windows are.
_SIZES = (1, 2, 3, 5, 8, 13, 300)
#: A larger mask is not computed when a model is imported: 0.1 s (Zen 5).
_MOST = 1 << 24


def shows_all_a_key(mask: ir.Value) -> bool:
    """Whether no row of a mask hides all keys, of sizes that were tried; False where nothing is known.

    Args:
        mask: truth values of what is seen, or numbers that are added to scores; keys along the last dimension.
    """
    made = _made_by(mask)
    if made is None:
        return False
    names = sorted({name for op in made for dim in _dims(op) if isinstance(dim, Expr) for name in dim.names})
    found = [_computed(made, mask, scope) for scope in _scopes(names)]
    shown = [array for array in found if array is not None]
    return bool(shown) and all(map(_shows_all, shown))


def _shows_all(mask: np.ndarray[Any, Any]) -> bool:
    seen = mask if mask.dtype == np.bool_ else mask.astype(np.float32) > -np.inf
    return bool(seen.any(-1).all())


def _made_by(value: ir.Value) -> list[EffectOp] | None:
    """The ops that a value is computed by, in order; None where an argument or what is no relax op has a part in it."""
    found: dict[ir.Operation, EffectOp] = {}
    pending = [value]
    while pending:
        current = pending[-1]
        if isinstance(current, ir.BlockArgument):
            return None
        op = current.owner
        if not isinstance(op, EffectOp) or len(op.operation.regions):
            return None
        operands = list(op.operation.operands)
        missing = [v for v in operands if isinstance(v, ir.BlockArgument) or v.owner.operation not in found]
        if missing:
            pending.extend(missing)
            continue
        found.setdefault(op.operation, op)
        pending.pop()
    return list(found.values())


def _dims(op: EffectOp) -> Iterator[Dim]:
    for result in op.operation.results:
        yield from TensorInfo.of(result).shape
    for key, spec in type(op).attrs.items():
        if spec.symbolic:
            yield from attrs_of(op)[key] or ()


def _scopes(names: Sequence[str]) -> Iterator[Scope]:
    """Sizes that are all the same, and such that all but one are."""
    tried = {tuple([n] * len(names)) for n in _SIZES}
    tried |= {tuple(4 if i == k else n for i in range(len(names))) for n in _SIZES for k in range(len(names))}
    for sizes in sorted(tried):
        scope = Scope()
        scope.bind([symbol(name) for name in names], sizes, "sizes")
        yield scope


def _computed(made: Sequence[EffectOp], mask: ir.Value, scope: Scope) -> np.ndarray[Any, Any] | None:
    """The mask; None where the sizes do not go together, or it is too large."""
    values: dict[ir.Value, Any] = {}
    try:
        for op in made:
            shapes = [TensorInfo.of(r).shape for r in op.operation.results]
            if any(prod(map(scope.resolve, shape)) > _MOST for shape in shapes):
                return None
            results = apply_op(op, [values[o] for o in op.operation.operands], scope)
            values.update(zip(op.operation.results, results, strict=True))
    except RelaxError:
        return None
    return values[mask]
