"""Weights whose values a module was made of: small initializers of ONNX, which are numbers in it and no arguments.

``relax.fixed_weights`` on the module has a digest of each by name, so that those of another checkpoint are not taken for them::

    module attributes {relax.fixed_weights = {logit_scale = "f32[] 0f1e2d3c4b5a6978"}}
"""

from __future__ import annotations

from collections.abc import Mapping

from .bindings import ir
from .errors import RelaxError

__all__ = ["FIXED_WEIGHTS", "add_fixed_weights", "fixed_weights"]

FIXED_WEIGHTS = "relax.fixed_weights"


def add_fixed_weights(module: ir.Operation, digests: Mapping[str, str]) -> None:
    """Notes digests of weights that the module has as numbers; nothing where there are none."""
    every = fixed_weights(module) | dict(digests)
    if every:
        with module.context:
            module.attributes[FIXED_WEIGHTS] = ir.DictAttr.get({name: ir.StringAttr.get(d) for name, d in every.items()})


def fixed_weights(module: ir.Operation) -> dict[str, str]:
    """The digests by name. Raises RelaxError where ``relax.fixed_weights`` is no dictionary of strings."""
    if FIXED_WEIGHTS not in module.attributes:
        return {}
    attribute = module.attributes[FIXED_WEIGHTS]
    items = {item.name: item.attr for item in attribute} if isinstance(attribute, ir.DictAttr) else {"": attribute}
    if not all(isinstance(value, ir.StringAttr) for value in items.values()):
        text = f'expected {FIXED_WEIGHTS} such as {{t = "f32 0f1e2d3c"}}, got {attribute}'
        raise RelaxError(f"'builtin.module' op {text}", module.location)
    return {name: value.value for name, value in items.items()}
