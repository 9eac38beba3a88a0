"""Weights that a module knows itself: buffers that a model computes and no checkpoint holds, such as the frequencies of rotary
embeddings. ``relax.constants`` on the module has their values by name::

    module attributes {relax.constants = {"rotary_emb.inv_freq" = dense<[1.0, 0.1]> : tensor<2xf32>}}

They stay arguments of functions, like all weights: what is computed of them alone is lifted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .bindings import ir
from .elements import to_numpy
from .errors import RelaxError

__all__ = ["CONSTANTS", "constant_arrays", "set_constants"]

CONSTANTS = "relax.constants"


def set_constants(module: ir.Operation, values: Mapping[str, ir.DenseElementsAttr]) -> None:
    """Says what weights of these names are; nothing where there are none."""
    if values:
        module.attributes[CONSTANTS] = ir.DictAttr.get(dict(values), context=module.context)


def constant_arrays(module: ir.Operation) -> dict[str, np.ndarray[Any, Any]]:
    """The values by name; empty where the module has none.

    Raises:
        RelaxError: ``relax.constants`` is no dictionary of dense tensors.
    """
    if CONSTANTS not in module.attributes:
        return {}
    attribute = module.attributes[CONSTANTS]
    items = {item.name: item.attr for item in attribute} if isinstance(attribute, ir.DictAttr) else {"": attribute}
    wrong = next((value for value in items.values() if not isinstance(value, ir.DenseElementsAttr)), None)
    if wrong is not None:
        text = f"expected {CONSTANTS} such as {{w = dense<0.0> : tensor<8xf32>}}, got {attribute}"
        raise RelaxError(f"'builtin.module' op {text}", module.location)
    return {name: to_numpy(value) for name, value in items.items()}
